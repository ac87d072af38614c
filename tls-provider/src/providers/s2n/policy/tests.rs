use super::*;
use crate::{Backend, ClientHello, ClientOptions, ClientStart, Flight, PerLevel, Trust};

/// A later version of s2n-tls may change what a policy sends.
#[test]
fn the_table_is_what_s2n_tls_sends() {
    for policy in &POLICIES {
        let options = ClientOptions::new()
            .trust(Trust::dangerously_accept_any_certificate())
            .key_exchange(KeyExchange::Exactly(policy.groups.to_vec()))
            .suites(policy.suites.to_vec());
        let provider = Backend::S2nTls.client(&options).expect(policy.name);
        let start = ClientStart {
            server_name: "example.test",
            ..ClientStart::default()
        };
        let mut session = provider.session(start.into()).expect("a session");
        let mut tx = Flight::default();
        session
            .drive(&mut PerLevel::default(), &mut tx)
            .expect("a ClientHello");
        let (hello, _) = ClientHello::parse(&tx.crypto.initial)
            .expect("well-formed")
            .expect("whole");
        assert_eq!(hello.groups(), policy.groups, "{}", policy.name);
        let mut schemes: Vec<u16> = policy.schemes().iter().map(|it| it.0).collect();
        let mut announced = hello.signature_schemes().to_vec();
        schemes.sort_unstable();
        announced.sort_unstable();
        assert_eq!(announced, schemes, "{}", policy.name);
        let suites: Vec<u16> = policy.suites.iter().map(|suite| *suite as u16).collect();
        let offered: Vec<u16> = hello
            .cipher_suites()
            .iter()
            .copied()
            .filter(|suite| suite >> 8 == 0x13)
            .collect();
        assert_eq!(offered, suites, "{}", policy.name);
    }
}

#[test]
fn each_list_has_one_policy() {
    for policy in &POLICIES {
        let same = POLICIES
            .iter()
            .filter(|other| other.groups == policy.groups);
        assert_eq!(same.count(), 1, "{}", policy.name);
    }
}

#[test]
fn general_policies_mean_what_they_say() {
    let require = find(&KeyExchange::RequirePostQuantum, None).expect("a policy");
    assert!(require.groups.iter().all(|group| group.is_post_quantum()));
    let classical = find(&KeyExchange::OnlyClassical, None).expect("a policy");
    assert_eq!(classical.groups, KeyExchange::OnlyClassical.groups());
    let prefer = find(&KeyExchange::PreferPostQuantum, None).expect("a policy");
    let pure = strict_twin(&KeyExchange::PreferPostQuantum, prefer).expect("a policy");
    for group in KeyExchange::PreferPostQuantum.groups() {
        let has = prefer.groups.contains(&group) || pure.groups.contains(&group);
        assert_eq!(has, group != Group::MLKEM768, "{group}");
    }
    assert!(strict_twin(&KeyExchange::RequirePostQuantum, require).is_none());
}
