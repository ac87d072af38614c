//! Streams of a multiplexed connection, in chunks, and the state that they share.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::{Buf as _, BufMut as _, Bytes, BytesMut};
use tokio::io::{AsyncRead as _, AsyncWrite as _, ReadBuf};
use tokio::sync::oneshot;
use tokio_util::compat::Compat;

use crate::drivers::{Reader, Writer};
use crate::stacks::wakers::Wakers;
use crate::system::outcome::{Failed, Kind};

/// A stream of yamux.
pub(super) type Stream = Compat<yamux::Stream>;

/// Maximum number of bytes in one chunk. With its length it fills a yamux frame.
const CHUNK: usize = 16 * 1024 - LENGTH;
const LENGTH: usize = 4;
const END: u32 = 0;
const LOST: u32 = u32::MAX;

/// First byte of a stream that this side opened: its kind.
pub(super) const BIDI: u8 = 0;
pub(super) const UNI: u8 = 1;
pub(super) const CLOSE: u8 = 2;

/// State shared by the users of a connection and its pump.
#[derive(Default)]
pub(super) struct State {
    pub(super) bidi: RefCell<VecDeque<Both>>,
    pub(super) uni: RefCell<VecDeque<Box<dyn Reader>>>,
    /// Tasks that wait for a new stream.
    pub(super) wanted: RefCell<VecDeque<oneshot::Sender<Stream>>>,
    /// Dropped halves of streams about which the peer must be told.
    pub(super) abandoned: RefCell<Vec<Abandoned>>,
    /// Code with which this end closes the connection.
    pub(super) close: Cell<Option<u64>>,
    /// Outcome of the connection, once it has ended.
    pub(super) ended: RefCell<Option<Result<(), Failed>>>,
    /// Tasks that wait for the pump.
    pub(super) users: Arc<Wakers>,
    /// The pump.
    pub(super) pump: Arc<Wakers>,
}

impl State {
    /// Waits for an item of a queue; `None` if the peer closed without an error.
    pub(super) fn poll_next<T>(
        &self,
        cx: &Context<'_>,
        queue: &RefCell<VecDeque<T>>,
    ) -> Poll<Result<Option<T>, Failed>> {
        if let Some(next) = queue.borrow_mut().pop_front() {
            return Poll::Ready(Ok(Some(next)));
        }
        self.poll_ended(cx).map_ok(|()| None)
    }

    pub(super) fn poll_ended(&self, cx: &Context<'_>) -> Poll<Result<(), Failed>> {
        if let Some(ended) = &*self.ended.borrow() {
            return Poll::Ready(ended.clone());
        }
        let _ = self.users.join(cx);
        Poll::Pending
    }

    /// Returns the failure of a stream that ended without a mark.
    pub(super) fn lost(&self) -> Failed {
        match &*self.ended.borrow() {
            Some(Err(failed)) => failed.clone(),
            _ => Failed::new(Kind::Reset, "the peer gave up the stream"),
        }
    }
}

/// Both halves of a stream.
pub(super) type Both = (Box<dyn Writer>, Box<dyn Reader>);

/// Makes the halves of a stream. A stream opened by this side begins with a byte for its kind.
pub(super) fn halves(stream: Stream, kind: Option<u8>, state: &Rc<State>) -> (Sender, Receiver) {
    let stream = Rc::new(RefCell::new(stream));
    let sender = Sender {
        half: Abandoned {
            stream: Rc::clone(&stream),
            unsent: kind.iter().copied().collect(),
        },
        state: Rc::clone(state),
        progress: Progress::BetweenChunks,
    };
    let receiver = Receiver {
        stream,
        state: Rc::clone(state),
        buffer: BytesMut::new(),
        left: 0,
        over: false,
    };
    (sender, receiver)
}

pub(super) fn both(stream: Stream, kind: Option<u8>, state: &Rc<State>) -> Both {
    let (sender, receiver) = halves(stream, kind, state);
    (Box::new(sender), Box::new(receiver))
}

/// Reads some bytes from a stream; 0 at its end.
pub(super) fn poll_read(
    stream: &mut Stream,
    cx: &mut Context<'_>,
    buffer: &mut [u8],
) -> Poll<io::Result<usize>> {
    let mut buffer = ReadBuf::new(buffer);
    ready!(Pin::new(stream).poll_read(cx, &mut buffer))?;
    Poll::Ready(Ok(buffer.filled().len()))
}

/// Sending half with its remaining data.
pub(super) struct Abandoned {
    stream: Rc<RefCell<Stream>>,
    unsent: BytesMut,
}

