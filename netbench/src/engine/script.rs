//! Runs the operations of a connection's script.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::time::Duration;

use futures_util::TryStreamExt as _;
use futures_util::future::LocalBoxFuture;
use futures_util::stream::FuturesUnordered;
use tokio::time::Instant;

use super::arrivals::Arrivals;
use super::clock;
use super::plan::{opens, prefix};
use super::session::Session;
use super::streams::Stream;
use crate::outcome::Failed;
use crate::scenario::{self, Iterate, Op, Open, Request};

/// Iterations after which others have a turn, should none of the operations wait.
const TURN: u64 = 32;

/// The streams that a script knows by number: its own, and of a scope's thread also those that
/// were opened before the scope.
#[derive(Default)]
pub(super) struct Frame<'f> {
    parent: Option<&'f Frame<'f>>,
    streams: RefCell<Vec<(u64, Rc<Stream>)>>,
    /// How late this began in an open loop. The first request answers for it.
    late: Cell<Duration>,
}

impl<'f> Frame<'f> {
    /// The frame of a stream's script, in which the stream is number 0.
    pub(super) fn of(stream: Stream) -> Self {
        Self {
            streams: RefCell::new(vec![(0, Rc::new(stream))]),
            ..Self::default()
        }
    }

    fn within(parent: &'f Frame<'f>, late: Duration) -> Self {
        Self {
            parent: Some(parent),
            late: Cell::new(late),
            ..Self::default()
        }
    }

    pub(super) fn stream(&self, number: u64) -> Result<Rc<Stream>, Failed> {
        let own = self
            .streams
            .borrow()
            .iter()
            .find(|(known, _)| *known == number)
            .map(|(_, stream)| Rc::clone(stream));
        match (own, self.parent) {
            (Some(stream), _) => Ok(stream),
            (None, Some(parent)) => parent.stream(number),
            (None, None) => Err(Failed::other(format_args!(
                "the script uses stream {number}, which it has not opened"
            ))),
        }
    }

    /// Those that this script opened, without those of the scopes in it.
    pub(super) fn own_streams(&self) -> Vec<Rc<Stream>> {
        let streams = self.streams.borrow();
        streams
            .iter()
            .map(|(_, stream)| Rc::clone(stream))
            .collect()
    }

    fn set(&self, number: u64, stream: Stream) -> Rc<Stream> {
        let stream = Rc::new(stream);
        let mut streams = self.streams.borrow_mut();
        match streams.iter_mut().find(|(known, _)| *known == number) {
            Some((_, replaced)) => *replaced = Rc::clone(&stream),
            None => streams.push((number, Rc::clone(&stream))),
        }
        stream
    }
}

