use std::sync::Mutex;

use proptest::prelude::*;

use super::*;
use crate::MemorySessions;

const HOUR: Duration = Duration::from_secs(3600);
const PREFER: Wanted<'_> = of(&KeyExchange::PreferPostQuantum, &[]);

const fn of<'a>(policy: &'a KeyExchange, scope: &'a [u8]) -> Wanted<'a> {
    Wanted { policy, scope }
}

fn state(byte: u8) -> State {
    State {
        bytes: Zeroizing::new(vec![byte]),
        lineage: Lineage::Classical,
        scope: Arc::default(),
    }
}

/// Tickets in memory, and a time of whole seconds.
fn tickets() -> (Tickets, SystemTime) {
    let now = UNIX_EPOCH + Duration::from_secs(1_795_305_600);
    (Tickets::new(Arc::new(MemorySessions::new()), [1; 16]), now)
}

#[test]
fn a_ticket_is_kept_until_it_expires_or_a_newer_one_comes() {
    let (tickets, now) = tickets();
    tickets.insert("a", &state(1), HOUR, now);
    assert_eq!(tickets.get("a", PREFER, now), Some(state(1)));
    assert_eq!(tickets.get("b", PREFER, now), None);
    tickets.insert("a", &state(2), 2 * HOUR, now);
    assert_eq!(tickets.get("a", PREFER, now + HOUR), Some(state(2)));
    assert_eq!(tickets.get("a", PREFER, now + 2 * HOUR), None);
    assert_eq!(
        tickets.get("a", PREFER, now),
        None,
        "an expired ticket is gone"
    );
}

#[test]
fn no_ticket_lives_longer_than_seven_days() {
    let (tickets, now) = tickets();
    tickets.insert("a", &state(1), 1000 * HOUR, now);
    assert!(tickets.get("a", PREFER, now + 167 * HOUR).is_some());
    assert!(tickets.get("a", PREFER, now + 168 * HOUR).is_none());
}

#[test]
fn a_ticket_of_classical_lineage_stays_where_the_policy_refuses_it() {
    let (tickets, now) = tickets();
    tickets.insert("a", &state(1), HOUR, now);
    assert_eq!(
        tickets.get("a", of(&KeyExchange::RequirePostQuantum, &[]), now),
        None
    );
    assert_eq!(tickets.get("a", PREFER, now), Some(state(1)));
}

#[test]
fn a_ticket_is_used_only_in_its_scope() {
    let (tickets, now) = tickets();
    let bound = State {
        scope: b"a"[..].into(),
        ..state(1)
    };
    tickets.insert("a", &bound, HOUR, now);
    assert_eq!(tickets.get("a", PREFER, now), None);
    assert_eq!(tickets.get("a", of(PREFER.policy, b"b"), now), None);
    assert_eq!(tickets.get("a", of(PREFER.policy, b"a"), now), Some(bound));
}

/// A store that returns whatever it was told to.
struct Liar(Mutex<Vec<u8>>);

impl SessionStore for Liar {
    fn put(&self, _: SessionKey<'_>, _: &[u8]) {}

    fn take(&self, _: SessionKey<'_>) -> Option<Vec<u8>> {
        Some(self.0.lock().expect("bytes").clone())
    }
}

proptest! {
    #[test]
    fn a_session_survives_its_bytes(
        bytes in prop::collection::vec(any::<u8>(), 0..50),
        scope in prop::collection::vec(any::<u8>(), 0..50),
        post_quantum in any::<bool>(),
    ) {
        let lineage = if post_quantum { Lineage::PostQuantum } else { Lineage::Classical };
        let state = State { bytes: Zeroizing::new(bytes), lineage, scope: scope.into() };
        let (_, now) = tickets();
        let session = encode(&state, now).expect("bytes");
        prop_assert_eq!(decode(&session), Some((state, now)));
        // Truncations: at most the ticket itself is shorter.
        for len in 0..MAGIC.len() + 11 {
            prop_assert_eq!(decode(&session[..len]), None);
        }
    }

    #[test]
    fn foreign_bytes_are_no_ticket(
        bytes in prop::collection::vec(any::<u8>(), 0..60),
        with_magic in any::<bool>(),
    ) {
        let bytes = if with_magic { [MAGIC, &bytes].concat() } else { bytes };
        let (_, now) = tickets();
        let liar = Tickets::new(Arc::new(Liar(Mutex::new(bytes))), [1; 16]);
        let found = liar.get("a", PREFER, now);
        prop_assert!(with_magic || found.is_none());
    }
}
