use std::time::{Duration, UNIX_EPOCH};

use proptest::prelude::*;

use super::*;
use hybriq_tls::SessionKey;

const YEAR: Duration = Duration::from_secs(365 * 24 * 60 * 60);

fn now() -> SystemTime {
    UNIX_EPOCH + 56 * YEAR
}

/// A record of one port, as a handshake leaves it: a group, or a pin for a year.
fn record(group: u16, pinned_until: Option<SystemTime>) -> ServerRecord {
    let mut bytes = vec![1, 0, 0, 0, 0, 0, 1];
    bytes.extend(443_u16.to_be_bytes());
    bytes.push(1);
    bytes.extend(group.to_be_bytes());
    let until = pinned_until.map_or(0, |it| it.duration_since(UNIX_EPOCH).unwrap().as_secs());
    bytes.extend(until.to_be_bytes());
    bytes.extend([0; 13]);
    ServerRecord::from_bytes(&bytes).unwrap()
}

fn pinned() -> ServerRecord {
    record(0, Some(now() + YEAR))
}

fn plain() -> ServerRecord {
    record(0x0202, None)
}

fn put(memory: &ServerMemory, name: &str, record: &ServerRecord) {
    put_at(now(), memory, name, record);
}

fn put_at(now: SystemTime, memory: &ServerMemory, name: &str, record: &ServerRecord) {
    memory.change(now, &ServerKey::new(name), &mut |known| {
        *known = record.clone();
    });
}

/// A server with a session of so many bytes.
fn put_session(memory: &ServerMemory, name: &str, bytes: usize) {
    memory.change(now(), &ServerKey::new(name), &mut |record| {
        record.put_session([1; 16], &vec![7; bytes]);
    });
}

/// Returns the bytes that are counted, and those that are there.
fn bytes(memory: &ServerMemory) -> [usize; 2] {
    let counted = memory.with(|memory| memory.bytes);
    [counted, memory.to_bytes().len() - MAGIC.len()]
}

#[test]
fn a_flood_of_servers_does_not_evict_one_that_is_pinned() {
    let memory = ServerMemory::new();
    put(&memory, "bank", &pinned());
    for number in 0..3 * SERVERS {
        put(&memory, &number.to_string(), &plain());
    }
    assert_eq!(memory.len(), SERVERS);
    assert!(memory.get("bank").is_some());
    assert!(memory.get("0").is_none());
    let newest = 3 * SERVERS - 1;
    assert!(memory.get(&newest.to_string()).is_some());
    assert_eq!(memory.dropped(), 0);
}

#[test]
fn when_all_are_pinned_a_new_server_is_counted_and_not_stored() {
    let memory = ServerMemory::new();
    for number in 0..SERVERS {
        put(&memory, &number.to_string(), &pinned());
    }
    put(&memory, "new", &pinned());
    assert_eq!((memory.len(), memory.dropped()), (SERVERS, 1));
    assert!(memory.get("new").is_none());
    assert!(memory.get("0").is_some());
    // Those that are stored change as before.
    put(&memory, "0", &plain());
    assert_eq!(memory.get("0"), Some(plain()));
    put(&memory, "0", &pinned());
    // A pin that is over makes room.
    let later = now() + YEAR;
    put_at(later, &memory, "new", &record(0, Some(later + YEAR)));
    assert!(memory.get("new").is_some());
    assert_eq!((memory.len(), memory.dropped()), (SERVERS, 1));
}

#[test]
fn the_server_that_changed_longest_ago_goes() {
    let memory = ServerMemory::new();
    for number in 0..SERVERS {
        put_session(&memory, &number.to_string(), number + 1);
    }
    put_session(&memory, "0", 1000);
    put_session(&memory, "one more", 1);
    assert_eq!(memory.len(), SERVERS);
    assert!(memory.get("1").is_none());
    assert!(memory.get("0").is_some() && memory.get("2").is_some());
    assert!(memory.get("one more").is_some());
}

#[test]
fn a_record_without_content_takes_no_room() {
    let memory = ServerMemory::new();
    put(&memory, "a", &ServerRecord::default());
    assert!(memory.is_empty());
    put(&memory, "a", &pinned());
    memory.unpin("A.", 443);
    assert!(memory.is_empty());
    put(&memory, &"a".repeat(NAME_LEN + 1), &pinned());
    assert!(memory.is_empty());
    assert_eq!(bytes(&memory), [0, 0]);
}

/// Large records cannot push out what must stay, nor take more room than there is.
#[test]
fn the_bytes_are_bounded_and_the_oldest_records_shrink_to_their_pins() {
    let memory = ServerMemory::new();
    put(&memory, "bank", &pinned());
    put_session(&memory, "bank", ServerRecord::SESSION_LEN);
    let rooms = BYTES / ServerRecord::SESSION_LEN;
    for number in 0..2 * rooms {
        put_session(&memory, &number.to_string(), ServerRecord::SESSION_LEN);
        assert!(bytes(&memory)[0] <= BYTES);
    }
    assert_eq!(memory.get("bank"), Some(pinned()));
    assert!(memory.get("0").is_none());
    assert!(memory.len() > rooms - 3, "{}", memory.len());
    let [counted, there] = bytes(&memory);
    assert_eq!(counted, there);
    memory.forget("BANK");
    assert!(memory.get("bank").is_none());
    assert_eq!(bytes(&memory)[0], bytes(&memory)[1]);
}

