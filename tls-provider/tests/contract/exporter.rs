//! Exported keying material.

use hybriq_tls::Exporter;
#[cfg(feature = "unstable-rustls")]
use hybriq_tls::Suite;

use crate::support::{End, Pair, options, pairings};

pub(crate) fn export(end: &End, label: &[u8], context: &[u8], len: usize) -> Vec<u8> {
    let secret = end.exporter.clone().expect("the exporter secret");
    let mut out = vec![0; len];
    Exporter::new(secret)
        .export(label, context, &mut out)
        .expect("keying material");
    out
}

#[test]
fn both_ends_export_the_same_and_nothing_else_does() {
    for pairing in pairings() {
        let pair = Pair::of(pairing, &options()).complete();
        let other = Pair::of(pairing, &options()).complete();
        let from = |end: &End, label: &[u8], context: &[u8]| export(end, label, context, 32);
        let ours = from(&pair.client, b"EXPORTER-a", b"context");
        assert_eq!(ours, from(&pair.server, b"EXPORTER-a", b"context"));
        for different in [
            from(&pair.client, b"EXPORTER-b", b"context"),
            from(&pair.client, b"EXPORTER-a", b""),
            from(&other.client, b"EXPORTER-a", b"context"),
        ] {
            assert_ne!(ours, different);
        }
        assert_ne!(
            ours[..16],
            export(&pair.client, b"EXPORTER-a", b"context", 16)
        );
    }
}

/// A server of rustls as it is, without this crate.
#[cfg(feature = "unstable-rustls")]
fn export_of_plain_rustls(
    client: &mut End,
    suite: Suite,
    identity: hybriq_tls::Identity,
) -> Vec<u8> {
    use std::sync::{Arc, Mutex};

    use hybriq_tls::rustls::ServerConfig;
    use hybriq_tls::{Backend, Level, ServerOptions};
    use rustls::quic::{KeyChange, ServerConnection, Version};

    // Only the certificates are taken over; the crypto is rustls' own.
    let taken = Arc::new(Mutex::new(None));
    let into = taken.clone();
    let options = ServerOptions::new(identity).change_rustls(move |config: &mut ServerConfig| {
        *into.lock().expect("a resolver") = Some(config.cert_resolver.clone());
    });
    Backend::Rustls.server(&options).expect("a server");
    let resolver = taken
        .lock()
        .expect("a resolver")
        .take()
        .expect("a resolver");
    let mut crypto = rustls::crypto::aws_lc_rs::default_provider();
    crypto
        .cipher_suites
        .retain(|it| u16::from(it.suite()) == suite as u16);
    let mut config = rustls::ServerConfig::builder_with_provider(Arc::new(crypto))
        .with_protocol_versions(&[&rustls::version::TLS13])
        .expect("TLS 1.3")
        .with_no_client_auth()
        .with_cert_resolver(resolver);
    config.alpn_protocols = vec![b"h3".to_vec()];
    let mut server = ServerConnection::new(
        Arc::new(config),
        Version::V1,
        crate::support::SERVER_PARAMS.to_vec(),
    )
    .expect("a server");
    let mut level = Level::Initial;
    while server.is_handshaking() {
        client.drive().expect("the client");
        for level in crate::support::LEVELS {
            let bytes = client.outbox.crypto[level].split();
            if !bytes.is_empty() {
                server.read_hs(&bytes).expect("the server");
            }
        }
        loop {
            let mut bytes = Vec::new();
            let change = server.write_hs(&mut bytes);
            let idle = bytes.is_empty() && change.is_none();
            client.inbox[level].extend_from_slice(&bytes);
            match change {
                Some(KeyChange::Handshake { .. }) => level = Level::Handshake,
                Some(KeyChange::OneRtt { .. }) => level = Level::OneRtt,
                None => {}
            }
            if idle {
                break;
            }
        }
    }
    rustls::quic::Connection::from(server)
        .export_keying_material(vec![0; 48], b"EXPORTER-known", Some(b"context"))
        .expect("keying material")
}

#[cfg(feature = "unstable-rustls")]
#[test]
fn plain_rustls_exports_the_same() {
    use hybriq_tls::ClientOptions;

    use crate::support::{ALPN, Authority, CONTENDERS, HOST, client_start};

    let authority = Authority::new("root");
    for contender in CONTENDERS {
        for suite in [
            Suite::Aes128GcmSha256,
            Suite::Aes256GcmSha384,
            Suite::ChaCha20Poly1305Sha256,
        ] {
            println!("{} with {suite}", contender.name);
            if cfg!(feature = "fips") && suite == Suite::ChaCha20Poly1305Sha256 {
                continue; // rustls itself has it not, over a FIPS module.
            }
            let options = ClientOptions::new().alpn(ALPN).trust(authority.trust());
            let client = (contender.client)(&options).expect("a client");
            let session = client.session(client_start(HOST).into());
            let mut client = End::new(session.expect("a session"));
            let expected = export_of_plain_rustls(&mut client, suite, authority.issue(&[HOST]));
            assert_eq!(client.session.negotiated().suite, Some(suite));
            assert_eq!(export(&client, b"EXPORTER-known", b"context", 48), expected);
        }
    }
}
