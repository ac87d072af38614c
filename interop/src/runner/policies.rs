//! Groups of key exchange with s2n-tls, which takes no list of them but has some policies.
//!
//! A case names the groups of both ends. What matters is which group is chosen, and whether by a
//! HelloRetryRequest: a policy with more groups shows the same where the peer has none of the others.

use hybriq::{ClientConfig, Group, KeyExchange, Trust};

use super::Role;

const X25519MLKEM768: Group = Group::X25519MLKEM768;
const P256MLKEM768: Group = Group::SECP256R1MLKEM768;
const P384MLKEM1024: Group = Group::SECP384R1MLKEM1024;
const X25519: Group = Group::X25519;
const P256: Group = Group::SECP256R1;
const P384: Group = Group::SECP384R1;

/// Lists for which s2n-tls has a policy, and rustls the groups: rustls serves clients over TCP.
/// Clients send shares of the first hybrid and the first classical group.
const LISTS: [&[Group]; 5] = [
    &[
        X25519MLKEM768,
        P256MLKEM768,
        P384MLKEM1024,
        P256,
        X25519,
        P384,
    ],
    &[
        X25519MLKEM768,
        P256MLKEM768,
        P384MLKEM1024,
        Group::MLKEM1024,
    ],
    &[
        X25519MLKEM768,
        P256MLKEM768,
        P384MLKEM1024,
        X25519,
        P256,
        P384,
    ],
    &[X25519, P256, P384],
    &[P256, X25519, P384],
];

/// Returns the policy that shows the same as the wanted groups against a peer with these, if there is one.
pub(super) fn find(role: Role, wanted: &[Group], peer: &[Group]) -> Option<KeyExchange> {
    let exactly = KeyExchange::Exactly(wanted.to_vec());
    let lists = LISTS
        .into_iter()
        .filter(|list| shows(role, wanted, peer, list));
    let wider = lists.map(|list| KeyExchange::Exactly(list.to_vec()));
    std::iter::once(exactly).chain(wider).find(|policy| {
        let config = ClientConfig::new()
            .tls(hybriq::Backend::S2nTls)
            .trust(Trust::dangerously_accept_any_certificate())
            .key_exchange(policy.clone());
        config.check().is_ok()
    })
}

/// Returns true if a client with `list` and one with the wanted groups end with the same group in the same way, or
/// two such servers.
fn shows(role: Role, wanted: &[Group], peer: &[Group], list: &[Group]) -> bool {
    match (role, wanted, peer) {
        (Role::Client, [first, ..], [only]) => {
            let of_kind = |hybrid| list.iter().find(|it| it.is_post_quantum() == hybrid);
            let shares = [of_kind(true), of_kind(false)];
            list.contains(only) && shares.contains(&Some(only)) == (only == first)
        }
        (Role::Server, [only], [_, ..]) => {
            let mut common = peer.iter().filter(|group| list.contains(group));
            common.next() == Some(only) && common.next().is_none()
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_there(role: Role, wanted: &[Group], peer: &[Group]) -> bool {
        find(role, wanted, peer).is_some()
    }

    #[test]
    fn a_server_has_more_groups_if_its_clients_have_not() {
        let server = |wanted, peer: &[Group]| is_there(Role::Server, &[wanted], peer);
        for group in [X25519MLKEM768, P256MLKEM768, P384MLKEM1024, X25519, P256] {
            assert!(server(group, &[group]), "{group}");
            assert!(!server(group, &[]), "{group}");
        }
        assert!(server(X25519MLKEM768, &[P256, X25519MLKEM768]));
        assert!(server(P256, &[X25519MLKEM768, P256]));
        assert!(!server(P256MLKEM768, &[X25519MLKEM768, P256MLKEM768]));
    }

    #[test]
    fn a_client_sends_a_share_of_the_servers_group_or_none() {
        let client = |wanted: &[Group], peer| is_there(Role::Client, wanted, &[peer]);
        for group in [X25519MLKEM768, X25519, P256] {
            assert!(client(&[group], group), "{group}");
        }
        // The share is always that of another group.
        assert!(!client(&[P256MLKEM768], P256MLKEM768));
        for group in [P256MLKEM768, P384MLKEM1024, P256] {
            assert!(client(&[X25519MLKEM768, group], group), "{group}");
        }
        assert!(!client(&[P256, X25519MLKEM768], X25519MLKEM768));
    }
}
