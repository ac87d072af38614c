//! Streams of messages, over our core or the crate `h3`.

use std::task::{Context, Poll};

use bytes::{Buf, Bytes};
use h3::error::StreamError;
use http::HeaderMap;
use hybriq_h3::{Payload, RecvStream, core::Code};

/// The receiving half of an HTTP/3 stream, at a server or a client.
pub(crate) trait Stream {
    type Error: std::error::Error + Send + Sync + 'static;

    fn poll_data(&mut self, cx: &mut Context<'_>) -> Poll<Result<Option<Bytes>, Self::Error>>;
    fn poll_trailers(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Option<HeaderMap>, Self::Error>>;

    /// Returns true if it is known that nothing more comes.
    fn is_end(&self) -> bool {
        false
    }

    fn stop(&mut self, code: Code);
}

impl Stream for h3::server::RequestStream<RecvStream, Payload> {
    type Error = StreamError;

    fn poll_data(&mut self, cx: &mut Context<'_>) -> Poll<Result<Option<Bytes>, StreamError>> {
        self.poll_recv_data(cx).map_ok(|data| data.map(bytes))
    }

    fn poll_trailers(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Option<HeaderMap>, StreamError>> {
        self.poll_recv_trailers(cx)
    }

    fn stop(&mut self, code: Code) {
        self.stop_sending(code.0.into());
    }
}

impl Stream for h3::client::RequestStream<RecvStream, Payload> {
    type Error = StreamError;

    fn poll_data(&mut self, cx: &mut Context<'_>) -> Poll<Result<Option<Bytes>, StreamError>> {
        self.poll_recv_data(cx).map_ok(|data| data.map(bytes))
    }

    fn poll_trailers(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Option<HeaderMap>, StreamError>> {
        self.poll_recv_trailers(cx)
    }

    fn stop(&mut self, code: Code) {
        self.stop_sending(code.0.into());
    }
}

fn bytes(mut data: impl Buf) -> Bytes {
    data.copy_to_bytes(data.remaining())
}
