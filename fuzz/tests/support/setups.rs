//! Setups of a server and of its clients, whose handshakes cost little.

#[path = "cheap.rs"]
mod cheap;

use std::sync::{Arc, OnceLock};

use hybriq::{
    Identity, TransportConfig, Trust,
    tls::{CertificateDer, KeyLog},
};
use hybriq_proto::endpoint::Setup;
use hybriq_sim::ms;
use hybriq_tls::{
    ClientOptions, Provider, ServerOptions,
    rustls::{Client, Server},
};

fn identity() -> &'static (Identity, CertificateDer<'static>) {
    static IDENTITY: OnceLock<(Identity, CertificateDer<'static>)> = OnceLock::new();
    IDENTITY.get_or_init(|| {
        let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
        let root = made.cert.der().clone();
        (Identity::from_signer(vec![root.clone()], cheap::Key), root)
    })
}

fn setup(provider: Arc<dyn Provider>) -> Setup {
    Setup {
        provider,
        transport: Arc::new(TransportConfig::new().initial_rtt(ms(100))),
    }
}

/// Returns the setup of a server for these application protocols.
pub(crate) fn server<const N: usize>(alpn: [&str; N]) -> Setup {
    let options = ServerOptions::new(identity().0.clone()).alpn(alpn);
    setup(Arc::new(
        Server::with_crypto(&options, cheap::crypto).unwrap(),
    ))
}

/// Returns a client's setup.
pub(crate) fn client(log: KeyLog) -> Setup {
    let options = ClientOptions::new()
        .alpn(["fuzz"])
        .trust(Trust::roots_der([identity().1.clone()]))
        .without_resumption()
        .key_log(log);
    setup(Arc::new(
        Client::with_crypto(&options, cheap::crypto).unwrap(),
    ))
}
