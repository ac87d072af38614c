//! Connection ids (RFC 9000 §5.1): those we issue and those the peer issued to us.

mod local;
mod remote;
mod sent;

pub use local::{CidEvent, Local};
pub use remote::Remote;
pub use sent::Sent;
