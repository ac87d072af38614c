//! Tests of ACK frames that are false, contradictory, or expensive (RFC 9000 §13.1, §21.4).

use std::{
    ops::RangeInclusive,
    time::{Duration, Instant},
};

use super::{
    Pair, client_address,
    forged::{forge, pair},
};
use crate::{
    connection::Connection,
    forge::Raw,
    owners::{
        path::Mtu,
        streams::{Direction, StreamId},
    },
    testing::pns,
    wire::{
        VarInt, Writer,
        error::{By, Code, ConnectionError, Violation},
        frame::{EcnCounts, FrameType, FrameWriter},
        packet::Space,
        udp::{Ecn, EcnState},
    },
};

/// Returns a pair with a complete handshake, and a stream that the server writes to. Tests count
/// its packets, so MTU probes are disabled.
fn established() -> (Pair, StreamId) {
    let mut pair = pair();
    pair.run();
    *pair.server.connection().paths.active_mut().mtu_mut() = Mtu::new(1200);
    let id = pair.server.connection().streams().open(Direction::Uni);
    (pair, id.unwrap())
}

impl Pair {
    /// Sends these frames, and no others, in the client's next 1-RTT packet.
    fn client_says(&mut self, fill: impl FnOnce(&mut FrameWriter<'_>)) {
        let mut datagram = forge(self.client.connection(), Space::Data, 0, fill);
        self.server
            .receive(self.now, client_address(), &mut datagram);
    }

    fn client_acks(&mut self, ranges: &[RangeInclusive<u64>], ecn: Option<EcnCounts>) {
        self.client_says(|out| {
            assert!(out.ack(0, ranges.iter().cloned().map(pns), ecn).is_some());
        });
    }

    /// Sends an ACK frame written field by field, valid or not.
    fn client_writes(&mut self, fields: &[u64]) {
        self.client_says(|out| {
            let mut bytes = [0; 1100];
            let mut writer = Writer::new(&mut bytes);
            for field in fields {
                writer.varint(*field);
            }
            let len = writer.len();
            assert!(out.write(&Raw(&bytes[..len])));
        });
    }

    /// Sends this number of bytes from the server, and loses all of them.
    fn server_sends(&mut self, id: StreamId, bytes: usize) -> u64 {
        let mut rest = bytes;
        while rest > 0 {
            rest -= self
                .server
                .connection()
                .streams()
                .write(id, &vec![7; rest])
                .unwrap();
            self.now += Duration::from_millis(1);
            self.server.transmit(self.now);
        }
        (self.server.connection().recovery.next_number(Space::Data)).get()
    }

    #[track_caller]
    fn assert_server_closed(&mut self, violation: Violation, reason: &str) {
        let expected = ConnectionError::Transport {
            by: By::Local,
            code: violation.code(),
            frame: Some(FrameType::ACK),
            violation: Some(violation),
            reason: reason.to_owned().into(),
        };
        assert_eq!(self.server.close_reason(), Some(expected));
    }
}

/// Proves: rfc9000 19.3 ack-of-unsent-closes
/// Proves: security 4 acks-of-unsent-packets-close
#[test]
fn an_ack_of_a_packet_that_was_never_sent_closes() {
    let (mut pair, id) = established();
    let next = pair.server_sends(id, 5000);
    pair.client_acks(&[next..=next], None);
    let reason = "ACK of a packet that was never sent";
    pair.assert_server_closed(Violation::AckOfUnsent, reason);
}

/// An optimistic peer acknowledges whatever may have been sent, and is soon detected.
/// Proves: rfc9000 21.4 skipped-numbers-catch-optimists
/// Proves: security 4 acks-of-skipped-packets-close
#[test]
fn an_ack_of_a_skipped_number_closes() {
    let (mut pair, id) = established();
    for _ in 0..20 {
        let next = pair.server_sends(id, 6000);
        pair.client_acks(&[0..=next - 1], None);
        if pair.server.connection().is_closed() {
            let reason = "ACK of a packet number that was skipped";
            pair.assert_server_closed(Violation::AckOfSkipped, reason);
            return;
        }
    }
    panic!("no number was skipped");
}

#[test]
fn an_honest_peer_is_not_mistaken_for_an_optimistic_one() {
    for _ in 0..5 {
        let (mut pair, id) = established();
        let mut skipped = 0;
        for _ in 0..100 {
            let sent = pair.server.connection().stats().packets_sent;
            let next = pair.server.connection().recovery.next_number(Space::Data);
            let _ = pair.server.connection().streams().write(id, &[7; 6000]);
            pair.run();
            let recovery = &pair.server.connection().recovery;
            let numbers = recovery.next_number(Space::Data).distance_from(next);
            skipped += numbers - (pair.server.connection().stats().packets_sent - sent);
        }
        assert!((2..9).contains(&skipped), "{skipped}");
        assert!(!pair.server.connection().is_closed());
        assert_eq!(pair.server.connection().stats().packets_lost, 0);
    }
}

/// Ranges cannot overlap on the wire, because each is counted down from the one before.
/// Proves: rfc9000 19.3.1 negative-ack-ranges-close
#[test]
fn ranges_that_reach_below_zero_close() {
    let frames: [&[u64]; 5] = [
        &[2, 2, 0, 0, 3],
        &[2, 2, 0, 1, 0, 1, 0],
        &[2, 2, 0, 1, 1, 0, 1],
        &[2, 2, 0, 1, 2, VarInt::MAX.get(), 0],
        &[2, 2, 0, 1, 0, 0, VarInt::MAX.get()],
    ];
    for frame in frames {
        let (mut pair, id) = established();
        pair.server_sends(id, 5000);
        pair.client_writes(frame);
        let reason = "ACK range reaches below packet number 0";
        pair.assert_server_closed(Violation::AckBelowZero, reason);
    }
}

#[test]
fn more_ranges_than_a_frame_has_bytes_for_close() {
    for count in [3, 1 << 30, VarInt::MAX.get()] {
        let (mut pair, id) = established();
        pair.server_sends(id, 20_000);
        pair.client_writes(&[2, 15, 0, count, 0, 0, 0, 1, 0]);
        assert!(matches!(
            pair.server.close_reason(),
            Some(ConnectionError::Transport {
                code: Code::FRAME_ENCODING_ERROR,
                frame: Some(FrameType::ACK),
                ..
            })
        ));
    }
}

/// Proves: security 4 ack-ranges-cost-what-was-sent
#[test]
fn ranges_that_fill_a_packet_are_looked_at_for_nothing_if_one_is_a_lie() {
    let (mut pair, _) = established();
    let mut fields = vec![2, 1 << 20, 0, 500, 0];
    fields.extend([0; 1000]);
    pair.client_writes(&fields);
    let reason = "ACK of a packet that was never sent";
    pair.assert_server_closed(Violation::AckOfUnsent, reason);
}

/// Proves: security 4 ack-ranges-cost-what-was-sent
#[test]
fn ranges_that_repeat_settle_each_packet_once() {
    let (mut pair, id) = established();
    let next = pair.server_sends(id, 9_000);
    let ranges: Vec<_> = [1, 3, 5, 7].map(|back| next - back..=next - back).into();
    for _ in 0..1000 {
        pair.client_acks(&ranges, None);
    }
    let stats = pair.server.connection().stats();
    assert!(!pair.server.connection().is_closed());
    assert_eq!(stats.packets_lost, 3, "those that three numbers overtook");
    let streams = pair.server.connection().streams();
    assert!(streams.has_pending(), "their data is to be sent again");
}

/// Proves: rfc9002 5.3 ack-delay-is-bounded
#[test]
fn an_endless_ack_delay_is_believed_as_far_as_was_agreed() {
    let (mut pair, id) = established();
    for _ in 0..10 {
        let next = pair.server_sends(id, 1000);
        pair.now += Duration::from_millis(80);
        let delay = VarInt::MAX.get();
        pair.client_says(|out| {
            assert!(
                out.ack(delay, [pns(next - 1..=next - 1)].into_iter(), None)
                    .is_some()
            );
        });
        let rtt = pair.server.connection().recovery.rtt();
        // The agreed limit is 25 ms, and the result is never below the minimum round trip.
        assert!(rtt.latest() >= Duration::from_millis(80));
        assert!(rtt.smoothed() >= rtt.min(), "{rtt:?}");
        assert!(rtt.smoothed() <= Duration::from_millis(90), "{rtt:?}");
    }
    let rtt = pair.server.connection().recovery.rtt();
    assert!(rtt.smoothed() >= Duration::from_millis(45), "{rtt:?}");
    assert!(!pair.server.connection().is_closed());
}

impl Connection {
    fn next_loss_timer(&self) -> Option<Instant> {
        self.recovery.next_timeout(&self.recovery_context())
    }
}

#[test]
fn a_flood_of_acks_with_nothing_new_changes_nothing() {
    let (mut pair, id) = established();
    let next = pair.server_sends(id, 5000);
    pair.client_acks(&[next - 3..=next - 3], None);
    pair.server.events();
    pair.server.transmit(pair.now);
    let before = pair.server.connection().stats();
    let timer = pair.server.connection().next_loss_timer();
    for _ in 0..5000 {
        pair.client_acks(&[next - 3..=next - 3], None);
        assert!(pair.server.transmit(pair.now).is_empty(), "no answer");
    }
    let after = pair.server.connection().stats();
    assert_eq!(after.packets_received, before.packets_received + 5000);
    assert_eq!(
        (after.rtt, after.congestion_window, after.bytes_in_flight),
        (before.rtt, before.congestion_window, before.bytes_in_flight)
    );
    assert_eq!(pair.server.connection().next_loss_timer(), timer);
}

/// A server that tests ECN again: earlier packets had no marks.
fn testing() -> (Pair, StreamId, u64) {
    let (mut pair, id) = established();
    assert_eq!(
        pair.server.connection().recovery.ecn_state(),
        EcnState::Failed,
        "this network bleaches"
    );
    pair.server.connection().recovery.reset_ecn();
    let next = pair.server_sends(id, 12_000);
    let recovery = &pair.server.connection().recovery;
    assert_eq!(recovery.ecn_mark(), Some(Ecn::Ect0));
    (pair, id, next)
}

fn ect0(ect0: u64, ce: u64) -> EcnCounts {
    EcnCounts { ect0, ect1: 0, ce }
}

/// Proves: rfc9000 13.4.2.2 failed-ecn-is-switched-off
#[test]
fn ecn_counts_that_decrease_end_ecn_and_nothing_else() {
    let (mut pair, id, next) = testing();
    pair.client_acks(&[next - 4..=next - 4], Some(ect0(3, 1)));
    assert_eq!(pair.server.connection().recovery.ecn_echoed().ce, 1);
    pair.client_acks(&[next - 3..=next - 3], Some(ect0(4, 0)));
    let recovery = &pair.server.connection().recovery;
    assert_eq!(recovery.ecn_state(), EcnState::Failed);
    assert_eq!((recovery.ecn_mark(), recovery.ecn_echoed().ce), (None, 1));
    let next = pair.server_sends(id, 1000);
    pair.client_acks(&[next - 1..=next - 1], Some(ect0(0, 1 << 61)));
    assert_eq!(pair.server.connection().recovery.ecn_echoed().ce, 1);
    assert!(!pair.server.connection().is_closed());
}

/// Proves: rfc9000 13.4.2.2 failed-ecn-is-switched-off
#[test]
fn ecn_counts_of_more_packets_than_there_are_end_ecn_and_nothing_else() {
    for counts in [
        ect0(1 << 20, 0),
        ect0(1, 1 << 61),
        ect0(0, VarInt::MAX.get()),
    ] {
        let (mut pair, ..) = testing();
        let recovery = &pair.server.connection().recovery;
        let window = recovery.window();
        // Too few are missing before them to count as lost, which would be congestion.
        let before = recovery.largest_acked(Space::Data).unwrap().get();
        pair.client_acks(&[before + 1..=before + 4], Some(counts));
        let recovery = &pair.server.connection().recovery;
        assert_eq!(recovery.ecn_state(), EcnState::Failed);
        assert!(recovery.window() >= window, "no sign of congestion");
        assert!(!pair.server.connection().is_closed());
    }
}

/// Proves: security 4 wide-gaps-get-small-acks
#[test]
fn tiny_packets_with_wide_gaps_do_not_get_large_acknowledgements() {
    let (mut pair, _) = established();
    let (mut came, mut left) = (0, 0);
    for _ in 0..2000 {
        let client = pair.client.connection();
        let next = client.recovery.next_number(Space::Data);
        client
            .recovery
            .on_number_used(Space::Data, next.saturating_add(20_000));
        let mut tiny = forge(client, Space::Data, 0, |out| assert!(out.ping()));
        came += tiny.len();
        pair.server.receive(pair.now, client_address(), &mut tiny);
        left += pair
            .server
            .transmit(pair.now)
            .iter()
            .map(Vec::len)
            .sum::<usize>();
    }
    assert!(pair.server.close_reason().is_none());
    assert!(left <= 4 * came, "{left} bytes for {came}");
}
