//! Changes to the configurations of rustls.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use hybriq_tls::rustls::{ClientConfig, ServerConfig};
use hybriq_tls::{Backend, ConfigError, EarlyDataStatus, KeyExchange};

use crate::support::{CONTENDERS, Pair, options};

#[test]
fn changes_take_effect() {
    let (client, server) = options();
    let client = client.change_rustls(|config: &mut ClientConfig| config.enable_sni = false);
    let client = Backend::Rustls.client(&client).expect("a client");
    let server = Backend::Rustls.server(&server).expect("a server");
    let pair = Pair::new(&*client, &*server).complete();
    assert_eq!(pair.server.session.negotiated().server_name, None);
}

#[test]
fn a_server_changes_the_configuration_of_each_group() {
    let (_, server) = options();
    let count = Arc::new(AtomicUsize::new(0));
    let counted = count.clone();
    let server = server
        .key_exchange(KeyExchange::OnlyClassical)
        .change_rustls(move |_: &mut ServerConfig| {
            counted.fetch_add(1, Ordering::Relaxed);
        });
    Backend::Rustls.server(&server).expect("a server");
    assert_eq!(count.load(Ordering::Relaxed), 3);
}

#[test]
fn what_the_transport_relies_on_cannot_be_changed() {
    struct Silent;
    impl std::fmt::Debug for Silent {
        fn fmt(&self, _: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            Ok(())
        }
    }
    impl rustls::KeyLog for Silent {
        fn log(&self, _: &str, _: &[u8], _: &[u8]) {}
    }
    let (client, server) = options();
    let client = client.change_rustls(|config: &mut ClientConfig| {
        config.alpn_protocols = vec![b"other".to_vec()];
        config.key_log = Arc::new(Silent);
        config.enable_early_data = true;
        config.resumption = rustls::client::Resumption::disabled();
    });
    let early = server.clone().accept_early_data();
    let server = server.change_rustls(|config: &mut ServerConfig| {
        config.alpn_protocols.clear();
        config.key_log = Arc::new(Silent);
        config.max_early_data_size = u32::MAX;
        config.send_tls13_tickets = 0;
    });
    let client = Backend::Rustls.client(&client).expect("a client");
    let server = Backend::Rustls.server(&server).expect("a server");
    Pair::new(&*client, &*server).complete();
    let pair = Pair::new(&*client, &*server).complete();
    let negotiated = pair.client.session.negotiated();
    assert!(negotiated.resumed && !negotiated.early_data);
    assert_eq!(negotiated.alpn.as_deref(), Some(&b"h3"[..]));

    // A client that was not told to offers no 0-RTT data, whatever its ticket allows.
    let early = Backend::Rustls.server(&early).expect("a server");
    Pair::new(&*client, &*early).complete();
    let pair = Pair::new(&*client, &*early).complete();
    assert!(pair.client.session.negotiated().resumed);
    assert_eq!(pair.client.session.early_data(), EarlyDataStatus::None);
}

#[test]
fn another_library_refuses_the_change() {
    for contender in CONTENDERS.iter().filter(|it| it.name != "rustls") {
        let (client, server) = options();
        let client = client.change_rustls(|_: &mut ClientConfig| {});
        let server = server.change_rustls(|_: &mut ServerConfig| {});
        for error in [
            (contender.client)(&client).err(),
            (contender.server)(&server).err(),
        ] {
            assert!(
                matches!(error, Some(ConfigError::Unsupported { .. })),
                "{error:?}"
            );
        }
    }
}
