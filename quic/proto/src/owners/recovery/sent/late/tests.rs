use super::*;
use crate::testing::pn;

#[expect(clippy::disallowed_methods, reason = "a base for virtual time")]
fn now() -> Instant {
    Instant::now()
}

fn lost(number: u64, lost_at: Instant) -> LostPacket {
    LostPacket {
        pn: pn(number),
        time_sent: lost_at,
        lost_at,
        size: 1200,
        episode: 1,
    }
}

fn take(packets: &mut LostPackets, first: u64, last: u64) -> Vec<u64> {
    packets
        .take_range(pn(first), pn(last))
        .map(|packet| packet.pn.get())
        .collect()
}

#[test]
fn a_lost_packet_is_found_once() {
    let now = now();
    let mut packets = LostPackets::default();
    for pn in [3, 4, 7, 9] {
        packets.push(lost(pn, now));
    }
    assert_eq!(take(&mut packets, 5, 6), []);
    assert_eq!(take(&mut packets, 4, 7), [4, 7]);
    assert_eq!(take(&mut packets, 9, 3), [], "a backward range");
    assert_eq!(take(&mut packets, 0, u64::MAX), [3, 9]);
    assert!(packets.is_empty());
}

#[test]
fn at_most_so_many_lost_packets_are_remembered() {
    let now = now();
    let mut packets = LostPackets::default();
    for pn in 0..2 * LOST_PACKETS as u64 {
        packets.push(lost(pn, now));
    }
    assert_eq!(packets.packets.len(), LOST_PACKETS);
    assert_eq!(
        take(&mut packets, 0, LOST_PACKETS as u64),
        [LOST_PACKETS as u64],
        "the oldest gave way"
    );
}

#[test]
fn lost_packets_are_forgotten_and_their_memory_returned() {
    let start = now();
    let ms = Duration::from_millis;
    let mut packets = LostPackets::default();
    for pn in 0..1000 {
        packets.push(lost(pn, start + ms(pn)));
    }
    packets.expire(start + ms(600), ms(100));
    assert_eq!(
        packets.packets.front().map(|packet| packet.pn.get()),
        Some(500)
    );
    packets.expire(start + ms(1099), ms(100));
    assert_eq!(packets.packets.len(), 1);
    packets.expire(start + ms(1100), ms(100));
    assert_eq!(packets.packets.capacity(), 0);
}

#[test]
fn an_episode_is_refuted_when_all_its_losses_arrived() {
    let start = now();
    let at = |ms| start + Duration::from_millis(ms);
    let mut episode = Episode::default();
    let number = episode.on_lost(at(10), at(0), 2);
    assert_eq!(episode.on_lost(at(12), at(9), 1), number, "sent before it");
    episode.on_late(number);
    episode.on_late(number);
    assert!(!episode.is_refuted());
    episode.on_late(number);
    assert!(episode.is_refuted());
    assert!(!episode.is_refuted(), "once");
    assert_ne!(
        episode.on_lost(at(20), at(9), 1),
        number,
        "the next loss is another matter"
    );
}

#[test]
fn what_arrives_of_an_earlier_episode_refutes_nothing() {
    let start = now();
    let at = |ms| start + Duration::from_millis(ms);
    let mut episode = Episode::default();
    let first = episode.on_lost(at(10), at(0), 1);
    let second = episode.on_lost(at(30), at(20), 1);
    assert_ne!(first, second);
    episode.on_late(first);
    assert!(!episode.is_refuted());
    episode.on_late(second);
    assert!(episode.is_refuted());
}

#[test]
fn marks_cannot_be_refuted() {
    let start = now();
    let at = |ms| start + Duration::from_millis(ms);
    for losses_first in [true, false] {
        let mut episode = Episode::default();
        if !losses_first {
            episode.on_marked(at(10), at(0));
        }
        let number = episode.on_lost(at(10), at(0), 1);
        episode.on_marked(at(12), at(0));
        episode.on_late(number);
        assert!(!episode.is_refuted());
        let next = episode.on_lost(at(30), at(20), 1);
        episode.on_late(next);
        assert!(episode.is_refuted(), "the next one can");
    }
}
