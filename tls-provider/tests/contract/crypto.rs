//! rustls over crypto that the caller wrapped.

use hybriq_tls::Group;
use hybriq_tls::rustls::{Client, CryptoProvider, Server};

use crate::support::{Pair, options};

fn only(suite: u16) -> impl Fn(CryptoProvider) -> CryptoProvider {
    move |mut crypto| {
        crypto
            .cipher_suites
            .retain(|offered| u16::from(offered.suite()) == suite);
        crypto
    }
}

#[test]
fn a_client_offers_what_is_left_of_its_crypto() {
    let options = options();
    let classical = |mut crypto: CryptoProvider| {
        crypto
            .kx_groups
            .retain(|group| u16::from(group.name()) == Group::SECP256R1.0);
        crypto
    };
    let client = Client::with_crypto(&options.0, classical).expect("a client");
    let server = Server::new(&options.1).expect("a server");
    let pair = Pair::new(&client, &server).complete();
    let negotiated = pair.server.session.negotiated();
    assert_eq!(negotiated.group, Some(Group::SECP256R1));
    assert!(!negotiated.hello_retry);
}

#[test]
fn a_server_does_each_group_with_its_own_crypto() {
    let options = options();
    let client = Client::new(&options.0).expect("a client");
    let server = Server::with_crypto(&options.1, only(0x1303)).expect("a server");
    let pair = Pair::new(&client, &server).complete();
    let suite = pair.client.session.negotiated().suite;
    assert_eq!(suite.map(|suite| suite as u16), Some(0x1303));
}

#[test]
fn crypto_without_groups_makes_no_provider() {
    let options = options();
    let none = |mut crypto: CryptoProvider| {
        crypto.kx_groups.clear();
        crypto
    };
    assert!(Client::with_crypto(&options.0, none).is_err());
    assert!(Server::with_crypto(&options.1, none).is_err());
}
