//! The two halves of a stream, as used by scripts.

use std::cell::RefCell;
use std::future::poll_fn;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use tokio::time::Instant;

use crate::drivers::{Reader, Writer};
use crate::engine::record::observer::Observer;
use crate::engine::time::clock;
use crate::scenario::pattern;
use crate::system::outcome::{Failed, Kind};

/// Maximum number of bytes read at once.
const READ: u64 = 64 << 10;

/// A stream of either kind.
pub(crate) struct Stream {
    sending: RefCell<Option<Sending>>,
    receiving: RefCell<Option<Receiving>>,
}

struct Sending {
    writer: Box<dyn Writer>,
    offset: u64,
    pace: Option<Pace>,
    state: State,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Open,
    Finished,
    Reset,
}

struct Receiving {
    reader: Box<dyn Reader>,
    offset: u64,
    pace: Option<Pace>,
    ended: bool,
}

impl Stream {
    pub(crate) fn bidi(writer: Box<dyn Writer>, reader: Box<dyn Reader>) -> Self {
        Self::new(Some(writer), Some(reader))
    }

    pub(crate) fn sending(writer: Box<dyn Writer>) -> Self {
        Self::new(Some(writer), None)
    }

    pub(crate) fn receiving(reader: Box<dyn Reader>) -> Self {
        Self::new(None, Some(reader))
    }

    fn new(writer: Option<Box<dyn Writer>>, reader: Option<Box<dyn Reader>>) -> Self {
        Self {
            sending: RefCell::new(writer.map(|writer| Sending {
                writer,
                offset: 0,
                pace: None,
                state: State::Open,
            })),
            receiving: RefCell::new(reader.map(|reader| Receiving {
                reader,
                offset: 0,
                pace: None,
                ended: false,
            })),
        }
    }

    fn with_sending<T>(
        &self,
        act: impl FnOnce(&mut Sending) -> Result<T, Failed>,
    ) -> Result<T, Failed> {
        match self.sending.borrow_mut().as_mut() {
            Some(half) => act(half),
            None => Err(Failed::other(
                "the script sends on a stream that only the peer sends on",
            )),
        }
    }

    fn with_receiving<T>(
        &self,
        act: impl FnOnce(&mut Receiving) -> Result<T, Failed>,
    ) -> Result<T, Failed> {
        match self.receiving.borrow_mut().as_mut() {
            Some(half) => act(half),
            None => Err(Failed::other(
                "the script reads a stream that the peer does not send on",
            )),
        }
    }

    /// Sends this number of further bytes.
    pub(crate) async fn send(&self, bytes: u64, observer: &dyn Observer) -> Result<(), Failed> {
        let mut left = bytes;
        while left > 0 {
            let now = Instant::now();
            let most = self.with_sending(|half| Ok(Pace::allows(half.pace.as_mut(), left, now)))?;
            let most = match most {
                Ok(most) => most,
                Err(later) => {
                    clock::until(later).await;
                    continue;
                }
            };
            let taken =
                poll_fn(|cx| flat(self.with_sending(|half| Ok(half.poll_send(cx, most))))).await?;
            observer.sent(taken);
            left -= taken;
        }
        Ok(())
    }