impl<'a> Session<'a> {
    /// Runs operations, one after the other.
    pub(super) fn run<'b>(
        &'b self,
        ops: &'b [Op],
        frame: &'b Frame<'b>,
    ) -> LocalBoxFuture<'b, Result<(), Failed>>
    where
        'a: 'b,
    {
        Box::pin(async move {
            for op in ops {
                self.op(op, frame).await?;
            }
            Ok(())
        })
    }

    async fn op(&self, op: &Op, frame: &Frame<'_>) -> Result<(), Failed> {
        let stream = |number| frame.stream(number);
        match op {
            Op::OpenBidi(open) => self.open_bidi(open, frame).await,
            Op::OpenUni(open) => self.open_uni(open, frame).await,
            Op::Send(what) => stream(what.stream)?.send(what.bytes, self.observer).await,
            Op::SendRate(rate) => stream(rate.stream)?.set_send_rate(rate.bytes, rate.period),
            Op::Receive(what) => {
                let stream = stream(what.stream)?;
                stream.receive(what.bytes, self.observer).await
            }
            Op::ReceiveRate(rate) => stream(rate.stream)?.set_receive_rate(rate.bytes, rate.period),
            Op::ReceiveAll(which) => stream(which.stream)?.receive_all(self.observer).await,
            Op::Finish(which) => self.finish_stream(&stream(which.stream)?).await,
            Op::Reset(reset) => stream(reset.stream)?.reset(reset.code),
            Op::Datagrams(datagrams) => self.send_datagrams(datagrams).await,
            Op::Sleep(time) => {
                clock::until(Instant::now() + *time).await;
                Ok(())
            }
            Op::Park(number) => {
                self.checkpoints.park(*number).await;
                Ok(())
            }
            Op::Unpark(number) => {
                self.checkpoints.unpark(*number);
                Ok(())
            }
            Op::Scope(threads) => self.scope(threads, frame).await,
            Op::Iterate(iterate) => self.iterate(iterate, frame).await,
            Op::Request(request) => self.request(request, frame).await,
        }
    }

    async fn open_bidi(&self, open: &Open, frame: &Frame<'_>) -> Result<(), Failed> {
        let (writer, reader) = self.connection.open_bidi().await?;
        let stream = frame.set(open.stream, Stream::bidi(writer, reader));
        self.opened(&stream, open, &self.peer.bidi).await
    }

    async fn open_uni(&self, open: &Open, frame: &Frame<'_>) -> Result<(), Failed> {
        let writer = self.connection.open_uni().await?;
        let stream = frame.set(open.stream, Stream::sending(writer));
        self.opened(&stream, open, &self.peer.uni).await
    }

    async fn opened(
        &self,
        stream: &Stream,
        open: &Open,
        scripts: &[Vec<Op>],
    ) -> Result<(), Failed> {
        self.await_streams(opens(&open.peer));
        match prefix(scripts, &open.peer) {
            Some(prefix) => stream.send_prefix(prefix).await,
            None => Ok(()),
        }
    }

    async fn scope(&self, threads: &[Vec<Op>], frame: &Frame<'_>) -> Result<(), Failed> {
        let late = frame.late.take();
        let mut running: FuturesUnordered<_> = threads
            .iter()
            .map(|ops| async move {
                let inner = Frame::within(frame, late);
                self.run(ops, &inner).await?;
                self.finish(&inner).await
            })
            .collect();
        while running.try_next().await?.is_some() {}
        Ok(())
    }

    async fn iterate(&self, iterate: &Iterate<Op>, frame: &Frame<'_>) -> Result<(), Failed> {
        let begin = Instant::now();
        let end = iterate.time.map(|time| begin + time);
        let mut arrivals = iterate
            .rate
            .map(|rate| Arrivals::new(begin, rate, scenario::Arrivals::Constant));
        let mut done = 0_u64;
        while iterate.times != Some(done) && !self.observer.is_stopping() {
            let due = match &mut arrivals {
                Some(arrivals) => {
                    let due = arrivals.due();
                    arrivals.advance();
                    due
                }
                None => Instant::now(),
            };
            if end.is_some_and(|end| due >= end) || !self.reaches(due).await {
                break;
            }
            if arrivals.is_some() {
                frame.late.set(Instant::now().duration_since(due));
            }
            self.run(&iterate.ops, frame).await?;
            done += 1;
            if done.is_multiple_of(TURN) {
                tokio::task::yield_now().await;
            }
        }
        Ok(())
    }

    /// Waits until then. `false`: nothing new is to be begun any more.
    pub(super) async fn reaches(&self, due: Instant) -> bool {
        if due <= Instant::now() {
            return true;
        }
        tokio::select! {
            biased;
            () = self.observer.stopping() => false,
            () = clock::until(due) => true,
        }
    }

    async fn request(&self, request: &Request, frame: &Frame<'_>) -> Result<(), Failed> {
        let late = frame.late.take();
        let begin = Instant::now();
        self.run(&request.ops, frame).await?;
        self.observer
            .request(&request.label, begin.elapsed() + late);
        Ok(())
    }
}