impl Abandoned {
    fn poll_drain(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let mut stream = self.stream.borrow_mut();
        while !self.unsent.is_empty() {
            let written = ready!(Pin::new(&mut *stream).poll_write(cx, &self.unsent))?;
            self.unsent.advance(written);
        }
        Poll::Ready(Ok(()))
    }

    fn poll_close(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut *self.stream.borrow_mut()).poll_shutdown(cx)
    }

    /// Waits until everything was sent, and ends the stream.
    pub(super) fn poll_told(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.poll_drain(cx))?;
        self.poll_close(cx)
    }
}

pub(super) struct Sender {
    half: Abandoned,
    state: Rc<State>,
    progress: Progress,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Progress {
    BetweenChunks,
    /// The chunk is taken and not yet sent.
    InChunk,
    Ending,
    Over,
}

impl Sender {
    /// Ends the half silently: the peer knows that it does not exist.
    pub(super) fn forget(mut self) {
        self.progress = Progress::Over;
    }

    fn failed(&self, error: &io::Error) -> Failed {
        match self.state.lost() {
            Failed {
                kind: Kind::Reset, ..
            } => Failed::new(Kind::Reset, error),
            failed => failed,
        }
    }
}

impl Writer for Sender {
    fn poll_send(&mut self, cx: &mut Context<'_>, data: &mut Bytes) -> Poll<Result<(), Failed>> {
        if self.progress == Progress::BetweenChunks && !data.is_empty() {
            let chunk = data.split_to(data.len().min(CHUNK));
            self.half.unsent.put_u32(chunk.len() as u32);
            self.half.unsent.put(chunk);
            self.progress = Progress::InChunk;
        }
        ready!(self.half.poll_drain(cx)).map_err(|error| self.failed(&error))?;
        if self.progress == Progress::InChunk {
            self.progress = Progress::BetweenChunks;
        }
        Poll::Ready(Ok(()))
    }

    fn poll_finish(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Failed>> {
        if matches!(self.progress, Progress::BetweenChunks | Progress::InChunk) {
            self.half.unsent.put_u32(END);
            self.progress = Progress::Ending;
        }
        ready!(self.half.poll_told(cx)).map_err(|error| self.failed(&error))?;
        self.progress = Progress::Over;
        Poll::Ready(Ok(()))
    }

    fn reset(&mut self, _: u64) {
        match std::mem::replace(&mut self.progress, Progress::Over) {
            Progress::Over => return,
            Progress::Ending => {}
            Progress::BetweenChunks | Progress::InChunk => self.half.unsent.put_u32(LOST),
        }
        self.state.abandoned.borrow_mut().push(Abandoned {
            stream: Rc::clone(&self.half.stream),
            unsent: std::mem::take(&mut self.half.unsent),
        });
        self.state.pump.wake_all();
    }
}

impl Drop for Sender {
    fn drop(&mut self) {
        self.reset(0);
    }
}

pub(super) struct Receiver {
    stream: Rc<RefCell<Stream>>,
    state: Rc<State>,
    buffer: BytesMut,
    /// Number of bytes of the chunk that are still to come.
    left: usize,
    over: bool,
}

impl Receiver {
    /// Reads more into the buffer; 0 at the end.
    fn poll_fill(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<usize>> {
        let filled = self.buffer.len();
        self.buffer.resize(filled + CHUNK, 0);
        let read = poll_read(
            &mut self.stream.borrow_mut(),
            cx,
            &mut self.buffer[filled..],
        );
        let more = match &read {
            Poll::Ready(Ok(read)) => *read,
            _ => 0,
        };
        self.buffer.truncate(filled + more);
        read
    }
}

impl Reader for Receiver {
    fn poll_receive(
        &mut self,
        cx: &mut Context<'_>,
        max: usize,
    ) -> Poll<Result<Option<Bytes>, Failed>> {
        while !self.over {
            if self.left > 0 && !self.buffer.is_empty() {
                let len = self.left.min(self.buffer.len()).min(max);
                self.left -= len;
                return Poll::Ready(Ok(Some(self.buffer.split_to(len).freeze())));
            }
            if self.left == 0 && self.buffer.len() >= LENGTH {
                match self.buffer.get_u32() {
                    END => self.over = true,
                    LOST => return Poll::Ready(Err(self.state.lost())),
                    length => self.left = length as usize,
                }
            } else if matches!(ready!(self.poll_fill(cx)), Ok(0) | Err(_)) {
                return Poll::Ready(Err(self.state.lost()));
            }
        }
        Poll::Ready(Ok(None))
    }
}
