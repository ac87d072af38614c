//! Byte streams in memory, shared by STREAM and CRYPTO: what came in pieces, what waits for its
//! acknowledgement.

mod range_set;
mod reassembler;
mod run;
mod send_buffer;
mod unordered;

#[cfg(test)]
mod tests;

pub(crate) use reassembler::Reassembler;
pub(crate) use run::Exceeded;
pub(crate) use send_buffer::SendBuffer;
