//! The use of dynamic tables (RFC 9204).

use std::collections::BTreeMap;

use hybriq_h3::qpack::Decoder;

use super::{Evidence, demand, expect_handshakes};
use crate::{
    runner::Role::{self, Client, Server},
    testbed::dissect::Frame,
};

/// Type of a stream with instructions of an encoder (RFC 9204 §4.2).
const ENCODER: u8 = 2;
/// Capacity of a table that is larger than any here.
const CAPACITY: usize = 1 << 20;

/// Both ends insert entries into their dynamic tables.
pub(in crate::testbed) fn qpack(run: &Evidence) -> Result<String, String> {
    expect_handshakes(run, 1)?;
    let (client, server) = (entries(run, Client)?, entries(run, Server)?);
    demand(client > 0, "the client inserts no entry")?;
    demand(server > 0, "the server inserts no entry")?;
    Ok(format!("{client} and {server} entries"))
}

/// Returns how many entries an end inserts.
fn entries(run: &Evidence, from: Role) -> Result<u64, String> {
    let mut streams: BTreeMap<u64, BTreeMap<u64, &[u8]>> = BTreeMap::new();
    for (_, _, frame) in run.client.frames(from) {
        if let Frame::Stream {
            id, offset, uni, ..
        } = frame
        {
            let parts = streams.entry(*id).or_default();
            let part = parts.entry(*offset).or_default();
            if part.len() < uni.len() {
                *part = uni;
            }
        }
    }
    for parts in streams.values() {
        let mut data = Vec::new();
        for (offset, part) in parts {
            let known = (data.len() as u64).saturating_sub(*offset) as usize;
            if data.len() as u64 >= *offset {
                data.extend_from_slice(part.get(known..).unwrap_or_default());
            }
        }
        if let Some((&ENCODER, instructions)) = data.split_first() {
            let mut decoder = Decoder::new(CAPACITY, 0, u64::MAX);
            let read = decoder.on_encoder_stream(instructions);
            read.map_err(|error| format!("{from:?}: {error}"))?;
            return Ok(decoder.inserted());
        }
    }
    Ok(0)
}
