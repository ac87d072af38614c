use std::net::Ipv4Addr;

use super::*;
use crate::wire::NumberedCid;

/// Access for the tests of connections.
impl<S> Paths<S> {
    /// Iterates over the paths that are not in use, to change them.
    pub(crate) fn others_mut(&mut self) -> impl Iterator<Item = &mut Path<S>> {
        self.others.iter_mut()
    }

    /// Forgets the fallback path.
    pub(crate) fn lose_fallback(&mut self) {
        let place = self.others.position_of(State::Fallback);
        drop(place.and_then(|place| self.others.take(place)));
    }
}

impl<S> Path<S> {
    /// Returns the number of waiting answers.
    pub(crate) const fn responses(&self) -> usize {
        self.responses.len()
    }
}

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
    fn active(&self) -> NumberedCid {
        NumberedCid {
            sequence: 0,
            cid: Cid::EMPTY,
        }
    }

    fn find(&self, _: u64) -> Option<Cid> {
        Some(Cid::EMPTY)
    }

    fn take_spare(&mut self) -> Option<NumberedCid> {
        self.0 += 1;
        Some(NumberedCid {
            sequence: self.0,
            cid: Cid::EMPTY,
        })
    }

    fn activate(&mut self, _: u64) -> bool {
        true
    }

    fn retire(&mut self, _: u64) {}
}

/// Returns the data of the last challenge among these frames.
fn challenge_in(frames: &[u8]) -> [u8; 8] {
    use crate::wire::frame::Frame;

    let mut frames = crate::wire::Reader::new(frames);
    let mut found = None;
    while !frames.is_empty() {
        if let Frame::PathChallenge(challenge) = Frame::decode(&mut frames).unwrap() {
            found = Some(challenge.0);
        }
    }
    found.unwrap()
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
        let arrival = crate::wire::udp::Arrival {
            peer: SocketAddr::from((Ipv4Addr::LOCALHOST, 10_000 + port)),
            local: Local::default(),
            ecn: None,
        };
        assert!(paths.admit(&arrival, 100, Moves::Anywhere));
        drop(paths.on_peer_moved(&Cid::EMPTY, &mut facts));
        let mut failed = None;
        while let Some(probe) = paths.next_probe(failed.as_ref(), Window::Open, facts.cids) {
            failed = Some(probe);
            let mut buffer = [0; 1200];
            let mut out = FrameWriter::new(&mut buffer);
            paths.write_probe(now, &probe, &mut out);
            if probe.is_on_active() && probe.expanded() == Expanded::Short {
                let answer = crate::wire::frame::PathResponse(challenge_in(out.written()));
                let _ = paths.on_response(answer, &mut facts);
            }
        }
        assert!(paths.active().is_validated());
        assert!(paths.others().count() <= limits::OTHER_PATHS, "port {port}");
    }
    let fallbacks = paths.others().filter(|path| path.state == State::Fallback);
    assert_eq!(fallbacks.count(), 1);
}

#[test]
fn a_client_moves_only_where_nothing_forbids_it() {
    use crate::wire::error::MigrateError::{Closed, Disabled, NotConfirmed, Server};
    use std::time::{Duration, Instant};

    let standing = |is_closed, is_confirmed, is_disabled| Standing {
        is_closed,
        is_confirmed,
        is_disabled,
    };
    let (client, server) = (hybriq_tls::Side::Client, hybriq_tls::Side::Server);
    for (side, standing, expected) in [
        (client, standing(false, true, false), Ok(())),
        (client, standing(true, true, false), Err(Closed)),
        (client, standing(false, false, false), Err(NotConfirmed)),
        (client, standing(false, true, true), Err(Disabled)),
        (server, standing(false, true, false), Err(Server)),
    ] {
        let mut paths = Paths::new(side, Path::<()>::validated(at(), 1200), 1);
        let mut facts = Facts {
            now: Instant::now(),
            waits: Waits::new(Duration::from_millis(100), Duration::from_millis(333)),
            cids: &mut Endless::default(),
        };
        let local = Local {
            ip: Some(Ipv4Addr::new(10, 0, 0, 1).into()),
            ..Local::default()
        };
        // While the local address is unknown, it equals any.
        paths.active_mut().learn_local(Local {
            ip: Some(Ipv4Addr::LOCALHOST.into()),
            ..Local::default()
        });
        assert_eq!(paths.migrate(local, standing, &mut facts), expected);
        assert_eq!(paths.others().count(), usize::from(expected.is_ok()));
    }
}

