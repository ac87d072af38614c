use super::*;

const HOUR: Duration = Duration::from_secs(3600);
const PREFER: (&KeyExchange, &[u8]) = (&KeyExchange::PreferPostQuantum, &[]);

fn state(byte: u8) -> State {
    State {
        bytes: Zeroizing::new(vec![byte]),
        lineage: Lineage::Classical,
        scope: Arc::default(),
    }
}

#[test]
fn a_ticket_is_kept_until_it_expires_or_a_newer_one_comes() {
    let (tickets, now) = (Tickets::default(), Instant::now());
    tickets.insert("a", state(1), HOUR, now);
    assert_eq!(tickets.get("a", PREFER, now), Some(state(1)));
    assert_eq!(tickets.get("b", PREFER, now), None);
    tickets.insert("a", state(2), 2 * HOUR, now);
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
    let (tickets, now) = (Tickets::default(), Instant::now());
    tickets.insert("a", state(1), 1000 * HOUR, now);
    assert!(tickets.get("a", PREFER, now + 167 * HOUR).is_some());
    assert!(tickets.get("a", PREFER, now + 168 * HOUR).is_none());
}

#[test]
fn the_oldest_ticket_makes_room() {
    let (tickets, now) = (Tickets::default(), Instant::now());
    for index in 0..=REMEMBERED_SERVERS {
        let at = now + Duration::from_secs(index as u64);
        tickets.insert(&index.to_string(), state(1), HOUR, at);
    }
    assert_eq!(tickets.0.lock().expect("tickets").len(), REMEMBERED_SERVERS);
    assert!(tickets.get("0", PREFER, now).is_none() && tickets.get("1", PREFER, now).is_some());
    tickets.insert("1", state(2), HOUR, now);
    assert!(
        tickets.get("2", PREFER, now).is_some(),
        "a name that is there takes no room"
    );
}

#[test]
fn a_ticket_of_classical_lineage_stays_where_the_policy_refuses_it() {
    let (tickets, now) = (Tickets::default(), Instant::now());
    tickets.insert("a", state(1), HOUR, now);
    assert_eq!(
        tickets.get("a", (&KeyExchange::RequirePostQuantum, &[]), now),
        None
    );
    assert_eq!(tickets.get("a", PREFER, now), Some(state(1)));
}

#[test]
fn a_ticket_is_used_only_in_its_scope() {
    let (tickets, now) = (Tickets::default(), Instant::now());
    let bound = State {
        scope: b"a"[..].into(),
        ..state(1)
    };
    tickets.insert("a", bound.clone(), HOUR, now);
    assert_eq!(tickets.get("a", PREFER, now), None);
    assert_eq!(tickets.get("a", (PREFER.0, b"b"), now), None);
    assert_eq!(tickets.get("a", (PREFER.0, b"a"), now), Some(bound));
}
