use super::*;
use crate::rustls::chain::Issue;
use crate::tickets::rustls::Shared;

const OPEN: Audience = [1; 16];

fn issue(lineage: Option<Lineage>) {
    chain::begin(Issue {
        lineage,
        ..Issue::default()
    });
}

fn issue_in(scope: &[u8]) {
    chain::begin(Issue {
        lineage: Some(Lineage::PostQuantum),
        scope: scope.into(),
        ..Issue::default()
    });
}

fn sealed(policy: KeyExchange, shared: &Shared) -> Sealed {
    let inner = shared.ticketer().expect("a ticketer");
    Sealed {
        inner,
        policy,
        audience: OPEN,
    }
}

#[test]
fn a_ticket_carries_its_lineage() {
    let shared = Shared::default();
    let prefer = sealed(KeyExchange::PreferPostQuantum, &shared);
    let require = sealed(KeyExchange::RequirePostQuantum, &shared);
    for (lineage, under_require) in [(Lineage::PostQuantum, true), (Lineage::Classical, false)] {
        issue(Some(lineage));
        let ticket = prefer.encrypt(b"state").expect("a ticket");
        assert_eq!(prefer.decrypt(&ticket).as_deref(), Some(&b"state"[..]));
        assert_eq!(chain::take_found().expect("noted").lineage, lineage);
        assert_eq!(require.decrypt(&ticket).is_some(), under_require);
        assert_eq!(chain::take_found().is_some(), under_require);
    }
}

#[test]
fn nothing_is_issued_without_a_lineage() {
    let shared = Shared::default();
    issue(None);
    assert!(
        sealed(KeyExchange::PreferPostQuantum, &shared)
            .encrypt(b"state")
            .is_none()
    );
    let kept = Kept {
        sessions: shared.sessions().clone(),
        policy: KeyExchange::PreferPostQuantum,
        audience: OPEN,
    };
    assert!(!kept.put(vec![1; 32], vec![2]));
}

#[test]
fn a_ticket_without_a_mark_of_ours_is_refused() {
    let shared = Shared::default();
    let sealed = sealed(KeyExchange::PreferPostQuantum, &shared);
    for plain in [&b""[..], b"\x02state"] {
        let ticket = sealed.inner.encrypt(plain).expect("a ticket");
        assert!(sealed.decrypt(&ticket).is_none());
    }
    assert!(sealed.decrypt(b"forged").is_none());
}

#[test]
fn a_kept_session_of_classical_lineage_is_left_to_policies_that_take_it() {
    let shared = Shared::default();
    let kept = |policy| Kept {
        sessions: shared.sessions().clone(),
        policy,
        audience: OPEN,
    };
    issue(Some(Lineage::Classical));
    assert!(kept(KeyExchange::PreferPostQuantum).put(vec![1; 32], vec![2]));
    assert!(
        kept(KeyExchange::RequirePostQuantum)
            .take(&[1; 32])
            .is_none()
    );
    let taken = kept(KeyExchange::PreferPostQuantum).take(&[1; 32]);
    assert_eq!(taken.as_deref(), Some(&[2][..]));
    assert_eq!(
        chain::take_found().expect("noted").lineage,
        Lineage::Classical
    );
}

#[test]
fn a_ticket_is_for_servers_that_ask_clients_in_the_same_way() {
    use crate::Trust;
    let roots = |bytes: &[u8]| Trust::roots_der([crate::CertificateDer::from(bytes.to_vec())]);
    let kinds = [
        ClientAuth::None,
        ClientAuth::Optional(roots(b"a")),
        ClientAuth::Required(roots(b"a")),
        ClientAuth::Required(roots(b"b")),
        ClientAuth::Required(Trust::dangerously_accept_any_certificate()),
    ];
    let shared = Shared::default();
    let sealed = kinds.each_ref().map(|auth| Sealed {
        audience: audience(auth, Profile::Default).expect("roots"),
        ..sealed(KeyExchange::PreferPostQuantum, &shared)
    });
    let kept = kinds.each_ref().map(|auth| Kept {
        sessions: shared.sessions().clone(),
        policy: KeyExchange::PreferPostQuantum,
        audience: audience(auth, Profile::Default).expect("roots"),
    });
    issue(Some(Lineage::PostQuantum));
    for (from, issuing) in sealed.iter().enumerate() {
        let ticket = issuing.encrypt(b"state").expect("a ticket");
        for (to, opening) in sealed.iter().enumerate() {
            assert_eq!(opening.decrypt(&ticket).is_some(), from == to);
        }
    }
    for (from, issuing) in kept.iter().enumerate() {
        for (to, opening) in kept.iter().enumerate() {
            let id = vec![u8::try_from(10 * from + to).expect("small"); 32];
            assert!(issuing.put(id.clone(), vec![1]));
            assert_eq!(opening.take(&id).is_some(), from == to);
        }
    }
}

#[test]
fn a_ticket_is_opened_only_in_its_scope() {
    let shared = Shared::default();
    let sealed = sealed(KeyExchange::PreferPostQuantum, &shared);
    let kept = Kept {
        sessions: shared.sessions().clone(),
        policy: KeyExchange::PreferPostQuantum,
        audience: OPEN,
    };
    let scopes: [&[u8]; 4] = [b"", b"a", b"b", &[1; 255]];
    for (number, from) in scopes.into_iter().enumerate() {
        issue_in(from);
        let ticket = sealed.encrypt(b"state").expect("a ticket");
        let id = vec![u8::try_from(number).expect("small"); 32];
        assert!(kept.put(id.clone(), vec![1]));
        for to in scopes.into_iter().filter(|to| *to != from) {
            issue_in(to);
            assert_eq!(sealed.decrypt(&ticket), None);
            assert_eq!(kept.take(&id), None);
        }
        issue_in(from);
        assert_eq!(sealed.decrypt(&ticket).as_deref(), Some(&b"state"[..]));
        assert_eq!(kept.take(&id).as_deref(), Some(&[1][..]));
    }
    issue_in(&[1; 256]);
    assert_eq!(sealed.encrypt(b"state"), None);
}
