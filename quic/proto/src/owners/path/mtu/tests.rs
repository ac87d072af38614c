use super::*;
use crate::{testing::pn, wire::packet::PacketNumber};

const RTT: Duration = Duration::from_millis(50);

/// An `Mtu` over a link with a maximum datagram size, fed with full datagrams and probes.
struct Link {
    mtu: Mtu,
    carries: u16,
    now: Instant,
    pn: u64,
    probes: u32,
}

impl Link {
    fn new(most: u16, carries: u16) -> Self {
        let mut mtu = Mtu::new(BASE);
        mtu.start(BASE, most);
        mtu.on_sent(BASE.into());
        Self {
            mtu,
            carries,
            now: Instant::now(),
            pn: 0,
            probes: 0,
        }
    }

    fn finish_probe(&mut self, size: u16) {
        let pn = self.pn;
        self.pn += 1;
        if size <= self.carries {
            self.mtu
                .on_acked(PacketNumber::saturating(pn), size, self.now);
        } else {
            self.mtu
                .on_lost(PacketNumber::saturating(pn), size, self.now, RTT);
        }
        self.now += RTT;
    }

    fn probe(&mut self) -> bool {
        let Some(size) = self.mtu.probe(self.now) else {
            return false;
        };
        self.mtu.on_probe_sent(pn(self.pn));
        assert!(matches!(&self.mtu.state, State::Searching(it) if it.probe == Some(pn(self.pn))));
        assert_eq!(self.mtu.probe(self.now), None, "one at a time");
        self.probes += 1;
        self.finish_probe(size);
        true
    }

    fn search(&mut self) {
        while self.probe() {
            assert!(self.probes < 100, "no end");
        }
    }

    /// A full datagram, which starts a search that is due.
    fn send_full(&mut self) {
        let size = self.mtu.size();
        self.mtu.on_sent(size.into());
        self.finish_probe(size);
    }
}

#[test]
fn every_mtu_is_found_within_twenty_bytes_and_few_probes() {
    for carries in 1200..=1500 {
        let mut link = Link::new(1452, carries);
        link.search();
        let found = link.mtu.size();
        assert!(found <= carries.min(1452), "{found} of {carries}");
        assert!(carries.min(1452) - found < GRAIN, "{found} of {carries}");
        assert!(link.probes <= 20, "{} for {carries}", link.probes);
    }
}

#[test]
fn a_large_search_ends_too() {
    for carries in (1200..65_527).step_by(97) {
        let mut link = Link::new(65_527, carries);
        link.search();
        assert!(carries - link.mtu.size() < GRAIN, "{carries}");
        assert!(link.probes <= 48, "{} for {carries}", link.probes);
    }
}

#[test]
fn the_largest_is_tried_first() {
    let mut link = Link::new(1452, 1500);
    assert!(link.probe());
    assert_eq!((link.mtu.size(), link.probes), (1452, 1));
    assert!(!link.probe());
}

/// Proves: rfc8899 5.1.1 probe-timer
#[test]
fn two_lost_probes_say_nothing() {
    let mut link = Link::new(1452, 1200);
    link.probe();
    link.probe();
    link.carries = 1452;
    link.probe();
    assert_eq!(link.mtu.size(), 1452);
}

#[test]
fn who_fills_no_datagram_sends_no_probe() {
    let mut mtu = Mtu::new(BASE);
    mtu.on_sent(1200);
    mtu.start(BASE, 1452);
    let now = Instant::now();
    assert_eq!(mtu.probe(now), None);
    mtu.on_sent(1199);
    assert_eq!(mtu.probe(now), None);
    mtu.on_sent(1200);
    assert_eq!(mtu.probe(now), Some(1452));
}

/// Proves: rfc9000 14.3 base-is-1200
#[test]
fn it_never_goes_below_1200_bytes() {
    let mut mtu = Mtu::new(600);
    mtu.start(600, 700);
    assert_eq!((mtu.size(), mtu.probe(Instant::now())), (1200, None));
}

