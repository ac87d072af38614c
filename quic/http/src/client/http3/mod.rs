//! HTTP/3 over QUIC.

mod connection;
mod request;

pub(super) use self::connection::{Connection, Established, Handshake, New, Remembered, start};
