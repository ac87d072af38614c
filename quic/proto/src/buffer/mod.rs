//! Byte streams in memory, for STREAM and CRYPTO: reassembly of received data, and storage of sent
//! data until it is acknowledged.

mod range_set;
mod rare;
mod reassembler;
mod run;
mod send_buffer;
mod unordered;

#[cfg(test)]
mod tests;

pub(crate) use rare::Rare;
pub(crate) use reassembler::Reassembler;
pub(crate) use run::Exceeded;
pub(crate) use send_buffer::{Memory, SendBuffer};