/// Proves: rfc8899 5.2 search-is-raised-again
#[test]
fn after_ten_minutes_it_looks_again() {
    let mut link = Link::new(1452, 1400);
    link.search();
    let (found, probes) = (link.mtu.size(), link.probes);
    link.carries = 1452;
    link.now += Duration::from_secs(598);
    link.send_full();
    assert!(!link.probe(), "too early");
    link.now += Duration::from_secs(2);
    link.search();
    assert!(found < 1452);
    assert_eq!((link.mtu.size(), link.probes), (1452, probes + 1));
}

/// Proves: rfc8899 4.3 black-holes-are-detected
#[test]
fn full_datagrams_lost_for_longer_than_a_round_trip_are_a_black_hole() {
    let mut link = Link::new(1452, 1452);
    link.search();
    link.carries = 1300;
    for _ in 0..SUSPICIOUS - 1 {
        link.send_full();
        assert_eq!(link.mtu.size(), 1452);
    }
    link.send_full();
    assert_eq!((link.mtu.size(), link.mtu.black_holes), (1200, 1));
    link.send_full();
    assert!(!link.probe(), "not at once");
    link.now += HOLD_OFF;
    link.search();
    assert!((1281..=1300).contains(&link.mtu.size()));
}

#[test]
fn a_burst_of_losses_is_none() {
    let mut link = Link::new(1452, 1452);
    link.search();
    for pn in 100..200 {
        link.mtu
            .on_lost(PacketNumber::saturating(pn), 1452, link.now, RTT);
    }
    assert_eq!(link.mtu.size(), 1452);
}

#[test]
fn a_full_datagram_that_arrives_clears_the_path() {
    let mut link = Link::new(1452, 1452);
    link.search();
    for _ in 0..100 {
        link.carries = 1300;
        for _ in 0..SUSPICIOUS - 1 {
            link.send_full();
        }
        link.carries = 1452;
        link.send_full();
    }
    assert_eq!(link.mtu.size(), 1452);
}

#[test]
fn losses_before_one_that_arrived_say_nothing() {
    let mut link = Link::new(1452, 1452);
    link.search();
    link.mtu.on_acked(pn(1000), 1452, link.now);
    for pn in 0..1000 {
        link.mtu.on_lost(
            PacketNumber::saturating(pn),
            1452,
            link.now + RTT * pn as u32,
            RTT,
        );
    }
    assert_eq!(link.mtu.size(), 1452);
}

#[test]
fn small_datagrams_say_nothing_of_full_ones() {
    let mut link = Link::new(1452, 1452);
    link.search();
    link.carries = 1300;
    for _ in 0..SUSPICIOUS / 2 {
        link.send_full();
        link.finish_probe(1250);
        link.send_full();
    }
    assert_eq!(link.mtu.size(), 1200);
}

#[test]
fn a_black_hole_that_returns_is_probed_ever_more_rarely() {
    let mut link = Link::new(1452, 1452);
    let mut waits = Vec::new();
    for _ in 0..9 {
        link.carries = 1452;
        link.search();
        assert_eq!(link.mtu.size(), 1452);
        link.carries = 1200;
        while link.mtu.size() > BASE {
            link.send_full();
        }
        let since = link.now;
        while link.mtu.probe(link.now).is_none() {
            link.now += Duration::from_secs(1);
            link.send_full();
        }
        // The hold-off began some packets earlier.
        waits.push(((link.now - since).as_secs() + 5) / 10 * 10);
    }
    assert_eq!(waits, [10, 20, 40, 80, 160, 320, 600, 600, 600]);
}

#[test]
fn what_cannot_be_sent_is_not_looked_for() {
    let mut link = Link::new(65_527, 65_527);
    link.mtu.set_most(9000);
    link.search();
    assert_eq!(link.mtu.size(), 9000);
}
