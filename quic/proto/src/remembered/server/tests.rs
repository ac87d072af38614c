use std::{
    net::IpAddr,
    time::{Duration, UNIX_EPOCH},
};

use bytes::Bytes;
use hybriq_tls::Group;
use proptest::prelude::*;

use super::*;
use crate::{
    owners::congestion::careful_resume::Observed,
    remembered::{known_path::KnownPath, origin::OriginRecord, saved_path::SavedPath},
    wire::{limits, packet::Version},
};

const DAY: Duration = Duration::from_secs(24 * 60 * 60);
const LIFETIME: Duration = Duration::from_secs(60);

fn now() -> SystemTime {
    UNIX_EPOCH + 20_000 * DAY
}

fn token(number: usize) -> Bytes {
    Bytes::from(number.to_be_bytes().to_vec())
}

fn address(last: u8) -> IpAddr {
    [192, 0, 2, last].into()
}

fn path(peer: u8, local: Option<u8>, capacity: u64) -> SavedPath {
    let known = KnownPath {
        observed: Observed {
            rtt: Duration::from_millis(300),
            capacity,
        },
        peer: address(peer),
        local: local.map(address),
    };
    SavedPath::new(known, now())
}

fn pin(record: &mut OriginRecord) {
    record.key_exchange_until = Some(now() + DAY);
}

fn predict(record: &mut OriginRecord) {
    record.group = Some(Group::MLKEM1024);
}

/// A record with every kind of content.
fn full() -> ServerRecord {
    let mut record = ServerRecord::default();
    record.set_version(Version::V2);
    for number in 0..ServerRecord::TOKENS {
        record.put_token(Version::ALL[number % 2], token(number));
    }
    record.change_port(now(), 443, pin);
    record.change_port(now(), 4433, predict);
    record.put_path(&path(1, None, 1));
    record.put_path(&path(2, Some(3), 2));
    record.put_session([1; 16], b"one");
    record.put_session([2; 16], b"two");
    record.put_alternatives(443, b"three");
    record.put_alternatives(8443, b"four");
    record.put_settings(b"five");
    record
}

fn bytes(record: &ServerRecord) -> Vec<u8> {
    let mut bytes = Vec::new();
    record.write(&mut bytes);
    assert_eq!(bytes.len(), record.encoded_len());
    bytes
}

#[test]
fn the_key_of_a_server_is_the_same_however_its_name_is_written() {
    assert_eq!(ServerKey::new("Example.COM.").as_str(), "example.com");
    assert_eq!(ServerKey::new("::1").as_str(), "::1");
    assert_ne!(ServerKey::new("a"), ServerKey::new("b"));
}

/// Proves: rfc9000 8.1.4 replay-is-limited
#[test]
fn a_token_is_given_out_once() {
    let mut record = ServerRecord::default();
    record.put_token(Version::V1, token(1));
    record.put_token(Version::V1, token(1));
    assert_eq!(record.take_token(Version::V2), None, "of another version");
    assert_eq!(record.take_token(Version::V1), Some(token(1)));
    assert_eq!(record.take_token(Version::V1), None);
}

#[test]
fn the_newest_tokens_are_kept() {
    let mut record = ServerRecord::default();
    for number in 0..10 {
        record.put_token(Version::V1, token(number));
    }
    let kept: Vec<_> = std::iter::from_fn(|| record.take_token(Version::V1)).collect();
    assert_eq!(kept, [9, 8, 7, 6].map(token));
}

#[test]
fn a_port_that_is_pinned_stays_whatever_the_others_do() {
    let mut record = ServerRecord::default();
    record.change_port(now(), 443, pin);
    for port in 1000..2000 {
        record.change_port(now(), port, predict);
    }
    assert_eq!(record.ports().count(), ServerRecord::PORTS);
    assert!(record.port(443).is_pinned(now()));
    assert_eq!(record.port(1000), OriginRecord::default());
    assert_eq!(record.port(1999).group, Some(Group::MLKEM1024));
    for port in 1000..2000 {
        record.change_port(now(), port, pin);
    }
    assert!(record.port(443).is_pinned(now()), "the first comers stay");
    assert_eq!(record.port(1999), OriginRecord::default());
    // A pin that is over makes room.
    record.change_port(now() + DAY, 1999, predict);
    assert_eq!(record.port(1999).group, Some(Group::MLKEM1024));
}

