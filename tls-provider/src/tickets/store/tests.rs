use super::*;

fn key(server_name: &str) -> SessionKey<'_> {
    let policy = [1; 16];
    SessionKey {
        server_name,
        policy,
    }
}

#[test]
fn a_session_is_taken_once_and_the_newest_counts() {
    let store = MemorySessions::new();
    store.put(key("a"), &[1]);
    store.put(key("a"), &[2]);
    assert_eq!(store.take(key("b")), None);
    let policy = [2; 16];
    let of_another = SessionKey { policy, ..key("a") };
    assert_eq!(store.take(of_another), None);
    assert_eq!(store.take(key("a")), Some(vec![2]));
    assert_eq!(store.take(key("a")), None);
}

#[test]
fn the_oldest_session_makes_room() {
    let store = MemorySessions::new();
    for number in 0..=SERVERS {
        store.put(key(&number.to_string()), &[1]);
    }
    assert_eq!(store.take(key("0")), None, "the oldest");
    store.put(key("1"), &[2]);
    assert_eq!(
        store.take(key("1")),
        Some(vec![2]),
        "a known name takes no room"
    );
    assert!(store.take(key("2")).is_some());
    assert_eq!(
        store.0.lock().expect("the store").sessions.len(),
        SERVERS - 2
    );
}

#[test]
fn debug_output_shows_no_session() {
    let store = MemorySessions::new();
    store.put(key("a"), &[0x5a; 8]);
    assert_eq!(format!("{store:?}"), "MemorySessions { .. }");
}
