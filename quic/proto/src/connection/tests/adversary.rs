//! A peer that holds the keys, acknowledges nothing, and does whatever makes a server send or hold
//! more than it should: it hops, asks for paths, leaves gaps and sends tiny pieces. After each step
//! all sent data and memory are within their bounds.
//!
//! With one of the bounds removed, the number of steps until the test notices:
//!
//! | bound | character | steps |
//! |---|---|---|
//! | answers obey the window of the path in use | `Asks` | 1 |
//! | probes on other paths are few | `AsksElsewhere` | 16 |
//! | one path to fall back to | `All` | 11 |
//! | bytes in flight on abandoned paths | `All` | 9 |
//! | size of ACK frames | `Gaps` | 64 |

use std::net::SocketAddr;

use super::{
    Pair, client_address,
    forged::{forge, pair},
};
use crate::{
    connection::Connection,
    endpoint::{Arrival, Local},
    forge::Raw,
    owners::streams::Direction,
    rng::Rng,
    wire::{
        Writer,
        frame::{FrameWriter, PathChallenge},
        limits,
        packet::Space,
    },
};

/// Steps of each adversary.
const STEPS: u64 = 400;

/// Preference of an adversary; one that does everything hides what another would reveal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Character {
    /// Does everything.
    All,
    /// Stays at its address, and asks for paths.
    Asks,
    /// Asks from one other address, which is validated.
    AsksElsewhere,
    /// Stays at its address, and leaves wide gaps between tiny packets.
    Gaps,
}

/// Bytes that the adversary received from the server and sent to it.
#[derive(Default)]
struct Ledger {
    received: u64,
    sent: u64,
    /// Bytes of datagrams that count towards a congestion window: larger than an ACK makes them.
    large: u64,
}

/// A STREAM frame of one byte after a gap, on any of the streams that the client may open.
fn piece(rng: &mut Rng, out: &mut FrameWriter<'_>) {
    let mut bytes = [0; 32];
    let mut writer = Writer::new(&mut bytes);
    // OFF and LEN, stream id, offset, length and the byte.
    writer.varint(0x0e);
    writer.varint(4 * rng.below(100));
    writer.varint(1 + 2 * rng.below(2000));
    writer.varint(1);
    writer.varint(7);
    let len = writer.len();
    out.write(&Raw(&bytes[..len]));
}

/// Forges what the adversary sends next, and returns it with its source address.
fn step(rng: &mut Rng, is: Character, client: &mut Connection) -> (SocketAddr, Vec<u8>) {
    if is == Character::Gaps || rng.below(4) == 0 {
        let next = client.recovery.next_number(Space::Data);
        let gap = next.saturating_add(1 + rng.below(20_000));
        client.recovery.on_number_used(Space::Data, gap);
    }
    let from = match (is, rng.below(4)) {
        (Character::Asks | Character::Gaps, _) | (Character::All, 0) => client_address(),
        (Character::AsksElsewhere, _) => SocketAddr::from(([198, 51, 100, 1], 443)),
        (_, 1) => SocketAddr::new(client_address().ip(), 40_000 + rng.below(4) as u16),
        (_, 2) => SocketAddr::from(([198, 51, 100, rng.below(3) as u8], 443)),
        _ => SocketAddr::from(([203, 0, 113, rng.below(200) as u8], 443)),
    };
    let kind = match is {
        Character::All => rng.below(4),
        Character::Gaps => 0,
        Character::Asks | Character::AsksElsewhere => 1,
    };
    let pad_to = match is {
        Character::All => [0, 0, 1200][rng.below(3) as usize],
        _ => 0,
    };
    let datagram = forge(client, Space::Data, pad_to, |out| match kind {
        0 => assert!(out.ping()),
        1 => assert!(out.write(&PathChallenge(rng.draw().to_be_bytes()))),
        2 => (0..20).for_each(|_| piece(rng, out)),
        _ => (0..3).for_each(|_| assert!(out.write(&PathChallenge(rng.draw().to_be_bytes())))),
    });
    (from, datagram)
}

fn receive(pair: &mut Pair, from: SocketAddr, datagram: &[u8]) {
    let arrival = Arrival {
        peer: from,
        local: Local::default(),
        ecn: None,
    };
    let now = pair.now;
    let server = pair.server.connection();
    server.on_datagram(now, &arrival, &mut datagram.to_vec());
}

/// Proves: security 8 windows-are-not-given-twice
/// Proves: security 8 path-challenge-floods-are-bounded
/// Proves: security 8 paths-are-bounded
/// Proves: security 4 wide-gaps-get-small-acks
#[test]
fn an_adversary_that_acknowledges_nothing_stays_within_every_bound() {
    use Character::{All, Asks, AsksElsewhere, Gaps};
    for (seed, is) in (0..20).zip([All, Asks, AsksElsewhere, Gaps].into_iter().cycle()) {
        let mut rng = Rng::new(seed);
        let mut pair = pair();
        pair.run();
        // There is always more to send.
        let streams = pair.server.connection().streams();
        let id = streams.open(Direction::Uni).unwrap();
        streams.write(id, &vec![7; 512 * 1024]).unwrap();
        let mut windows = pair.server.connection().recovery.window();
        let mut ledger = Ledger::default();
        for at in 0..STEPS {
            let (from, datagram) = step(&mut rng, is, pair.client.connection());
            ledger.received += datagram.len() as u64;
            receive(&mut pair, from, &datagram);
            // The adversary answers challenges from some of the places.
            if rng.below(3) == 0 {
                let paths = &mut pair.server.connection().paths;
                paths.active_mut().on_validated();
                paths
                    .others_mut()
                    .for_each(crate::owners::path::Path::on_validated);
            }
            for sent in pair.server.transmit(pair.now) {
                ledger.sent += sent.len() as u64;
                ledger.large += if sent.len() > 600 {
                    sent.len() as u64
                } else {
                    0
                };
            }
            let server = pair.server.connection();
            windows = windows.max(server.recovery.window());
            let place = format!("{is:?}, seed {seed}, step {at}");
            if server.is_closed() {
                // Pieces beyond the bound end the connection.
                break;
            }
            assert!(
                server.paths.others().count() <= limits::OTHER_PATHS,
                "{place}"
            );
            // The windows of the paths, what probes may take, and three times the bytes received from places
            // that are not validated.
            let most = match is {
                All => 2 * windows + limits::PROBE_BYTES + 3 * ledger.received,
                Asks | Gaps => windows,
                AsksElsewhere => windows + limits::PROBE_BYTES + 3 * 1200,
            };
            assert!(ledger.large <= most, "{place}: {} of {most}", ledger.large);
            let small = ledger.sent - ledger.large;
            assert!(
                small <= 5 * ledger.received,
                "{place}: {small} bytes of ACKs"
            );
            let held = server.recovery.outstanding(Space::Data).count() as u64;
            let packets = most / 600 + limits::ACK_ONLY_PACKETS as u64;
            assert!(held <= packets, "{place}: {held} packets");
        }
    }
}
