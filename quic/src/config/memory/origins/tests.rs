use std::time::{Duration, UNIX_EPOCH};

use hybriq_tls::Group;

use super::*;

const YEAR: Duration = Duration::from_secs(365 * 24 * 60 * 60);

fn now() -> SystemTime {
    UNIX_EPOCH + 56 * YEAR
}

fn pin(record: &mut OriginRecord) {
    record.key_exchange_until = Some(now() + YEAR);
}

fn predict(record: &mut OriginRecord) {
    record.group = Some(Group::MLKEM1024);
}

fn put(origins: &MemoryOrigins, name: &str, change: fn(&mut OriginRecord)) {
    origins.update(now(), name, &change);
}

fn len(origins: &MemoryOrigins) -> usize {
    origins.with(|memory| memory.origins.len())
}

#[test]
fn a_flood_of_servers_does_not_evict_one_that_is_pinned() {
    let origins = MemoryOrigins::new();
    put(&origins, "bank:443", pin);
    for number in 0..3 * ORIGINS {
        put(&origins, &format!("{number}:443"), predict);
    }
    assert_eq!(len(&origins), ORIGINS);
    assert!(origins.get("bank:443").is_some());
    assert!(origins.get("0:443").is_none());
    let newest = 3 * ORIGINS - 1;
    assert!(origins.get(&format!("{newest}:443")).is_some());
    assert_eq!(origins.dropped(), 0);
}

#[test]
fn when_all_are_pinned_a_new_server_is_counted_and_not_stored() {
    let origins = MemoryOrigins::new();
    for number in 0..ORIGINS {
        put(&origins, &format!("{number}:443"), pin);
    }
    put(&origins, "new:443", pin);
    assert_eq!((len(&origins), origins.dropped()), (ORIGINS, 1));
    assert!(origins.get("new:443").is_none());
    assert!(origins.get("0:443").is_some());
    // Stored records change as before.
    put(&origins, "0:443", predict);
    assert_eq!(origins.get("0:443").unwrap().group, Some(Group::MLKEM1024));
    // An expired pin makes room.
    let later = now() + YEAR;
    origins.update(later, "new:443", &|record| {
        record.key_exchange_until = Some(later + YEAR);
    });
    assert!(origins.get("new:443").is_some());
    assert_eq!((len(&origins), origins.dropped()), (ORIGINS, 1));
}

#[test]
fn a_record_without_content_takes_no_room() {
    let origins = MemoryOrigins::new();
    put(&origins, "a:1", |_| ());
    assert_eq!(len(&origins), 0);
    put(&origins, "a:1", pin);
    put(&origins, "a:1", OriginRecord::unpin);
    assert_eq!(len(&origins), 0);
    put(&origins, &"a".repeat(LONGEST_ORIGIN + 1), pin);
    assert_eq!(len(&origins), 0);
}

#[test]
fn a_file_keeps_servers_and_their_order() {
    let origins = MemoryOrigins::new();
    for number in 0..ORIGINS {
        put(&origins, &format!("{number}:443"), predict);
    }
    put(&origins, "0:443", pin);
    let bytes = origins.to_bytes();
    let read = MemoryOrigins::from_bytes(&bytes).unwrap();
    assert_eq!(read.to_bytes(), bytes);
    assert!(read.get("0:443").unwrap().is_pinned(now()));
    put(&read, "new:443", predict);
    assert!(read.get("1:443").is_none() && read.get("2:443").is_some());
    assert!(MemoryOrigins::from_bytes(&MemoryOrigins::new().to_bytes()).is_ok());
}

#[test]
fn a_file_that_was_damaged_is_refused() {
    let origins = MemoryOrigins::new();
    put(&origins, "a:1", pin);
    put(&origins, "b:1", pin);
    let bytes = origins.to_bytes();
    let whole = [
        MAGIC.len(),
        MAGIC.len() + (bytes.len() - MAGIC.len()) / 2,
        bytes.len(),
    ];
    for end in 0..=bytes.len() {
        let read = MemoryOrigins::from_bytes(&bytes[..end]);
        assert_eq!(read.is_ok(), whole.contains(&end), "{end} bytes");
    }
    let twice = [&bytes[..], &bytes[MAGIC.len()..]].concat();
    assert!(MemoryOrigins::from_bytes(&twice).is_err());
    let mut many = MAGIC.to_vec();
    for number in 0..=ORIGINS {
        let one = MemoryOrigins::new();
        put(&one, &format!("{number}:443"), pin);
        many.extend_from_slice(&one.to_bytes()[MAGIC.len()..]);
    }
    assert!(MemoryOrigins::from_bytes(&many).is_err());
}
