//! The task that drives a multiplexed connection.

use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};

use tokio::io::AsyncWrite as _;
use tokio_util::compat::{Compat, FuturesAsyncReadCompatExt as _, TokioAsyncReadCompatExt as _};
use yamux::{Config, ConnectionError, Mode};

use super::session::failure;
use super::shared::Shared;
use super::stream::{self, BIDI, CLOSE, State, Stream, UNI};
use crate::drivers::Role;
use crate::system::outcome::{Failed, Kind};

/// Maximum number of streams at once; the scenario decides.
const STREAMS: usize = 1 << 20;
/// Length of a kind and a code.
const CLOSE_LEN: usize = 9;

pub(super) struct Pump {
    connection: yamux::Connection<Compat<Shared>>,
    tls: Shared,
    state: Rc<State>,
    /// Streams whose kind is not known yet.
    new: Vec<New>,
    /// Stream that sends the close code to the peer.
    goodbye: Option<Stream>,
    /// Close code received from the peer.
    told: Option<u64>,
}

struct New {
    stream: Stream,
    head: Vec<u8>,
}

impl Pump {
    pub(super) fn new(tls: Shared, state: Rc<State>, role: Role) -> Self {
        let mode = match role {
            Role::Client => Mode::Client,
            Role::Server => Mode::Server,
        };
        let mut config = Config::default();
        config.set_max_connection_receive_window(None);
        config.set_max_num_streams(STREAMS);
        Self {
            connection: yamux::Connection::new(tls.clone().compat(), config, mode),
            tls,
            state,
            new: Vec::new(),
            goodbye: None,
            told: None,
        }
    }

    /// Drives the connection; ready when it is over.
    pub(super) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let _ = self.state.pump.join(cx);
        let mut ended = if let Some(code) = self.state.close.get() {
            self.poll_close(cx, code)
        } else {
            self.open(cx);
            self.drop_abandoned(cx);
            Poll::Pending
        };
        if ended.is_pending() {
            ended = self.poll_inbound(cx);
        }
        let ended = ready!(ended);
        *self.state.ended.borrow_mut() = Some(ended);
        self.state.wanted.borrow_mut().clear();
        self.state.users.wake_all();
        Poll::Ready(())
    }

    fn open(&mut self, cx: &mut Context<'_>) {
        let mut wanted = self.state.wanted.borrow_mut();
        while !wanted.is_empty() {
            // The inbound side reports the same error.
            let Poll::Ready(Ok(stream)) = self.connection.poll_new_outbound(cx) else {
                return;
            };
            if let Some(to) = wanted.pop_front() {
                let _ = to.send(stream.compat());
            }
        }
    }

    fn drop_abandoned(&mut self, cx: &mut Context<'_>) {
        let mut abandoned = self.state.abandoned.borrow_mut();
        abandoned.retain_mut(|half| half.poll_told(cx).is_pending());
    }

    fn poll_close(&mut self, cx: &mut Context<'_>, code: u64) -> Poll<Result<(), Failed>> {
        if code == 0 {
            let _ = ready!(self.connection.poll_close(cx));
            return Poll::Ready(Ok(()));
        }
        if self.goodbye.is_none()
            && let Ok(stream) = ready!(self.connection.poll_new_outbound(cx))
        {
            let mut stream = stream.compat();
            let mut message = vec![CLOSE];
            message.extend(code.to_be_bytes());
            // A new stream has room for it.
            let _ = Pin::new(&mut stream).poll_write(cx, &message);
            self.goodbye = Some(stream);
        }
        let _ = ready!(self.connection.poll_close(cx));
        Poll::Ready(Err(Failed::new(
            Kind::Application(code),
            "closed by this end",
        )))
    }

    fn poll_inbound(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Failed>> {
        let end = loop {
            let next = self.connection.poll_next_inbound(cx);
            self.sort(cx);
            match next {
                Poll::Ready(Some(Ok(stream))) => self.new.push(New {
                    stream: stream.compat(),
                    head: Vec::new(),
                }),
                Poll::Ready(Some(Err(error))) => break Err(error),
                Poll::Ready(None) => break Ok(()),
                Poll::Pending => return Poll::Pending,
            }
        };
        Poll::Ready(self.end(cx, end))
    }

    /// Determines how the peer ended the connection, and ends this side.
    fn end(&self, cx: &Context<'_>, end: Result<(), ConnectionError>) -> Result<(), Failed> {
        let mut tls = self.tls.0.borrow_mut();
        if let Some(code @ 1..) = self.told {
            let _ = tls.poll_finish(cx);
            return Err(Failed::new(Kind::Application(code), "closed by the peer"));
        }
        tls.check().map_err(failure)?;
        let _ = tls.poll_finish(cx);
        end.map_err(Failed::other)
    }

    /// Reads the kind of new streams.
    fn sort(&mut self, cx: &mut Context<'_>) {
        let mut unknown = Vec::new();
        for mut new in self.new.drain(..) {
            match new.poll_head(cx) {
                Poll::Pending => unknown.push(new),
                Poll::Ready(Head::Bidi) => {
                    let both = stream::both(new.stream, None, &self.state);
                    self.state.bidi.borrow_mut().push_back(both);
                }
                Poll::Ready(Head::Uni) => {
                    let (writer, reader) = stream::halves(new.stream, None, &self.state);
                    writer.forget();
                    self.state.uni.borrow_mut().push_back(Box::new(reader));
                }
                Poll::Ready(Head::Close(code)) => self.told = Some(code),
                Poll::Ready(Head::Lost) => {}
            }
            self.state.users.wake_all();
        }
        self.new = unknown;
    }
}

enum Head {
    Bidi,
    Uni,
    Close(u64),
    Lost,
}

impl New {
    fn poll_head(&mut self, cx: &mut Context<'_>) -> Poll<Head> {
        loop {
            match (self.head.as_slice(), self.head.len()) {
                ([BIDI], _) => return Poll::Ready(Head::Bidi),
                ([UNI], _) => return Poll::Ready(Head::Uni),
                ([CLOSE, code @ ..], CLOSE_LEN) => {
                    let code = code.try_into().map_or(0, u64::from_be_bytes);
                    return Poll::Ready(Head::Close(code));
                }
                ([] | [CLOSE, ..], _) => {}
                _ => return Poll::Ready(Head::Lost),
            }
            let mut byte = [0];
            match ready!(stream::poll_read(&mut self.stream, cx, &mut byte)) {
                Ok(1) => self.head.extend(byte),
                _ => return Poll::Ready(Head::Lost),
            }
        }
    }
}
