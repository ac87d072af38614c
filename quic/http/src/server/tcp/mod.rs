//! HTTP/1.1 and HTTP/2 over TCP.

mod activity;
mod body;
mod heads;
mod http2;
mod lent;
mod linger;
mod responses;
mod serve;

pub(super) use self::{
    activity::LEAST_BUFFER,
    serve::{SEND_BUFFER, STREAMS, TLS_BUFFER, accept},
};
