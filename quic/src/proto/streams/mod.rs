//! Streams (RFC 9000 §2 to §4): both state machines, buffers, credit.

mod id;

#[doc(hidden)]
#[derive(Debug)]
pub struct Streams;

pub use id::{Direction, StreamId};
