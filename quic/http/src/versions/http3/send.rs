//! Messages that are sent.

use std::{
    cell::Cell,
    future::poll_fn,
    sync::Arc,
    task::{Context, Poll, ready},
};

use bytes::Bytes;
use http::{HeaderMap, Method, Request, Response, StatusCode};
use hybriq::{SendStream, StreamId, WriteError};
use hybriq_h3::{Code, Receiver, put_data_head, qpack::FieldRef};

use super::{Link, Recv, StreamError};

/// Number of bytes of content that are sent in one piece with the frames before it.
const SHORT: usize = 256;

thread_local! {
    /// Memory of a head that was sent, for the next one.
    static SPARE: Cell<Vec<u8>> = const { Cell::new(Vec::new()) };
}

/// The sending half of a stream. Dropping it before its end resets the stream with H3_REQUEST_CANCELLED.
pub(crate) struct Send {
    stream: SendStream,
    link: Arc<Link>,
    /// What was encoded, and is sent with what follows.
    held: Vec<u8>,
    /// The rest of what was being sent.
    unsent: Bytes,
    is_over: bool,
}

impl Link {
    /// Opens a stream for a request, and encodes its head, which is sent with what follows it.
    ///
    /// # Errors
    /// The server takes no requests, or no fields of this size, or the connection is over.
    pub(crate) async fn request(
        self: &Arc<Self>,
        request: &Request<()>,
    ) -> Result<(Send, Recv<Response<()>>), StreamError> {
        let (stream, recv) = self.transport.open_bidi().await?;
        let mut send = Send::new(stream, self.clone());
        let (id, held) = (send.id(), &mut send.held);
        let method: &Method = request.method();
        let recv = Recv::new(recv, Receiver::response(id, method), self.clone());
        self.with(|core| Ok(core.http3.write_request(id, request, held)?))?;
        Ok((send, recv))
    }
}

impl Send {
    pub(super) fn new(stream: SendStream, link: Arc<Link>) -> Self {
        Self {
            stream,
            link,
            held: Vec::new(),
            unsent: Bytes::new(),
            is_over: false,
        }
    }

    pub(crate) fn id(&self) -> StreamId {
        self.stream.id()
    }

    /// Returns true if something waits for what follows it.
    pub(crate) fn is_holding(&self) -> bool {
        !self.held.is_empty() || !self.unsent.is_empty()
    }

    /// Sends what waits. The rest is sent later if the future is dropped.
    pub(crate) async fn flush(&mut self) -> Result<(), StreamError> {
        self.unsent = self.take();
        while !self.unsent.is_empty() {
            poll_fn(|cx| self.stream.poll_write_chunk(cx, &mut self.unsent)).await?;
        }
        Ok(())
    }

    /// Takes what waits.
    fn take(&mut self) -> Bytes {
        let held = std::mem::take(&mut self.held);
        let unsent = std::mem::take(&mut self.unsent);
        if unsent.is_empty() {
            held.into()
        } else {
            [&unsent[..], &held].concat().into()
        }
    }

    /// Sends content.
    pub(crate) async fn data(&mut self, data: Bytes) -> Result<(), StreamError> {
        if data.is_empty() {
            return Ok(());
        }
        put_data_head(data.len() as u64, &mut self.held);
        let before = self.take();
        Ok(self.stream.write_chunks(&mut [before, data]).await?)
    }

    /// Encodes the head of a response, which is sent with what follows it. `extra` are fields that are not in the map.
    ///
    /// # Errors
    /// The client takes no fields of this size.
    pub(crate) fn response<'f>(
        &mut self,
        status: StatusCode,
        fields: &'f HeaderMap,
        extra: impl IntoIterator<Item = FieldRef<'f>>,
    ) -> Result<(), StreamError> {
        // Most heads are short, and so is what follows some of them.
        if self.held.capacity() == 0 {
            self.held = SPARE.take();
        }
        self.held.reserve(2 * SHORT);
        let (id, held) = (self.stream.id(), &mut self.held);
        self.link.with(|core| {
            let http3 = &mut core.http3;
            Ok(http3.write_response(id, status, fields, extra, held)?)
        })
    }

    /// Encodes trailers, which are sent with the end.
    pub(crate) fn trailers(&mut self, trailers: &HeaderMap) -> Result<(), StreamError> {
        let (id, held) = (self.stream.id(), &mut self.held);
        self.link
            .with(|core| Ok(core.http3.write_trailers(id, trailers, held)?))
    }

    /// Ends the message, with what waits.
    pub(crate) async fn finish(&mut self) -> Result<(), StreamError> {
        self.finish_with(Bytes::new()).await
    }

    /// Ends the message with its last content.
    pub(crate) async fn finish_with(&mut self, data: Bytes) -> Result<(), StreamError> {
        if !data.is_empty() {
            put_data_head(data.len() as u64, &mut self.held);
        }
        if data.len() <= SHORT && self.unsent.is_empty() {
            // The transport would copy it in any case.
            self.held.extend_from_slice(&data);
            poll_fn(|cx| self.poll_last(cx)).await?;
        } else {
            let mut rest = [self.take(), data];
            self.stream.finish_with(&mut rest).await?;
        }
        self.is_over = true;
        Ok(())
    }

    /// Sends what waits, and ends the message.
    fn poll_last(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), WriteError>> {
        loop {
            let written = ready!(self.stream.poll_write_last(cx, &self.held))?;
            if written == self.held.len() {
                let mut spare = std::mem::take(&mut self.held);
                if spare.capacity() <= 2 * SHORT {
                    spare.clear();
                    SPARE.set(spare);
                }
                return Poll::Ready(Ok(()));
            }
            self.held.drain(..written);
        }
    }

    /// Abandons the message.
    pub(crate) fn reset(&mut self, code: Code) {
        self.is_over = true;
        self.stream.reset(code.0);
    }
}

impl Drop for Send {
    fn drop(&mut self) {
        if !self.is_over {
            self.reset(Code::H3_REQUEST_CANCELLED);
        }
    }
}
