//! quinn on rustls with aws-lc-rs. The modules that name no library also drive its fork noq.

mod connection;
mod counters;
mod driver;
mod http;
mod socket;

use ::quinn as library;
use bytes::Bytes;
use library::{
    ClientConfig, ConnectionStats, Endpoint, ReadError, RecvStream, SendStream, WriteError,
};

use crate::stacks::quinn as stack;

pub(super) use driver::Quinn;

const NAME: &str = "quinn";
const HAS_HTTP: bool = true;

fn set_client(endpoint: &mut Endpoint, config: ClientConfig) {
    endpoint.set_default_client_config(config);
}

/// Returns the numbers of packets sent and lost.
fn packets(stats: &ConnectionStats) -> (u64, u64) {
    (stats.path.sent_packets, stats.path.lost_packets)
}

/// Takes some of the bytes.
async fn write(stream: &mut SendStream, data: &mut Bytes) -> Result<(), WriteError> {
    let written = stream.write_chunks(std::slice::from_mut(data)).await;
    written.map(|_| ())
}

async fn read(stream: &mut RecvStream, max: usize) -> Result<Option<Bytes>, ReadError> {
    let chunk = stream.read_chunk(max, true).await?;
    Ok(chunk.map(|chunk| chunk.bytes))
}
