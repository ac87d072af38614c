//! A server and a client in virtual time, and the client's key log.

use std::sync::{Arc, Mutex, OnceLock};

use hybriq::{
    TransportConfig,
    tls::{
        Backend, CertificateDer, ClientOptions, Identity, KeyLog, PrivateKeyDer, ServerOptions,
        Trust,
    },
};
use hybriq_proto::endpoint::Setup;
use hybriq_sim::{Ask, Network, World, ms};

/// Lines of a client's key log.
pub(crate) type Log = Arc<Mutex<Vec<String>>>;

fn identity() -> &'static (Identity, CertificateDer<'static>) {
    static IDENTITY: OnceLock<(Identity, CertificateDer<'static>)> = OnceLock::new();
    IDENTITY.get_or_init(|| {
        let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
        let key = PrivateKeyDer::try_from(made.signing_key.serialize_der()).unwrap();
        let root = made.cert.der().clone();
        (Identity::from_der(vec![root.clone()], key), root)
    })
}

fn setup(provider: Arc<dyn hybriq::tls::Provider>) -> Setup {
    Setup {
        provider,
        transport: Arc::new(TransportConfig::new().initial_rtt(ms(100))),
    }
}

/// Returns a server's setup.
pub(crate) fn server() -> Setup {
    let options = ServerOptions::new(identity().0.clone()).alpn(["fuzz"]);
    setup(Backend::Rustls.server(&options).unwrap())
}

/// Makes a world with a client that has just begun, and returns it with the client's key log.
pub(crate) fn world(server: &Setup) -> (World, Log) {
    let log = Log::default();
    let lines = log.clone();
    let options = ClientOptions::new()
        .alpn(["fuzz"])
        .trust(Trust::roots_der([identity().1.clone()]))
        .without_resumption()
        .key_log(KeyLog::Callback(Arc::new(move |line| {
            lines.lock().unwrap().push(line.to_owned());
        })));
    let client = setup(Backend::Rustls.client(&options).unwrap());
    let mut world = World::new(Network::new(1).delay(ms(50)), server.clone());
    world.connect(&client, Ask::one_byte().keep_open());
    world.run_for(ms(0));
    (world, log)
}