#[test]
fn a_record_without_content_is_empty() {
    let mut record = ServerRecord::default();
    record.change_port(now(), 1, |_| ());
    assert!(record.is_empty(now()));
    record.change_port(now(), 1, pin);
    assert!(!record.is_empty(now()) && record.is_empty(now() + DAY));
    record.unpin(1);
    assert_eq!(record, ServerRecord::default());
    record.set_version(Version::V1);
    assert!(!record.is_empty(now()));
}

#[test]
fn the_newest_settings_are_kept_within_their_bound() {
    let mut record = ServerRecord::default();
    assert_eq!(record.settings(), None);
    record.put_settings(b"first");
    record.put_settings(b"second");
    assert_eq!(record.settings(), Some(&b"second"[..]));
    assert!(!record.is_empty(now()) && !record.has_only_pins(now()));
    record.put_settings(&[0; ServerRecord::SETTINGS_LEN + 1]);
    assert_eq!(
        record,
        ServerRecord::default(),
        "those of before are not those of now"
    );
}

#[test]
fn what_a_full_store_keeps_of_a_server_are_its_pins() {
    let mut record = full();
    assert!(!record.has_only_pins(now()));
    record.keep_pins(now());
    assert!(record.has_only_pins(now()) && record.is_pinned(now()));
    let ports: Vec<u16> = record.ports().map(|(port, _)| port).collect();
    assert_eq!(ports, [443]);
    assert_eq!(
        (record.version(), record.tokens(), record.sessions()),
        (None, 0, 0)
    );
    assert_eq!((record.alternatives(443), record.settings()), (None, None));
}

#[test]
fn alternatives_are_those_of_a_port_and_bounded() {
    let mut record = ServerRecord::default();
    for port in 0..=ServerRecord::ALTERNATIVES as u16 {
        record.put_alternatives(port, b"some");
        record.put_alternatives(port, b"others");
    }
    assert_eq!(record.alternatives(0), None);
    assert_eq!(record.alternatives(1), Some(&b"others"[..]));
    assert!(!record.is_empty(now()) && !record.has_only_pins(now()));
    record.put_alternatives(1, &[0; ServerRecord::ALTERNATIVES_LEN + 1]);
    for port in 2..=ServerRecord::ALTERNATIVES as u16 {
        record.put_alternatives(port, b"");
    }
    assert_eq!(record, ServerRecord::default());
}

#[test]
fn a_path_that_is_taken_is_gone() {
    let mut record = ServerRecord::default();
    record.put_path(&path(1, None, 7));
    let is_here = |known: &KnownPath| known.is_between(None, address(2));
    assert_eq!(record.take_path(now(), LIFETIME, &is_here), None);
    let is_here = |known: &KnownPath| known.is_between(None, address(1));
    let found = record.take_path(now(), LIFETIME, &is_here);
    assert_eq!(found, Some(path(1, None, 7).known()));
    assert_eq!(record.take_path(now(), LIFETIME, &is_here), None);
}

#[test]
fn only_the_latest_of_a_path_is_kept_for_each_network() {
    let mut record = ServerRecord::default();
    record.put_path(&path(1, Some(8), 1));
    record.put_path(&path(1, Some(9), 2));
    record.put_path(&path(1, Some(8), 3));
    let capacities: Vec<u64> = record.paths().iter().map(SavedPath::capacity).collect();
    assert_eq!(capacities, [2, 3]);
    let is_here = |known: &KnownPath| known.is_between(Some(address(9)), address(1));
    let found = record.take_path(now(), LIFETIME, &is_here).unwrap();
    assert_eq!(found.observed.capacity, 2);
    for peer in 10..20 {
        record.put_path(&path(peer, None, 1));
    }
    assert_eq!(record.paths().len(), ServerRecord::PATHS);
    assert_eq!(record.paths().last().unwrap().peer(), address(19));
}

#[test]
fn a_path_that_is_older_than_its_lifetime_is_not_used() {
    for (age, found) in [(59, true), (60, false)] {
        let mut record = ServerRecord::default();
        record.put_path(&path(1, None, 1));
        let later = now() + Duration::from_secs(age);
        let taken = record.take_path(later, LIFETIME, &|_| true);
        assert_eq!(taken.is_some(), found);
        assert!(record.paths().is_empty(), "it is deleted");
    }
    let mut record = ServerRecord::default();
    record.put_path(&path(1, None, 1));
    let before = now() - Duration::from_secs(1);
    assert_eq!(
        record.take_path(before, LIFETIME, &|_| true),
        None,
        "the clock was set back"
    );
}

