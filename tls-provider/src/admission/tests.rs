use super::*;

fn hello(groups: &[Group], shares: &[Group]) -> ClientHello {
    ClientHello::of_groups(groups, shares)
}

const HYBRID: Group = Group::X25519MLKEM768;
const HYBRID_1024: Group = Group::SECP384R1MLKEM1024;
const X25519: Group = Group::X25519;
const P256: Group = Group::SECP256R1;

#[test]
fn a_share_of_the_preferred_kind_wins() {
    let ours = [HYBRID, HYBRID_1024, X25519, P256];
    for (peer, shares, chosen) in [
        (&[HYBRID, X25519][..], &[HYBRID, X25519][..], HYBRID),
        (&[HYBRID, HYBRID_1024], &[HYBRID_1024], HYBRID_1024),
        (&[X25519, HYBRID_1024, HYBRID], &[X25519], HYBRID),
        (&[P256, X25519], &[P256], P256),
        (&[P256, X25519], &[], X25519),
        (&[Group(0x6a6a), X25519], &[Group(0x6a6a)], X25519),
        // A configuration may not repeat a group, but a peer may.
        (&[X25519, X25519, HYBRID, HYBRID], &[X25519], HYBRID),
    ] {
        let found = choose_group(&ours, &hello(peer, shares)).expect("a common group");
        assert_eq!(found, chosen, "of {peer:?} with shares for {shares:?}");
    }
}

#[test]
fn the_order_is_ours() {
    let peer = hello(&[HYBRID, X25519], &[HYBRID, X25519]);
    assert_eq!(choose_group(&[X25519, HYBRID], &peer), Ok(X25519));
    assert_eq!(choose_group(&[HYBRID, X25519], &peer), Ok(HYBRID));
}

#[test]
fn no_common_group_is_alert_40() {
    for peer in [hello(&[P256], &[P256]), hello(&[], &[])] {
        let error = choose_group(&[HYBRID], &peer).expect_err("no common group");
        assert_eq!(error.alert, Alert::HANDSHAKE_FAILURE);
        let groups = error.groups().expect("both lists");
        assert_eq!(
            (&*groups.ours, &*groups.peers),
            (&[HYBRID][..], peer.groups())
        );
    }
}

#[test]
fn the_error_names_the_groups_of_both_ends() {
    let peer = hello(&[P256, Group(0x6a6a)], &[P256]);
    let error = choose_group(&[HYBRID, X25519], &peer).expect_err("no common group");
    let text = "this end takes X25519MLKEM768, X25519, the peer secp256r1, group 0x6a6a";
    assert!(error.detail.ends_with(text), "{error}");
    let many: Vec<Group> = (0..60).map(|code| Group(0x8000 + code)).collect();
    let error = choose_group(&[HYBRID], &hello(&many, &[])).expect_err("no common group");
    assert_eq!(error.groups().map(|groups| groups.peers.len()), Some(32));
}

#[test]
fn names_are_found_whatever_their_case() {
    let names = [NamedPolicy {
        server_name: "Example.Test".to_owned(),
        policy: KeyExchange::OnlyClassical,
    }];
    let policies = ByServerName::build(&KeyExchange::default(), &names, |p| Ok(p.clone()));
    let policies = policies.expect("policies");
    assert_eq!(
        policies.get(Some("eXample.test")),
        &KeyExchange::OnlyClassical
    );
    assert_eq!(policies.get(Some("other.test")), policies.default());
    assert_eq!(policies.get(None), policies.default());
}
