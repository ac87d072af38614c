use super::*;
use crate::rustls::chain::Issue;

fn issue(lineage: Option<Lineage>) {
    chain::begin(Issue {
        lineage,
        context: Arc::default(),
    });
}

fn sealed(policy: KeyExchange, shared: &Shared) -> Sealed {
    let inner = shared.ticketer().expect("a ticketer");
    Sealed { inner, policy }
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
