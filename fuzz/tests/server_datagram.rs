//! The whole path of a datagram through a server with a connection: real datagrams that were
//! changed, and arbitrary frames from a malicious client with valid keys.
#![expect(clippy::unwrap_used, reason = "a target that cannot go on has failed")]

mod support;

use std::{panic::AssertUnwindSafe, time::Duration};

use hybriq::tls::{Side, Suite};
use hybriq_proto::wire::{
    frame::FrameWriter,
    packet::{
        Cid, DirectionKeys, Header, KeyPhase, Kind, PacketNumber, SpinValue, Version,
        initial_direction,
    },
};
use hybriq_sim::{Datagram, Raw, SERVER_ADDRESS, World, initial_header, ms, seal_packet};
use hybriq_tls::{Level, Secret};

/// Progress of the handshake when the attack begins: half of a ClientHello is missing, the server
/// has answered, the handshake is over.
const STAGES: [u64; 3] = [49, 60, 350];

fn deliver(world: &mut World, payload: Vec<u8>) {
    let source = world.client_host(0).address;
    world.deliver(Datagram::new(source, SERVER_ADDRESS, payload));
}

/// Checks that everything ends in time and leaves nothing behind.
fn finish(mut world: World, attacks: usize) {
    world.run(Duration::from_mins(2));
    assert!(world.server().peers().len() <= 1 + attacks);
    assert_eq!(world.server().stats().connections, 0);
    assert_eq!(world.server().stats().waiting_incoming, 0);
}

#[test]
fn changed_datagrams() {
    let server = AssertUnwindSafe(support::server());
    let attack = bolero::check!()
        .with_iterations(300)
        .with_type::<(u8, Vec<(u8, u16, u8, u16)>)>();
    attack.for_each(|(stage, changes)| {
        let (mut world, _) = support::world(&server);
        world.run_for(ms(STAGES[usize::from(*stage) % STAGES.len()]));
        let sent = world
            .trace()
            .sent(Side::Server)
            .chain(world.trace().sent(Side::Client));
        let real: Vec<_> = sent.map(|record| record.payload.clone()).collect();
        for &(which, at, flip, len) in changes.iter().take(40) {
            let mut payload = real[usize::from(which) % real.len()].clone();
            payload.resize(payload.len().min(usize::from(len)), 0);
            if let Some(at) = usize::from(at).checked_rem(payload.len()) {
                payload[at] ^= flip;
            }
            deliver(&mut world, payload);
            world.run_for(ms(1));
        }
        finish(world, changes.len());
    });
}

#[test]
fn authentic_frames() {
    let server = AssertUnwindSafe(support::server());
    let attack = bolero::check!()
        .with_iterations(600)
        .with_type::<(u8, Vec<(u8, u8, Vec<u8>)>)>();
    attack.for_each(|(stage, packets)| {
        let (mut world, log) = support::world(&server);
        world.expect_hostile_clients();
        world.run_for(ms(STAGES[usize::from(*stage) % STAGES.len()]));
        let first = world.trace().sent(Side::Server).next().unwrap().packets[0].clone();
        let answer = world.trace().sent(Side::Client).next();
        let dcid = answer.map_or(first.dcid, |answer| answer.packets[0].scid);
        for (index, (kind, ty, fields)) in packets.iter().take(20).enumerate() {
            let fill = |out: &mut FrameWriter<'_>| {
                match ty % 0x21 {
                    0x20 => out.write(&Raw(&[0x40, 0xaf])),
                    ty => out.write(&Raw(&[ty])),
                };
                out.write(&Raw(fields));
                if kind % 4 == 0 { 1200 } else { 0 }
            };
            let number = PacketNumber::saturating(100 + index as u64);
            let keys = |label, level| client_keys(&log, label, level);
            let packet = match kind % 3 {
                0 => {
                    let keys = initial_direction(Version::V1, &first.dcid, Side::Client);
                    let header = initial_header(dcid, first.scid);
                    Some(seal_packet(&header, number, &keys, fill))
                }
                1 => keys("CLIENT_HANDSHAKE_TRAFFIC_SECRET", Level::Handshake)
                    .map(|keys| seal_packet(&handshake(dcid, first.scid), number, &keys, fill)),
                _ => keys("CLIENT_TRAFFIC_SECRET_0", Level::OneRtt)
                    .map(|keys| seal_packet(&one_rtt(dcid), number, &keys, fill)),
            };
            if let Some(payload) = packet {
                deliver(&mut world, payload);
                world.run_for(ms(1));
            }
        }
        finish(world, packets.len());
    });
}

/// Returns the header of a Handshake packet in the version that both ends prefer.
fn handshake(dcid: Cid, scid: Cid) -> Header<'static> {
    Header::Long {
        kind: Kind::Handshake,
        version: Version::V2,
        dcid,
        scid,
        token: &[],
    }
}

fn one_rtt(dcid: Cid) -> Header<'static> {
    Header::Short {
        dcid,
        spin: SpinValue::Zero,
        key_phase: KeyPhase::Zero,
    }
}

/// Returns the keys with which the client encrypts.
fn client_keys(log: &support::Log, label: &str, level: Level) -> Option<DirectionKeys> {
    let lines = log.lock().unwrap();
    let line = lines
        .iter()
        .find(|line| line.split(' ').next() == Some(label))?;
    let hex = line.split(' ').nth(2)?;
    let secret: Vec<u8> = (0..hex.len())
        .step_by(2)
        .map(|at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap())
        .collect();
    let suite = Suite::Aes128GcmSha256;
    let secret = Secret::new(level, Side::Client, suite, &secret)?;
    Some(DirectionKeys::from_secret(Version::V2, &secret))
}
