//! noq on rustls with aws-lc-rs. It is a fork of quinn, so that its driver is that of quinn with
//! other names.

#[path = "../quinn/connection.rs"]
mod connection;
#[path = "../quinn/counters.rs"]
mod counters;
#[path = "../quinn/driver.rs"]
mod driver;
mod http;
mod socket;

use ::noq as library;
use bytes::{Buf as _, Bytes};
use library::{
    ClientConfig, ConnectionStats, Endpoint, ReadError, RecvStream, SendStream, WriteError,
};

use crate::stacks::noq as stack;

pub(super) use driver::Quinn as Noq;

const NAME: &str = "noq";
const HAS_HTTP: bool = false;

fn set_client(endpoint: &mut Endpoint, config: ClientConfig) {
    endpoint.set_default_client_config(config);
}

/// Returns the numbers of packets sent and lost.
fn packets(stats: &ConnectionStats) -> (u64, u64) {
    (stats.sent_packets, stats.lost_packets)
}

/// Takes some of the bytes.
async fn write(stream: &mut SendStream, data: &mut Bytes) -> Result<(), WriteError> {
    let written = stream
        .write_many_chunks(&mut [data.clone()].as_mut_slice())
        .await?;
    data.advance(written);
    Ok(())
}

async fn read(stream: &mut RecvStream, max: usize) -> Result<Option<Bytes>, ReadError> {
    stream.read_chunk(max).await
}
