use std::net::Ipv4Addr;

use super::*;

fn peer() -> SocketAddr {
    SocketAddr::from((Ipv4Addr::LOCALHOST, 4433))
}

fn at() -> Address {
    Address {
        peer: peer(),
        local: Local::default(),
    }
}

fn path() -> Path<()> {
    Path::new(at(), 1200)
}

fn write(path: &mut Path<()>, space: usize) -> Vec<u8> {
    let mut buffer = vec![0; space];
    let mut out = FrameWriter::new(&mut buffer);
    path.write_frames(&mut out);
    let len = out.len();
    buffer.truncate(len);
    buffer
}

#[test]
fn nothing_may_be_sent_before_something_came() {
    assert!(!path().may_send(1));
    assert!(path().may_send(0));
}

/// Proves: rfc9000 8 three-times-what-came
#[test]
fn three_times_what_came_may_be_sent_until_the_address_is_proved() {
    let mut path = path();
    path.on_received(1200);
    path.on_received(1200);
    assert_eq!(path.credit(), 7200);
    path.on_sent(1200);
    assert!(path.may_send(6000) && !path.may_send(6001));
    path.on_sent(6000);
    assert!(!path.may_send(1));
    path.on_received(1);
    assert!(path.may_send(3) && !path.may_send(4));
    path.on_validated();
    assert!(path.is_validated() && path.may_send(u64::MAX));
}

#[test]
fn a_client_needs_no_credit() {
    assert!(Path::<()>::validated(at(), 1200).may_send(1 << 40));
}

#[test]
fn counts_do_not_overflow() {
    let mut path = path();
    path.on_received(u64::MAX);
    path.on_received(u64::MAX);
    path.on_sent(u64::MAX);
    path.on_sent(u64::MAX);
    assert!(!path.may_send(1));
}

#[test]
fn a_challenge_is_answered_once_with_its_own_bytes() {
    let mut path = path();
    assert!(!path.has_pending());
    path.on_challenge(&PathChallenge([1, 2, 3, 4, 5, 6, 7, 8]));
    assert!(path.has_pending());
    assert_eq!(write(&mut path, 8), [], "no room");
    assert_eq!(write(&mut path, 100), [0x1b, 1, 2, 3, 4, 5, 6, 7, 8]);
    assert!(!path.has_pending());
    assert_eq!(write(&mut path, 100), []);
}

#[test]
fn of_too_many_challenges_the_oldest_is_forgotten() {
    let mut path = path();
    let count = limits::PATH_RESPONSES as u8;
    for number in 0..count + 2 {
        path.on_challenge(&PathChallenge([number; 8]));
    }
    let frames = write(&mut path, 1200);
    let answered: Vec<u8> = frames.chunks(9).map(|frame| frame[1]).collect();
    assert_eq!(answered, (2..count + 2).collect::<Vec<_>>());
}

/// Proves: rfc9000 8.2.1 challenges-are-unpredictable
#[test]
fn no_challenge_is_like_another() {
    let paths = |seed| Paths::new(hybriq_tls::Side::Client, path(), seed);
    let (mut ours, mut others) = (paths(1), paths(2));
    let drawn: std::collections::HashSet<u64> = (0..1000)
        .flat_map(|_| [ours.draw(), others.draw()])
        .collect();
    assert_eq!(drawn.len(), 2000);
}

/// Ids of a peer that never run out.
#[derive(Default)]
struct Endless(u64);

impl PeerCids for Endless {
    fn active(&self) -> (u64, Cid) {
        (0, Cid::EMPTY)
    }

    fn find(&self, _: u64) -> Option<Cid> {
        Some(Cid::EMPTY)
    }

    fn take_spare(&mut self) -> Option<(u64, Cid)> {
        self.0 += 1;
        Some((self.0, Cid::EMPTY))
    }

    fn activate(&mut self, _: u64) -> bool {
        true
    }

    fn retire(&mut self, _: u64) {}
}

/// Proves: security 8 paths-are-bounded
#[test]
fn a_peer_that_hops_and_answers_only_short_challenges_leaves_few_paths() {
    use std::time::{Duration, Instant};

    let now = Instant::now();
    let first = Path::<()>::validated(at(), 1200);
    let mut paths = Paths::new(hybriq_tls::Side::Server, first, 1);
    let mut cids = Endless::default();
    for port in 1..2000 {
        let mut facts = Facts {
            now,
            waits: Waits::new(Duration::from_millis(100), Duration::from_millis(333)),
            cids: &mut cids,
        };
        let arrival = crate::udp::Arrival {
            peer: SocketAddr::from((Ipv4Addr::LOCALHOST, 10_000 + port)),
            local: Local::default(),
            ecn: None,
        };
        assert!(paths.admit(&arrival, 100, Moves::Anywhere));
        drop(paths.on_peer_moved(&Cid::EMPTY, &mut facts));
        let mut failed = None;
        while let Some(probe) = paths.next_probe(failed.as_ref(), facts.cids) {
            failed = Some(probe);
            let mut buffer = [0; 1200];
            let data = paths.draw();
            let mut out = FrameWriter::new(&mut buffer);
            paths.write_probe(now, &probe, data, &mut out);
            if probe.is_on_active() && probe.expanded() == Expanded::Short {
                let answer = crate::frame::PathResponse(data.to_be_bytes());
                let _ = paths.on_response(answer, &mut facts);
            }
        }
        assert!(paths.active().is_validated());
        assert!(paths.others().count() <= limits::OTHER_PATHS, "port {port}");
    }
    let fallbacks = paths.others().filter(|path| path.state == State::Fallback);
    assert_eq!(fallbacks.count(), 1);
}