#[test]
fn the_bytes_keep_servers_and_their_order() {
    let memory = ServerMemory::new();
    for number in 0..SERVERS {
        put(&memory, &number.to_string(), &plain());
    }
    put(&memory, "0", &pinned());
    let bytes = memory.to_bytes();
    let read = ServerMemory::from_bytes(&bytes).unwrap();
    assert_eq!(read.to_bytes(), bytes);
    assert_eq!(read.names(), memory.names());
    assert!(read.get("0").unwrap().is_pinned(now()));
    put(&read, "new", &plain());
    assert!(read.get("1").is_none() && read.get("2").is_some());
    let empty = ServerMemory::new().to_bytes();
    assert!(ServerMemory::from_bytes(&empty).unwrap().is_empty());
}

#[test]
fn bytes_that_were_damaged_are_refused() {
    let memory = ServerMemory::new();
    put(&memory, "a", &pinned());
    put(&memory, "b", &pinned());
    let bytes = memory.to_bytes();
    let whole = [
        MAGIC.len(),
        MAGIC.len() + (bytes.len() - MAGIC.len()) / 2,
        bytes.len(),
    ];
    for end in 0..=bytes.len() {
        let read = ServerMemory::from_bytes(&bytes[..end]);
        assert_eq!(read.is_ok(), whole.contains(&end), "{end} bytes");
    }
    let refused = |bytes: &[u8]| {
        let error = ServerMemory::from_bytes(bytes).unwrap_err();
        assert_eq!(error, InvalidServerMemory);
    };
    refused(&[&bytes[..], &bytes[MAGIC.len()..]].concat());
    refused(b"hybriq origins 1\n");
    refused(&[b"hybriq servers 2\n", &bytes[MAGIC.len()..]].concat());
    let named = |name: &str| {
        let mut record = Vec::new();
        pinned().write(&mut record);
        let lengths = [
            &(name.len() as u16).to_be_bytes()[..],
            &(record.len() as u32).to_be_bytes(),
        ];
        [MAGIC, &lengths.concat(), name.as_bytes(), &record].concat()
    };
    assert!(ServerMemory::from_bytes(&named("a.test")).is_ok());
    refused(&named("A.test"));
    refused(&named("a.test."));
    refused(&named(&"a".repeat(NAME_LEN + 1)));
}

#[test]
fn more_than_a_memory_holds_is_refused() {
    let joined = |count: usize, put: &dyn Fn(&ServerMemory, &str)| {
        let mut bytes = MAGIC.to_vec();
        for number in 0..count {
            let one = ServerMemory::new();
            put(&one, &number.to_string());
            bytes.extend_from_slice(&one.to_bytes()[MAGIC.len()..]);
        }
        ServerMemory::from_bytes(&bytes).is_ok()
    };
    let pin = |memory: &ServerMemory, name: &str| put(memory, name, &pinned());
    assert!(joined(SERVERS, &pin) && !joined(SERVERS + 1, &pin));
    let large = |memory: &ServerMemory, name: &str| {
        put_session(memory, name, ServerRecord::SESSION_LEN);
    };
    let rooms = BYTES / (ServerRecord::SESSION_LEN + 64);
    assert!(joined(rooms, &large) && !joined(rooms + 3, &large));
}

#[test]
fn a_clone_is_the_same_memory_and_another_one_is_not() {
    let memory = ServerMemory::new();
    put(&memory.clone(), "a", &plain());
    assert_eq!(memory.names(), ["a"]);
    assert!(ServerMemory::new().is_empty());
}

#[test]
fn sessions_are_taken_once_by_clients_of_their_policy() {
    let memory = ServerMemory::new();
    let sessions = Sessions(Arc::new(memory.clone()));
    let key = |policy| SessionKey::new("A.test", [policy; 16]);
    sessions.put(key(1), &[1]);
    sessions.put(key(1), &[2]);
    assert_eq!(sessions.take(key(2)), None);
    let read = ServerMemory::from_bytes(&memory.to_bytes()).unwrap();
    assert_eq!(sessions.take(key(1)), Some(vec![2]));
    assert_eq!(sessions.take(key(1)), None);
    assert!(memory.is_empty());
    let restarted = Sessions(Arc::new(read));
    assert_eq!(restarted.take(key(1)), Some(vec![2]));
}

#[test]
fn debug_output_shows_nothing_of_the_servers() {
    let memory = ServerMemory::new();
    put_session(&memory, "a.test", 8);
    assert_eq!(format!("{memory:?}"), "ServerMemory { .. }");
}

proptest! {
    #[test]
    fn hostile_bytes_are_refused_or_written_as_they_were(
        place in any::<prop::sample::Index>(),
        value in any::<u8>(),
        tail in prop::collection::vec(any::<u8>(), 0..40),
    ) {
        let memory = ServerMemory::new();
        put(&memory, "a.test", &plain());
        put_session(&memory, "b.test", 20);
        let whole = memory.to_bytes();
        let mut changed = whole.clone();
        changed[place.index(whole.len())] = value;
        for hostile in [changed, [&whole[..], &tail].concat()] {
            if let Ok(memory) = ServerMemory::from_bytes(&hostile) {
                prop_assert_eq!(memory.to_bytes(), hostile);
            }
        }
    }
}
