use super::*;

fn session(len: usize, since: Instant) -> Session {
    Session {
        lineage: Lineage::PostQuantum,
        audience: Audience::default(),
        context: Arc::default(),
        scope: Arc::default(),
        value: Zeroizing::new(vec![7; len]),
        since,
    }
}

fn id(number: usize) -> Id {
    let mut id = [0; 32];
    id[..8].copy_from_slice(&number.to_be_bytes());
    id
}

fn len(sessions: &Sessions) -> (usize, usize, usize) {
    sessions.with(|by_age| (by_age.places.len(), by_age.order.len(), by_age.bytes))
}

/// Proves: rfc9001 9.2 replayed-0rtt-is-refused
#[test]
fn a_session_is_taken_once_among_many_threads() {
    let (sessions, now) = (Sessions::new(64), Instant::now());
    for number in 0..64 {
        assert!(sessions.put(&id(number), session(1, now)));
    }
    let took = || {
        (0..64)
            .filter(|number| sessions.take(&id(*number), now, |_| true).is_some())
            .count()
    };
    let total: usize = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..4).map(|_| scope.spawn(took)).collect();
        threads
            .into_iter()
            .map(|thread| thread.join().expect("a count"))
            .sum()
    });
    assert_eq!(total, 64);
    assert_eq!(len(&sessions), (0, 0, 0));
}

#[test]
fn the_oldest_goes_where_there_is_no_room() {
    let (sessions, now) = (Sessions::new(4), Instant::now());
    for number in 0..1000 {
        assert!(sessions.put(&id(number), session(10, now)));
    }
    assert_eq!(len(&sessions), (4, 4, 40));
    assert!(sessions.take(&id(995), now, |_| true).is_none());
    assert!(sessions.take(&id(996), now, |_| true).is_some());
    assert!(sessions.take(&id(999), now, |_| true).is_some());
    assert_eq!(len(&sessions).2, 20);
    for number in 1000..1004 {
        assert!(sessions.put(&id(number), session(10, now)));
    }
    assert_eq!(len(&sessions), (4, 4, 40));
}

#[test]
fn contexts_count_as_well() {
    let (sessions, now) = (Sessions::new(CAPACITY), Instant::now());
    let context: Arc<[u8]> = vec![1; 100].into();
    let session = Session {
        context,
        ..session(10, now)
    };
    assert!(sessions.put(&id(1), session));
    assert_eq!(len(&sessions), (1, 1, 110));
}

#[test]
fn long_sessions_are_bounded_by_their_bytes() {
    let (sessions, now) = (Sessions::new(CAPACITY), Instant::now());
    assert!(!sessions.put(&id(0), session(MAX_BYTES + 1, now)));
    for number in 0..40 {
        assert!(sessions.put(&id(number), session(1 << 20, now)));
    }
    assert_eq!(len(&sessions), (16, 16, MAX_BYTES));
}

#[test]
fn what_is_not_wanted_stays() {
    let (sessions, now) = (Sessions::new(4), Instant::now());
    assert!(sessions.put(&id(1), session(1, now)));
    assert!(sessions.take(&id(1), now, |_| false).is_none());
    assert_eq!(sessions.peek(&id(1), now, |it| it.value.len()), Some(1));
    assert!(sessions.take(&id(1), now, |_| true).is_some());
    assert_eq!(sessions.peek(&id(1), now, |it| it.value.len()), None);
}

#[test]
fn a_session_ends_with_its_lifetime() {
    let (sessions, now) = (Sessions::new(4), Instant::now());
    assert!(sessions.put(&id(1), session(1, now)));
    let (last, over) = (now + Duration::from_secs(23 * 3600), now + LIFETIME);
    assert!(sessions.peek(&id(1), last, |_| ()).is_some());
    assert!(sessions.peek(&id(1), over, |_| ()).is_none());
    assert!(sessions.take(&id(1), over, |_| true).is_none());
    assert_eq!(len(&sessions), (0, 0, 0));
}

#[test]
fn what_is_no_id_of_ours_is_not_found() {
    let sessions = Sessions::new(4);
    assert!(!sessions.put(b"short", session(1, Instant::now())));
    assert!(sessions.take(&[], Instant::now(), |_| true).is_none());
}
