//! What every provider promises, over all pairings of the providers in `support::CONTENDERS`.

#[path = "contract/support.rs"]
mod support;

use hybriq_tls::{Group, KeyExchange, Suite};
use support::{Pair, exactly, options, options_for, pairings};

#[test]
fn defaults_negotiate_a_hybrid_group_and_equal_secrets() {
    for (client, server) in pairings() {
        let pair = Pair::of((client, server), &options()).complete();
        for end in [&pair.client, &pair.server] {
            let negotiated = end.session.negotiated();
            assert_eq!(negotiated.group, Some(Group::X25519MLKEM768));
            assert_eq!(negotiated.suite, Some(Suite::Aes128GcmSha256));
            assert!(!negotiated.hello_retry && !negotiated.resumed);
            assert_eq!(negotiated.alpn.as_deref(), Some(&b"h3"[..]));
            assert_eq!(negotiated.server_name.as_deref(), Some(support::HOST));
        }
    }
}

#[test]
fn every_group_both_have_works_alone() {
    for (client, server) in pairings() {
        let both = client
            .groups
            .iter()
            .filter(|group| server.groups.contains(group));
        for group in both.copied() {
            let options = options_for(exactly(group), exactly(group));
            let pair = Pair::of((client, server), &options).complete();
            assert_eq!(pair.client.session.negotiated().group, Some(group));
            assert_eq!(pair.server.session.negotiated().group, Some(group));
        }
    }
}

#[test]
fn a_classical_client_reaches_a_server_that_prefers_post_quantum() {
    for pairing in pairings() {
        let options = options_for(KeyExchange::OnlyClassical, KeyExchange::PreferPostQuantum);
        let pair = Pair::of(pairing, &options).complete();
        let group = pair.server.session.negotiated().group.expect("a group");
        assert!(!group.is_post_quantum());
    }
}
