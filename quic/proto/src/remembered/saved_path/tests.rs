use proptest::prelude::*;

use super::*;

fn saved(peer: &str, local: Option<&str>) -> SavedPath {
    let known = KnownPath {
        observed: Observed {
            rtt: Duration::from_millis(300),
            capacity: 3_750_000,
        },
        peer: peer.parse().unwrap(),
        local: local.map(|local| local.parse().unwrap()),
    };
    SavedPath::new(known, at(1_800_000_000))
}

fn at(seconds: u64) -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_secs(seconds)
}

fn all() -> [SavedPath; 3] {
    [
        saved("192.0.2.1", None),
        saved("192.0.2.1", Some("198.51.100.7")),
        saved("2001:db8::1", Some("2001:db8::2")),
    ]
}

#[test]
fn the_bytes_give_back_what_was_saved() {
    for path in all() {
        let bytes = path.to_bytes();
        assert!(bytes.len() <= 60);
        assert_eq!(SavedPath::from_bytes(&bytes), Ok(path));
    }
}

#[test]
fn nothing_but_the_whole_bytes_is_taken() {
    for path in all() {
        let mut bytes = path.to_bytes();
        for len in 0..bytes.len() {
            assert_eq!(SavedPath::from_bytes(&bytes[..len]), Err(InvalidSavedPath));
        }
        bytes.push(0);
        assert_eq!(SavedPath::from_bytes(&bytes), Err(InvalidSavedPath));
    }
}

#[test]
fn what_cannot_be_is_refused() {
    let bytes = saved("192.0.2.1", None).to_bytes();
    let with = |at: usize, number: u64| {
        let mut bytes = bytes.clone();
        bytes[at..at + 8].copy_from_slice(&number.to_be_bytes());
        SavedPath::from_bytes(&bytes)
    };
    assert!(with(1, 60_000_000).is_ok());
    assert!(with(9, 1 << 40).is_ok());
    for (at, number) in [
        (1, 0),
        (1, 60_000_001),
        (1, u64::MAX),
        (9, (1 << 40) + 1),
        (9, u64::MAX),
    ] {
        assert_eq!(with(at, number), Err(InvalidSavedPath), "{number} at {at}");
    }
    for (at, value) in [(0, 0), (0, 2), (25, 0), (25, 5), (25, 16), (30, 4)] {
        let mut bytes = bytes.clone();
        bytes[at] = value;
        assert_eq!(SavedPath::from_bytes(&bytes), Err(InvalidSavedPath));
    }
}

#[test]
fn the_age_is_that_of_the_wall_clock() {
    let path = saved("192.0.2.1", None);
    assert_eq!(path.age(at(1_800_003_600)), Some(Duration::from_secs(3600)));
    assert_eq!(path.age(at(1_799_999_999)), None);
    assert_eq!(path.age(at(0)), None);
}

proptest! {
    #[test]
    fn hostile_bytes_are_refused_or_possible(bytes in prop::collection::vec(any::<u8>(), 0..80)) {
        let mut bytes = bytes;
        if let Some(version) = bytes.first_mut() {
            *version = VERSION;
        }
        if let Ok(path) = SavedPath::from_bytes(&bytes) {
            prop_assert!(!path.rtt().is_zero() && path.rtt() <= LONGEST_RTT);
            prop_assert!(path.capacity() <= LARGEST_CAPACITY);
            prop_assert_eq!(path.to_bytes(), bytes);
        }
    }
}
