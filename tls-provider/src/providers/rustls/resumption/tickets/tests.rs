use super::*;
use crate::{providers::rustls::locals::ticket_facts::Issue, tickets::rustls::Shared};

const OPEN: Audience = [1; 16];

fn issue(lineage: Option<Lineage>) {
    ticket_facts::begin(Issue {
        lineage,
        ..Issue::default()
    });
}

fn issue_in(scope: &[u8]) {
    ticket_facts::begin(Issue {
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
        assert_eq!(ticket_facts::take_found().expect("noted").lineage, lineage);
        assert_eq!(require.decrypt(&ticket).is_some(), under_require);
        assert_eq!(ticket_facts::take_found().is_some(), under_require);
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
        ticket_facts::take_found().expect("noted").lineage,
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
            issue(Some(Lineage::PostQuantum));
            assert_eq!(opening.decrypt(&ticket).is_some(), from == to);
        }
    }
    for (from, issuing) in kept.iter().enumerate() {
        for (to, opening) in kept.iter().enumerate() {
            issue(Some(Lineage::PostQuantum));
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

/// Number of identities that fit into a ClientHello.
const MANY: usize = 240;

/// A ticketer that counts what it is asked to open.
#[derive(Debug, Default)]
struct Counts(std::sync::atomic::AtomicUsize);

impl ProducesTickets for Counts {
    fn enabled(&self) -> bool {
        true
    }

    fn lifetime(&self) -> u32 {
        1
    }

    fn encrypt(&self, _: &[u8]) -> Option<Vec<u8>> {
        None
    }

    fn decrypt(&self, _: &[u8]) -> Option<Vec<u8>> {
        self.0.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        None
    }
}

#[test]
fn few_tickets_of_a_client_are_looked_at() {
    let counts = Arc::new(Counts::default());
    let sealed = Sealed {
        inner: counts.clone(),
        policy: KeyExchange::PreferPostQuantum,
        audience: OPEN,
    };
    for calls in 1..3 {
        issue(None);
        for _ in 0..MANY {
            assert!(sealed.decrypt(b"a ticket").is_none());
        }
        let count = counts.0.load(std::sync::atomic::Ordering::Relaxed);
        assert_eq!(count, calls * ticket_facts::TICKETS as usize);
    }
    let shared = Shared::default();
    let kept = Kept {
        sessions: shared.sessions().clone(),
        policy: KeyExchange::PreferPostQuantum,
        audience: OPEN,
    };
    issue(Some(Lineage::PostQuantum));
    assert!(kept.put(vec![1; 32], vec![2]));
    for _ in 0..MANY {
        assert!(kept.take(&[3; 32]).is_none());
    }
    assert!(kept.take(&[1; 32]).is_none(), "it comes too late");
    issue(Some(Lineage::PostQuantum));
    assert!(kept.take(&[1; 32]).is_some(), "it stays for the next call");
}

#[test]
fn the_tickets_of_strangers_cost_no_derivation_of_keys() {
    use crate::tickets::secrets::{DERIVED, Secrets};

    let secrets = Secrets::new([1; 32]);
    for other in 2..=4 {
        secrets.also_accept([other; 32]);
    }
    let ticketer = Shared::of(secrets.clone()).ticketer().expect("a ticketer");
    let ticket = ticketer.encrypt(b"state").expect("a ticket");
    let before = DERIVED.get();
    for byte in 0..MANY {
        assert!(ticketer.decrypt(&[byte as u8; 200]).is_none());
    }
    assert_eq!(ticketer.decrypt(&ticket).as_deref(), Some(&b"state"[..]));
    // The twelve hours of a key may expire in between.
    assert!(DERIVED.get() - before <= 12, "{}", DERIVED.get() - before);

    secrets.rotate_to([9; 32]);
    assert!(ticketer.decrypt(&ticket).is_some(), "it is still accepted");
    let newer = ticketer.encrypt(b"state").expect("a ticket");
    assert_ne!(newer[..16], ticket[..16], "the new secret makes tickets");
}
