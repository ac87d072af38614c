use super::*;

#[test]
fn a_session_is_taken_once_and_the_newest_counts() {
    let store = MemorySessions::new();
    store.put("a", &[1]);
    store.put("a", &[2]);
    assert_eq!(store.take("b"), None);
    assert_eq!(store.take("a"), Some(vec![2]));
    assert_eq!(store.take("a"), None);
}

#[test]
fn the_oldest_session_makes_room() {
    let store = MemorySessions::new();
    for number in 0..=SERVERS {
        store.put(&number.to_string(), &[1]);
    }
    assert_eq!(store.take("0"), None, "the oldest");
    store.put("1", &[2]);
    assert_eq!(store.take("1"), Some(vec![2]), "a known name takes no room");
    assert!(store.take("2").is_some());
    assert_eq!(
        store.0.lock().expect("the store").sessions.len(),
        SERVERS - 2
    );
}

#[test]
fn debug_output_shows_no_session() {
    let store = MemorySessions::new();
    store.put("a", &[0x5a; 8]);
    assert_eq!(format!("{store:?}"), "MemorySessions { .. }");
}
