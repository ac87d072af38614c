//! Ids of streams.

use h3::quic::StreamId;

/// Returns the id of a stream as `h3` has it. Every id of the transport fits.
pub(crate) fn of(id: hybriq::StreamId) -> StreamId {
    StreamId::try_from(id.0).expect("ids of streams are below 2^62")
}
