//! HTTP/3 over QUIC.

mod answers;
mod connection;
mod request;
mod response;
mod serve;
mod stalls;
mod tunnel;

pub(super) use self::{connection::for_http3, serve::accept};