#[test]
fn an_answer_on_the_path_in_use_waits_for_the_window() {
    let first = Path::<()>::validated(at(), 1200);
    let mut paths = Paths::new(hybriq_tls::Side::Server, first, 1);
    paths.active_mut().on_challenge(&PathChallenge([7; 8]));
    let mut cids = Endless::default();
    assert!(paths.next_probe(None, Window::Full, &mut cids).is_none());
    let probe = paths.next_probe(None, Window::Open, &mut cids).unwrap();
    assert!(probe.is_on_active());
    // A challenge that could not be written is not tried again at once.
    let again = paths.next_probe(Some(&probe), Window::Open, &mut cids);
    assert!(again.is_none());
}

/// Proves: security 8 path-challenge-floods-are-bounded
#[test]
fn the_answer_to_a_challenge_pays_for_two_probes() {
    let first = Path::<()>::validated(at(), 1200);
    let mut paths = Paths::new(hybriq_tls::Side::Server, first, 1);
    let mut cids = Endless::default();
    let now = std::time::Instant::now();
    // Sends a probe with a challenge, whatever the window says, and returns it.
    let mut probe = |paths: &mut Paths<()>| {
        let patience = Patience::new(
            std::time::Duration::from_millis(100),
            std::time::Duration::from_millis(333),
        );
        let validation = &mut paths.active_mut().validation;
        validation.stop();
        validation.start(now, patience);
        let probe = paths.next_probe(None, Window::Full, &mut cids)?;
        let mut buffer = [0; 1200];
        let mut out = FrameWriter::new(&mut buffer);
        paths.write_probe(now, &probe, &mut out);
        paths.on_probe_sent(&probe, 1200, Window::Full);
        Some(challenge_in(out.written()))
    };
    let bound = limits::PROBE_BYTES / 1200;
    let mut last = None;
    for _ in 0..bound {
        last = probe(&mut paths);
        assert!(last.is_some());
    }
    assert_eq!(probe(&mut paths), None);
    let mut facts = Facts {
        now,
        waits: Waits::new(
            std::time::Duration::from_millis(100),
            std::time::Duration::from_millis(333),
        ),
        cids: &mut Endless::default(),
    };
    let data = last.unwrap();
    let validation = &mut paths.active_mut().validation;
    validation.stop();
    validation.start(now, facts.waits.patience);
    validation.on_sent(now, data, Expanded::Full);
    let _ = paths.on_response(crate::wire::frame::PathResponse(data), &mut facts);
    assert!(probe(&mut paths).is_some());
    assert!(probe(&mut paths).is_some());
    assert_eq!(probe(&mut paths), None, "only two");
    paths.on_progress();
    for _ in 0..bound {
        assert!(probe(&mut paths).is_some(), "an acknowledgement renews all");
    }
}

#[test]
fn the_search_for_the_datagram_size_goes_on_where_it_began() {
    let mut paths = Paths::new(hybriq_tls::Side::Client, path(), 1);
    paths.resume_mtu();
    assert!(!paths.active().mtu().is_started(), "too early");
    paths.start_mtu(MtuRange {
        size: 1300,
        most: Some(1500),
        peer: 1400,
    });
    assert_eq!(paths.active().datagram_size(), 1300);
    *paths.active_mut().mtu_mut() = Mtu::new(1200);
    paths.resume_mtu();
    assert!(paths.active().mtu().is_started());
    assert_eq!(paths.active().datagram_size(), 1200);
    assert_eq!(paths.mtu_counts(), MtuCounts::default());
}

#[test]
fn an_mtu_probe_is_due_on_a_valid_path_that_owes_no_answer() {
    let now = std::time::Instant::now();
    let mut paths = Paths::new(hybriq_tls::Side::Client, path(), 1);
    paths.start_mtu(MtuRange {
        size: 1200,
        most: Some(1452),
        peer: u16::MAX,
    });
    paths.active_mut().mtu_mut().on_sent(1200);
    assert_eq!(paths.mtu_probe(now), None, "not validated");
    paths.active_mut().on_validated();
    assert_eq!(paths.mtu_probe(now), Some(1452));
    paths.active_mut().on_challenge(&PathChallenge([7; 8]));
    assert_eq!(paths.mtu_probe(now), None, "an answer waits");
    write(paths.active_mut(), 100);
    let pn = crate::testing::pn(7);
    paths.on_mtu_probe_sent(pn, 1452);
    assert_eq!(paths.mtu_probe(now), None, "in flight");
    paths.on_size_lost(pn, 1452, now, std::time::Duration::ZERO);
    let counts = paths.mtu_counts();
    assert_eq!((counts.sent, counts.lost, counts.black_holes), (1, 1, 0));
    assert_eq!(paths.mtu_probe(now), Some(1452), "lost once");
}