    /// Sends the number of the peer's script as one byte.
    pub(crate) async fn send_prefix(&self, prefix: u8) -> Result<(), Failed> {
        let mut data = Bytes::copy_from_slice(&[prefix]);
        while !data.is_empty() {
            let send = |cx: &mut Context<'_>| {
                flat(self.with_sending(|half| Ok(half.writer.poll_send(cx, &mut data))))
            };
            poll_fn(send).await?;
        }
        Ok(())
    }

    /// Reads the number of this side's script.
    pub(crate) async fn receive_prefix(&self) -> Result<u8, Failed> {
        let data =
            poll_fn(|cx| flat(self.with_receiving(|half| Ok(half.reader.poll_receive(cx, 1)))))
                .await?;
        data.as_deref()
            .and_then(<[u8]>::first)
            .copied()
            .ok_or_else(|| Failed::new(Kind::Mismatch, "a stream without the byte it begins with"))
    }

    /// Reads exactly this number of further bytes.
    pub(crate) async fn receive(&self, bytes: u64, observer: &dyn Observer) -> Result<(), Failed> {
        let mut left = bytes;
        while left > 0 {
            match self.receive_some(left, observer).await? {
                Some(received) => left -= received,
                None => {
                    return Err(Failed::new(
                        Kind::Mismatch,
                        format_args!("the stream ended {left} bytes before it should"),
                    ));
                }
            }
        }
        Ok(())
    }

    /// Reads to the end.
    pub(crate) async fn receive_all(&self, observer: &dyn Observer) -> Result<(), Failed> {
        while self.receive_some(u64::MAX, observer).await?.is_some() {}
        Ok(())
    }

    /// Reads some bytes and compares them with the pattern; `None` at the end.
    async fn receive_some(
        &self,
        left: u64,
        observer: &dyn Observer,
    ) -> Result<Option<u64>, Failed> {
        let most = loop {
            let now = Instant::now();
            let most = self
                .with_receiving(|half| Ok(Pace::allows(half.pace.as_mut(), left.min(READ), now)))?;
            match most {
                Ok(most) => break most,
                Err(later) => clock::until(later).await,
            }
        };
        let received =
            poll_fn(|cx| flat(self.with_receiving(|half| Ok(half.poll_receive(cx, most))))).await?;
        if let Some(bytes) = received {
            observer.received(bytes);
        }
        Ok(received)
    }

    pub(crate) fn set_send_rate(&self, bytes: u64, period: Duration) -> Result<(), Failed> {
        self.with_sending(|half| {
            half.pace = Some(Pace::new(bytes, period));
            Ok(())
        })
    }

    pub(crate) fn set_receive_rate(&self, bytes: u64, period: Duration) -> Result<(), Failed> {
        self.with_receiving(|half| {
            half.pace = Some(Pace::new(bytes, period));
            Ok(())
        })
    }

    /// Ends the sending half; returns true if there was an open one.
    pub(crate) async fn finish(&self) -> Result<bool, Failed> {
        let open = |half: &Sending| half.state == State::Open;
        if !self.sending.borrow().as_ref().is_some_and(open) {
            return Ok(false);
        }
        poll_fn(|cx| flat(self.with_sending(|half| Ok(half.writer.poll_finish(cx))))).await?;
        self.with_sending(|half| {
            half.state = State::Finished;
            Ok(true)
        })
    }

    pub(crate) fn reset(&self, code: u64) -> Result<(), Failed> {
        self.with_sending(|half| {
            half.state = State::Reset;
            half.writer.reset(code);
            Ok(())
        })
    }

    /// Waits until no sent data can be in flight, as far as the stack tells: the peer has
    /// acknowledged it, or has ended its half too.
    pub(crate) fn poll_settled(&self, cx: &mut Context<'_>) -> Poll<Result<(), Failed>> {
        if self
            .receiving
            .borrow()
            .as_ref()
            .is_some_and(|half| half.ended)
        {
            return Poll::Ready(Ok(()));
        }
        match self.sending.borrow_mut().as_mut() {
            Some(half) if half.state == State::Finished => half.writer.poll_acknowledged(cx),
            _ => Poll::Ready(Ok(())),
        }
    }
}

/// Flattens the outcome; a missing half counts as an answer.
fn flat<T>(outcome: Result<Poll<Result<T, Failed>>, Failed>) -> Poll<Result<T, Failed>> {
    outcome.unwrap_or_else(|failed| Poll::Ready(Err(failed)))
}

impl Sending {
    fn poll_send(&mut self, cx: &mut Context<'_>, most: u64) -> Poll<Result<u64, Failed>> {
        let mut data = pattern::bytes_at(self.offset, most);
        let offered = data.len();
        let outcome = self.writer.poll_send(cx, &mut data);
        let taken = (offered - data.len()) as u64;
        self.offset += taken;
        if let Some(pace) = &mut self.pace {
            pace.used += taken;
        }
        outcome.map_ok(|()| taken)
    }
}

impl Receiving {
    fn poll_receive(
        &mut self,
        cx: &mut Context<'_>,
        most: u64,
    ) -> Poll<Result<Option<u64>, Failed>> {
        let most = usize::try_from(most).unwrap_or(usize::MAX);
        self.reader.poll_receive(cx, most).map(|received| {
            let Some(data) = received? else {
                self.ended = true;
                return Ok(None);
            };
            pattern::compare(self.offset, &data)?;
            let bytes = data.len() as u64;
            self.offset += bytes;
            if let Some(pace) = &mut self.pace {
                pace.used += bytes;
            }
            Ok(Some(bytes))
        })
    }
}

/// Byte limit for every period. Unused bytes of a period are not saved for the next.
struct Pace {
    bytes: u64,
    period: Duration,
    /// Start of the current period.
    begin: Option<Instant>,
    /// Bytes used in the current period.
    used: u64,
}

impl Pace {
    fn new(bytes: u64, period: Duration) -> Self {
        Self {
            // A limit of 0 would never end.
            bytes: bytes.max(1),
            period: period.max(Duration::from_nanos(1)),
            begin: None,
            used: 0,
        }
    }

    /// Returns the number of bytes that may pass now, or the time at which some may.
    fn allows(pace: Option<&mut Self>, wanted: u64, now: Instant) -> Result<u64, Instant> {
        match pace {
            None => Ok(wanted),
            Some(pace) => pace.allowed(now).map(|allowed| allowed.min(wanted)),
        }
    }

    fn allowed(&mut self, now: Instant) -> Result<u64, Instant> {
        let begin = *self.begin.get_or_insert(now);
        let periods = now.duration_since(begin).as_nanos() / self.period.as_nanos();
        if periods > 0 {
            let whole = self.period.as_nanos().saturating_mul(periods);
            let whole = Duration::from_nanos(u64::try_from(whole).unwrap_or(u64::MAX));
            self.begin = Some(begin + whole);
            self.used = 0;
        }
        match self.bytes.saturating_sub(self.used) {
            0 => Err(self.begin.unwrap_or(now) + self.period),
            left => Ok(left),
        }
    }
}
