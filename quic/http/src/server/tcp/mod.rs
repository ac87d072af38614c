//! HTTP/1.1 and HTTP/2 over TCP.

mod activity;
mod answer;
mod body;
mod http2;
mod responses;
mod serve;
mod streams;

pub(super) use self::{
    activity::LEAST_BUFFER,
    serve::{SEND_BUFFER, STREAMS, TLS_BUFFER, accept},
};
