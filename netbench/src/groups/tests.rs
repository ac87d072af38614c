use hybriq::{Backend, Group};

use super::{Plan, Policy, Selection, backend, parse};

#[test]
fn names_are_read_whatever_their_case() {
    assert_eq!(parse("ALL").unwrap(), Selection::All);
    assert_eq!(
        parse("x25519, X25519MLKEM768").unwrap(),
        Selection::Named(vec![Group::X25519, Group::X25519MLKEM768])
    );
}

#[test]
fn a_group_named_twice_is_measured_once() {
    assert_eq!(
        parse("X25519,MLKEM768,x25519").unwrap(),
        Selection::Named(vec![Group::X25519, Group::MLKEM768])
    );
    assert_eq!(parse("all,X25519").unwrap(), Selection::All);
    assert_eq!(parse("X25519, all").unwrap(), Selection::All);
    assert!(parse("all,X448").is_err());
}

#[test]
fn an_unknown_group_is_refused_with_the_valid_names_on_one_line() {
    let error = parse("X25519,X448").unwrap_err().to_string();
    assert!(
        error.starts_with("unknown group 'X448'; valid: "),
        "{error}"
    );
    for group in Group::ALL {
        assert!(error.contains(&group.to_string()), "{error}");
    }
    assert_eq!(error.lines().count(), 1);
    assert!(parse("").is_err());
    assert!(parse("secp521r1").is_err());
}

#[test]
fn an_unknown_provider_is_refused_with_the_valid_names_on_one_line() {
    let error = backend("openssl").unwrap_err().to_string();
    assert_eq!(
        error,
        "unknown TLS provider 'openssl'; valid: rustls, s2n-tls"
    );
}

#[test]
fn rustls_has_every_group_exactly_at_both_ends() {
    let plans = Selection::All
        .plans(Backend::Rustls, |group, reason| {
            panic!("{group} was skipped: {reason}")
        })
        .unwrap();
    assert_eq!(
        plans.iter().map(|plan| plan.group).collect::<Vec<_>>(),
        Group::ALL
    );
    for Plan {
        group,
        server,
        client,
    } in plans
    {
        assert_eq!(server.policy, Policy::Exactly(group.0));
        assert_eq!(client, server);
    }
}

#[test]
fn with_s2n_tls_only_the_group_it_lacks_is_left_out() {
    let mut skipped = Vec::new();
    let plans = Selection::All
        .plans(Backend::S2nTls, |group, _| skipped.push(group))
        .unwrap();
    assert_eq!(skipped, [Group::MLKEM768]);
    for Plan {
        group,
        server,
        client,
    } in &plans
    {
        assert_eq!(server.provider, "s2n-tls");
        assert!(server.policy.key_exchange().groups().contains(group));
        assert_eq!(client.policy, Policy::Exactly(group.0));
    }
    let named = Selection::Named(skipped).plans(Backend::S2nTls, |_, _| {});
    assert!(named.is_err());
}
