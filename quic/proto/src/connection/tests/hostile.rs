//! Tests of a peer with valid keys that writes arbitrary frames.

use std::time::Duration;

use hybriq_tls::Side;

use super::{
    Pair, client_address,
    forged::{forge, pair},
    server_address,
};
use crate::{
    forge::Raw,
    owners::streams::{Direction, StreamId},
    rng::Rng,
    testing::pns,
    wire::{
        VarInt, Writer,
        frame::{
            AckFrequency, FrameWriter, MaxData, MaxStreamData, MaxStreams, NewConnectionId,
            PathChallenge, ResetStream, ResetStreamAt, RetireConnectionId, StopSending,
            StreamDataBlocked, StreamHeader,
        },
        packet::{Cid, Space},
    },
};

/// Returns a number as an attacker would pick it: mostly small, sometimes near the limit.
fn number(rng: &mut Rng) -> u64 {
    match rng.below(12) {
        0 => VarInt::MAX.get() - rng.below(4),
        1 => 1 << 60,
        2 => rng.below(1 << 32),
        3..=6 => rng.below(2000),
        _ => rng.below(8),
    }
}

/// Writes any frame type with any fields, which mostly breaks a rule.
fn wild_frame(rng: &mut Rng, out: &mut FrameWriter<'_>) {
    let mut bytes = [0; 128];
    let mut writer = Writer::new(&mut bytes);
    writer.varint(match rng.below(0x24) {
        0x20 => 0xaf,
        0x21 => 0x24,
        ty @ 0x22.. => ty + 0x30 - 0x22,
        ty => ty,
    });
    for _ in 0..rng.below(6) {
        writer.varint(number(rng));
    }
    let len = writer.len();
    out.write(&Raw(&bytes[..len]));
}

/// Writes a frame that is valid on its own, but may contradict others.
fn frame(rng: &mut Rng, attacker: Side, sent: u64, out: &mut FrameWriter<'_>) {
    let directions = [Direction::Bidi, Direction::Uni];
    let direction = directions[rng.below(2) as usize];
    let index = rng.below(20);
    let theirs = StreamId::new(attacker, direction, index);
    let ours = StreamId::new(attacker.peer(), direction, index % 4);
    let of_either = if direction == Direction::Bidi && rng.below(2) == 0 {
        StreamId::new(attacker.peer(), direction, index % 4)
    } else {
        theirs
    };
    // One final size for each stream, so that it can be repeated.
    let size = 300 + 10 * index;
    match rng.below(20) {
        0..=2 => {
            let mut ranges: Vec<_> = (0..=rng.below(4)).map(|_| rng.below(sent + 1)).collect();
            ranges.sort_unstable_by_key(|&pn| std::cmp::Reverse(pn));
            ranges.dedup_by(|lower, upper| *upper < *lower + 2);
            let _ = out.ack(number(rng), ranges.into_iter().map(|pn| pns(pn..=pn)), None);
        }
        3..=5 => {
            let offset = rng.below(size);
            let len = rng.below(size - offset + 1);
            let fin = offset + len == size;
            let id = theirs;
            out.stream(StreamHeader { id, offset, fin }, len as usize, |data| {
                data.fill(7);
            });
        }
        6 => {
            let (code, final_size) = (number(rng), size);
            let id = theirs;
            out.write(&ResetStream {
                id,
                code,
                final_size,
            });
        }
        7 => {
            let (id, code) = (ours, number(rng));
            out.write(&StopSending { id, code });
        }
        8 => {
            out.write(&MaxData { max: number(rng) });
        }
        9 => {
            let (id, max) = (ours, number(rng));
            out.write(&MaxStreamData { id, max });
        }
        10 => {
            let max = rng.below(30);
            out.write(&MaxStreams { direction, max });
        }
        11 => {
            let (id, limit) = (of_either, number(rng));
            out.write(&StreamDataBlocked { id, limit });
        }
        12 => {
            let sequence = 1 + rng.below(12);
            out.write(&NewConnectionId {
                sequence,
                retire_prior_to: rng.below(sequence + 1),
                cid: Cid::from([sequence as u8; 8]),
                reset_token: [sequence as u8; 16].into(),
            });
        }
        13 => {
            let sequence = 1 + rng.below(6);
            out.write(&RetireConnectionId { sequence });
        }
        14 => {
            out.write(&PathChallenge([index as u8; 8]));
        }
        15 => {
            out.write(&AckFrequency {
                sequence: number(rng),
                threshold: number(rng),
                max_delay: 1000 + rng.below(16_000_000),
                reordering: number(rng),
            });
        }
        16 => {
            out.immediate_ack();
        }
        17 => {
            out.datagram(&[7; 100][..rng.below(100) as usize]);
        }
        18 => {
            let (id, code, final_size) = (theirs, index, size);
            let reliable_size = rng.below(size + 1);
            out.write(&ResetStreamAt {
                id,
                code,
                final_size,
                reliable_size,
            });
        }
        _ => {
            let offset = 100 + rng.below(1000);
            out.crypto(offset, 20, |data| data.fill(1));
        }
    }
}

