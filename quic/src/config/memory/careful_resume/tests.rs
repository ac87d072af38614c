use std::net::IpAddr;

use hybriq_proto::owners::congestion::careful_resume::Observed;

use super::*;

const PEER: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(192, 0, 2, 1));

fn known(capacity: u64) -> KnownPath {
    let observed = Observed::new(Duration::from_millis(300), capacity);
    KnownPath::new(observed, PEER, None)
}

fn key(number: u64) -> PathKey {
    PathKey::of_ticket(&number.to_be_bytes())
}

#[test]
fn what_is_taken_is_gone() {
    let (resume, now) = (CarefulResume::new(), Instant::now());
    let other = resume.clone();
    resume.put(now, key(1), known(1));
    assert_eq!(other.take(now, Some(&key(2)), &|_| true), None);
    assert_eq!(other.take(now, Some(&key(1)), &|_| true), Some(known(1)));
    assert_eq!(resume.take(now, Some(&key(1)), &|_| true), None);
}

#[test]
fn only_the_latest_of_a_path_is_kept() {
    let (resume, now) = (CarefulResume::new(), Instant::now());
    resume.put(now, key(1), known(1));
    resume.put(now, key(1), known(2));
    assert_eq!(resume.with_memory(|memory| memory.order.len()), 1);
    assert_eq!(resume.take(now, Some(&key(1)), &|_| true), Some(known(2)));
}

#[test]
fn what_is_older_than_its_lifetime_is_not_used() {
    let resume = CarefulResume::new().lifetime(Duration::from_secs(60));
    let now = Instant::now();
    for (age, found) in [(59, true), (60, false)] {
        resume.put(now, key(1), known(1));
        let later = now + Duration::from_secs(age);
        assert_eq!(
            resume.take(later, Some(&key(1)), &|_| true).is_some(),
            found
        );
        assert_eq!(
            resume.take(now, Some(&key(1)), &|_| true),
            None,
            "it is deleted"
        );
    }
}

#[test]
fn the_oldest_paths_give_way() {
    let (resume, now) = (CarefulResume::new(), Instant::now());
    for number in 0..MOST_PATHS as u64 + 10 {
        resume.put(now, key(number), known(number));
    }
    let (paths, order) = resume.with_memory(|memory| (memory.paths.len(), memory.order.len()));
    assert_eq!((paths, order), (MOST_PATHS, MOST_PATHS));
    assert_eq!(resume.take(now, Some(&key(9)), &|_| true), None);
    assert_eq!(resume.take(now, Some(&key(10)), &|_| true), Some(known(10)));
}

#[test]
fn what_the_application_gives_is_for_one_connection() {
    let now = Instant::now();
    let saved = SavedPath::new(known(7), std::time::SystemTime::UNIX_EPOCH);
    let resume = CarefulResume::new().path(&saved, Duration::from_secs(3599));
    assert_eq!(resume.clone().take(now, None, &|_| true), Some(known(7)));
    assert_eq!(resume.take(now, None, &|_| true), None);
    let resume = CarefulResume::new().path(&saved, Duration::from_secs(3600));
    assert_eq!(resume.take(now, None, &|_| true), None, "too old");
}

#[test]
fn what_was_given_for_another_path_does_not_hide_what_is_remembered() {
    let now = Instant::now();
    let elsewhere = KnownPath::new(known(7).observed, "192.0.2.2".parse().unwrap(), None);
    let saved = SavedPath::new(elsewhere, std::time::SystemTime::UNIX_EPOCH);
    let resume = CarefulResume::new().path(&saved, Duration::ZERO);
    resume.put(now, key(1), known(1));
    let is_here = |known: &KnownPath| known.is_between(None, PEER);
    assert_eq!(resume.take(now, Some(&key(1)), &is_here), Some(known(1)));
}

#[test]
fn a_path_is_between_two_addresses() {
    let other: IpAddr = "192.0.2.2".parse().unwrap();
    let mapped: IpAddr = "::ffff:192.0.2.1".parse().unwrap();
    let mut path = known(1);
    assert!(path.is_between(None, PEER) && path.is_between(Some(other), mapped));
    assert!(!path.is_between(None, other));
    path.local = Some(PEER);
    assert!(path.is_between(Some(PEER), PEER) && path.is_between(None, PEER));
    assert!(!path.is_between(Some(other), PEER));
}

#[test]
fn the_paths_of_tickets_are_told_apart() {
    assert_eq!(key(1), key(1));
    assert_ne!(key(1), key(2));
}