#[test]
fn a_path_that_no_bytes_can_tell_is_not_kept() {
    let mut record = ServerRecord::default();
    record.put_path(&path(1, None, u64::MAX));
    assert!(record.paths().is_empty());
}

#[test]
fn a_session_is_for_its_policy_and_the_newest_counts() {
    let mut record = ServerRecord::default();
    record.put_session([1; 16], b"old");
    record.put_session([1; 16], b"new");
    assert_eq!(record.take_session([2; 16]), None);
    assert_eq!(record.take_session([1; 16]), Some(b"new".to_vec()));
    assert_eq!(record.take_session([1; 16]), None);
    for policy in 0..10 {
        record.put_session([policy; 16], &[policy]);
    }
    assert_eq!(record.sessions(), ServerRecord::SESSIONS);
    assert_eq!(record.take_session([5; 16]), None);
    assert_eq!(record.take_session([6; 16]), Some(vec![6]));
    record.put_session([9; 16], &vec![0; ServerRecord::SESSION_LEN + 1]);
    assert_eq!(record.take_session([9; 16]), None, "neither is left");
}

#[test]
fn debug_output_shows_no_secret() {
    let mut record = ServerRecord::default();
    record.put_token(Version::V1, Bytes::from_static(&[0x5a; 8]));
    record.put_session([1; 16], &[0x5a; 8]);
    assert!(!format!("{record:?}").contains("90"), "{record:?}");
}

#[test]
fn the_bytes_give_back_the_record() {
    for record in [ServerRecord::default(), full()] {
        assert_eq!(ServerRecord::from_bytes(&bytes(&record)), Ok(record));
    }
}

#[test]
fn nothing_but_the_whole_bytes_is_taken() {
    let mut bytes = bytes(&full());
    for len in 0..bytes.len() {
        let read = ServerRecord::from_bytes(&bytes[..len]);
        assert_eq!(read, Err(InvalidServerMemory), "{len} bytes");
    }
    bytes.push(0);
    assert_eq!(ServerRecord::from_bytes(&bytes), Err(InvalidServerMemory));
}

#[test]
fn lists_that_no_record_has_are_refused() {
    let refused = |change: fn(&mut ServerRecord)| {
        let mut record = full();
        change(&mut record);
        let read = ServerRecord::from_bytes(&bytes(&record));
        assert_eq!(read, Err(InvalidServerMemory), "{record:?}");
    };
    refused(|it| it.tokens.push((Version::V1, token(99))));
    refused(|it| it.tokens[0] = it.tokens[2].clone());
    refused(|it| it.tokens[0].1 = Bytes::new());
    refused(|it| it.tokens[0].1 = Bytes::from(vec![0; limits::TOKEN_LEN + 1]));
    refused(|it| it.origins[0].0 = it.origins[1].0);
    refused(|it| {
        it.origins = (0..=ServerRecord::PORTS as u16)
            .map(|port| (port, OriginRecord::default()))
            .collect();
    });
    refused(|it| it.paths[0] = path(2, None, 9));
    refused(|it| it.sessions[0].policy = it.sessions[1].policy);
    refused(|it| {
        it.sessions[0]
            .bytes
            .resize(ServerRecord::SESSION_LEN + 1, 0);
    });
    refused(|it| it.sessions[0].bytes.clear());
    refused(|it| it.alternatives[0].0 = it.alternatives[1].0);
    refused(|it| it.alternatives[0].1 = Bytes::new());
    refused(|it| it.settings = Bytes::from(vec![0; ServerRecord::SETTINGS_LEN + 1]));
}

proptest! {
    /// What is read is written as it was, from bytes that begin well and go on at random.
    #[test]
    fn no_bytes_are_too_strange(
        kept in 0..200_usize,
        other in prop::collection::vec(any::<u8>(), 0..100),
        place in any::<prop::sample::Index>(),
        value in any::<u8>(),
    ) {
        let whole = bytes(&full());
        let mut changed = whole.clone();
        changed[place.index(whole.len())] = value;
        let joined = [&whole[..kept.min(whole.len())], &other].concat();
        for hostile in [changed, joined] {
            if let Ok(record) = ServerRecord::from_bytes(&hostile) {
                prop_assert_eq!(bytes(&record), hostile);
            }
        }
    }
}
