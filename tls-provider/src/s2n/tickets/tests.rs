use super::*;

const HOUR: Duration = Duration::from_hours(1);

#[test]
fn a_ticket_is_kept_until_it_expires_or_a_newer_one_comes() {
    let (tickets, now) = (Tickets::default(), Instant::now());
    tickets.insert("a", vec![1], HOUR, now);
    assert_eq!(tickets.get("a", now).as_deref(), Some(&vec![1]));
    assert_eq!(tickets.get("b", now), None);
    tickets.insert("a", vec![2], 2 * HOUR, now);
    assert_eq!(tickets.get("a", now + HOUR).as_deref(), Some(&vec![2]));
    assert_eq!(tickets.get("a", now + 2 * HOUR), None);
    assert_eq!(tickets.get("a", now), None, "an expired ticket is gone");
}

#[test]
fn no_ticket_lives_longer_than_seven_days() {
    let (tickets, now) = (Tickets::default(), Instant::now());
    tickets.insert("a", vec![1], 1000 * HOUR, now);
    assert!(tickets.get("a", now + 167 * HOUR).is_some());
    assert!(tickets.get("a", now + 168 * HOUR).is_none());
}

#[test]
fn the_oldest_ticket_makes_room() {
    let (tickets, now) = (Tickets::default(), Instant::now());
    for index in 0..=REMEMBERED_SERVERS {
        let at = now + Duration::from_secs(index as u64);
        tickets.insert(&index.to_string(), vec![1], HOUR, at);
    }
    assert_eq!(tickets.0.lock().expect("tickets").len(), REMEMBERED_SERVERS);
    assert!(tickets.get("0", now).is_none() && tickets.get("1", now).is_some());
    tickets.insert("1", vec![2], HOUR, now);
    assert!(
        tickets.get("2", now).is_some(),
        "a name that is there takes no room"
    );
}