/// Sends one hostile packet and handles the victim's reaction. Returns true if the connection
/// continues.
fn attack(pair: &mut Pair, rng: &mut Rng, from_client: bool) -> bool {
    let space = [
        Space::Data,
        Space::Data,
        Space::Data,
        Space::Handshake,
        Space::Initial,
    ];
    let space = space[rng.below(5) as usize];
    let (attacker, victim, address) = if from_client {
        (&mut pair.client, &mut pair.server, client_address())
    } else {
        (&mut pair.server, &mut pair.client, server_address())
    };
    if victim.connection().is_closed() {
        return false;
    }
    if attacker
        .connection()
        .handshake
        .sealing_keys(space)
        .is_none()
    {
        return true;
    }
    let sent = victim.connection().recovery.next_number(space);
    let side = attacker.connection().side();
    let mut datagram = forge(attacker.connection(), space, 1200, |out| {
        for _ in 0..=rng.below(4) {
            match (rng.below(400), space) {
                (0, _) => wild_frame(rng, out),
                (_, Space::Data) => frame(rng, side, sent.get().saturating_sub(1), out),
                _ => assert!(out.ping()),
            }
        }
    });
    victim.receive(pair.now, address, &mut datagram);
    for direction in [Direction::Bidi, Direction::Uni] {
        let streams = victim.connection().streams();
        while let Some(id) = streams.accept(direction) {
            let mut buffer = [0; 100];
            while streams.read(id, &mut buffer).is_ok_and(|read| read > 0) {}
            let _ = streams.write(id, &[7; 3000]);
        }
        if let Some(id) = streams.open(direction) {
            let _ = streams.write(id, &[7; 3000]);
        }
    }
    let _ = victim.connection().send_datagram(vec![1; 500].into());
    if rng.below(8) == 0 {
        victim.connection().datagrams().recv();
        let _ = victim.connection().streams().reset_at(
            StreamId::new(side.peer(), Direction::Uni, rng.below(4)),
            rng.below(3),
            rng.below(4000),
        );
    }
    victim.events();
    victim.transmit(pair.now);
    pair.now += Duration::from_millis(rng.below(40));
    for _ in 0..8 {
        let now = pair.now;
        let due = victim
            .connection()
            .next_timeout()
            .is_some_and(|at| at <= now);
        if !due {
            break;
        }
        victim.connection().on_timeout(now);
        if !victim.endpoint_keeps() {
            return false;
        }
        victim.transmit(now);
    }
    let now = pair.now;
    let next = victim.connection().next_timeout();
    assert!(
        next.is_some_and(|at| at > now),
        "a timer in the past, or none"
    );
    true
}

#[test]
fn a_peer_may_write_any_frame_and_breaks_nothing() {
    for seed in 0..150 {
        let mut rng = Rng::new(seed);
        let from_client = seed % 2 == 0;
        let mut pair = pair();
        for _ in 0..rng.below(5) {
            pair.step();
        }
        if pair.server.connection.is_none() {
            continue;
        }
        for _ in 0..100 {
            if !attack(&mut pair, &mut rng, from_client) {
                break;
            }
        }
    }
}
