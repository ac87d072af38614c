//! What a capture must show: the checks of the runner, and of a post-quantum handshake.

mod post_quantum;
mod qpack;
mod runner;
#[cfg(test)]
mod tests;

use std::collections::HashSet;

pub(super) use self::{
    post_quantum::{group, hello_retry, post_quantum, post_quantum_retry, post_quantum_with_loss},
    qpack::qpack,
    runner::{
        address_rebinding, amplification, arrived, chacha20, ecn, fifty_handshakes, goodput,
        handshake, ipv6, key_update, long_rtt, migration, multiplexing, one_handshake,
        port_rebinding, resumption, retry, version_2, zero_rtt,
    },
};
use super::dissect::{Dissection, Facts, Frame, Kind};
use crate::runner::Role::{Client, Server};

/// A finished run, whose files have arrived.
pub(super) struct Evidence {
    /// Groups that the server had, by name; empty for its default.
    pub(super) groups: &'static str,
    /// Packets at the client's side of the link.
    pub(super) client: Dissection,
    /// Packets at the server's side, behind the NAT.
    pub(super) server: Dissection,
    /// Bytes of the files.
    pub(super) bytes: usize,
}

/// Checks a run. Returns what was measured, or why it failed.
pub(super) type Check = fn(&Evidence) -> Result<String, String>;

const V1: u32 = 1;
const V2: u32 = 0x6b33_43cf;

fn demand(holds: bool, otherwise: impl Into<String>) -> Result<(), String> {
    if holds { Ok(()) } else { Err(otherwise.into()) }
}

/// Returns the handshakes that a server answered, as ids that it chose.
fn handshakes(run: &Evidence) -> usize {
    let answers = run.server.packets(Server);
    let answers = answers.filter(|(_, packet)| packet.kind == Kind::Initial);
    let ids: HashSet<_> = answers.map(|(_, packet)| &packet.from_id).collect();
    ids.len()
}

fn count(run: &Evidence, kind: Kind) -> usize {
    let all = run.client.packets(Server).chain(run.client.packets(Client));
    all.filter(|(_, packet)| packet.kind == kind).count()
}

/// Exactly this many handshakes, which the server answers in version 1.
fn expect_handshakes(run: &Evidence, expected: usize) -> Result<(), String> {
    let found = handshakes(run);
    demand(
        found == expected,
        format!("{found} handshakes instead of {expected}"),
    )?;
    let answers = run.server.packets(Server);
    let mut answers = answers.filter(|(_, packet)| packet.kind == Kind::Initial);
    demand(
        answers.all(|(_, packet)| packet.version == Some(V1)),
        "the server answers in another version than 1",
    )
}

/// Returns who first closed a connection because of an error, and its code.
pub(super) fn closed(run: &Evidence) -> Option<String> {
    /// Codes of QUIC and of HTTP/3 that mean none.
    const NO_ERROR: [u64; 2] = [0, 0x100];
    run.client.datagrams.iter().find_map(|datagram| {
        let opened = datagram.packets.iter().filter_map(|it| it.opened.as_ref());
        let mut frames = opened.flat_map(|opened| &opened.frames);
        let code = frames.find_map(|frame| match frame {
            Frame::Close { code } if !NO_ERROR.contains(code) => Some(*code),
            _ => None,
        })?;
        let end = match datagram.from {
            Client => "client",
            Server => "server",
        };
        Some(format!("the {end} closes with {code:#x}"))
    })
}

fn connections(run: &Evidence) -> Result<&[Facts], String> {
    let connections = &run.client.connections[..];
    demand(!connections.is_empty(), "no connection")?;
    Ok(connections)
}
