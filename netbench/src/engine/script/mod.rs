//! Runner for the operations of a connection's script.

pub(super) mod answering;
pub(super) mod in_flight;
pub(super) mod round_trips;
pub(super) mod session;
pub(super) mod streams;

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::time::Duration;

use futures_util::future::LocalBoxFuture;
use futures_util::stream::FuturesUnordered;
use futures_util::{StreamExt as _, TryStreamExt as _};
use tokio::time::Instant;

use self::session::Session;
use self::streams::Stream;
use super::plan::{opens, prefix};
use super::time::clock;
use super::time::turns::Turns;
use crate::scenario::{Fetch, Iterate, Op, Open, Request};
use crate::system::outcome::Failed;

/// Number of iterations after which other tasks run, if no operation waits.
const TURN: u64 = 32;

/// Streams that a script knows by number: its own, and in a thread of a scope also those opened
/// before the scope.
#[derive(Default)]
pub(super) struct Scope<'f> {
    parent: Option<&'f Scope<'f>>,
    streams: RefCell<Vec<(u64, Rc<Stream>)>>,
    /// Delay of the start in an open loop, which is added to the first request.
    late: Cell<Duration>,
}

impl<'f> Scope<'f> {
    /// Makes the scope of a stream's script, in which the stream is number 0.
    pub(super) fn of(stream: Stream) -> Self {
        Self {
            streams: RefCell::new(vec![(0, Rc::new(stream))]),
            ..Self::default()
        }
    }

    fn within(parent: &'f Scope<'f>, late: Duration) -> Self {
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

    /// Returns the streams that this script opened, without those of its scopes.
    pub(super) fn own_streams(&self) -> Vec<Rc<Stream>> {
        let streams = self.streams.borrow();
        streams
            .iter()
            .map(|(_, stream)| Rc::clone(stream))
            .collect()
    }

    fn open(&self, number: u64, stream: Stream) -> Rc<Stream> {
        let stream = Rc::new(stream);
        self.set(number, &stream);
        stream
    }

    /// Takes over the streams that a thread of a scope opened.
    fn adopt(&self, thread: &Scope<'_>) {
        for (number, stream) in thread.streams.take() {
            self.set(number, &stream);
        }
    }

    fn set(&self, number: u64, stream: &Rc<Stream>) {
        let mut streams = self.streams.borrow_mut();
        match streams.iter_mut().find(|(known, _)| *known == number) {
            Some((_, replaced)) => *replaced = Rc::clone(stream),
            None => streams.push((number, Rc::clone(stream))),
        }
    }
}

impl<'a> Session<'a> {
    /// Runs operations in sequence.
    pub(super) fn run<'b>(
        &'b self,
        ops: &'b [Op],
        scope: &'b Scope<'b>,
    ) -> LocalBoxFuture<'b, Result<(), Failed>>
    where
        'a: 'b,
    {
        Box::pin(async move {
            for op in ops {
                self.op(op, scope).await?;
            }
            Ok(())
        })
    }

    async fn op(&self, op: &Op, scope: &Scope<'_>) -> Result<(), Failed> {
        let stream = |number| scope.stream(number);
        match op {
            Op::OpenBidi(open) => self.open_bidi(open, scope).await,
            Op::OpenUni(open) => self.open_uni(open, scope).await,
            Op::Send(what) => stream(what.stream)?.send(what.bytes, &*self.observer).await,
            Op::SendRate(rate) => stream(rate.stream)?.set_send_rate(rate.bytes, rate.period),
            Op::Receive(what) => {
                let stream = stream(what.stream)?;
                stream.receive(what.bytes, &*self.observer).await
            }
            Op::ReceiveRate(rate) => stream(rate.stream)?.set_receive_rate(rate.bytes, rate.period),
            Op::ReceiveAll(which) => stream(which.stream)?.receive_all(&*self.observer).await,
            Op::Finish(which) => self.finish_stream(&stream(which.stream)?).await,
            Op::Reset(reset) => stream(reset.stream)?.reset(reset.code),
            Op::Datagrams(datagrams) => self.send_datagrams(datagrams).await,
            Op::Fetch(fetch) => self.fetch(*fetch).await,
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
            Op::Scope(threads) => self.scope(threads, scope).await,
            Op::Iterate(iterate) => self.iterate(iterate, scope).await,
            Op::Request(request) => self.request(request, scope).await,
        }
    }

    async fn open_bidi(&self, open: &Open, scope: &Scope<'_>) -> Result<(), Failed> {
        let (writer, reader) = self.connection.open_bidi().await?;
        let stream = scope.open(open.stream, Stream::bidi(writer, reader));
        self.opened(&stream, open, &self.peer.bidi).await
    }

    async fn open_uni(&self, open: &Open, scope: &Scope<'_>) -> Result<(), Failed> {
        let writer = self.connection.open_uni().await?;
        let stream = scope.open(open.stream, Stream::sending(writer));
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

    async fn fetch(&self, fetch: Fetch) -> Result<(), Failed> {
        self.connection.fetch(fetch).await?;
        self.observer.sent(fetch.send);
        self.observer.received(fetch.receive);
        Ok(())
    }

    /// Runs threads concurrently; streams that they open stay available afterwards.
    async fn scope(&self, threads: &[Vec<Op>], scope: &Scope<'_>) -> Result<(), Failed> {
        let late = scope.late.take();
        let scopes: Vec<_> = threads.iter().map(|_| Scope::within(scope, late)).collect();
        let mut running: FuturesUnordered<_> = threads
            .iter()
            .zip(&scopes)
            .map(|(ops, inner)| self.run(ops, inner))
            .collect();
        while running.try_next().await?.is_some() {}
        drop(running);
        for inner in &scopes {
            scope.adopt(inner);
        }
        Ok(())
    }

    async fn iterate(&self, iterate: &Iterate<Op>, scope: &Scope<'_>) -> Result<(), Failed> {
        if iterate.concurrency > 1 {
            return self.iterate_at_once(iterate, scope).await;
        }
        let mut turns = Turns::of(iterate);
        let mut done = 0_u64;
        while let Some(due) = turns.due() {
            if !self.reaches(due).await {
                break;
            }
            turns.advance();
            if turns.is_open() {
                scope.late.set(due.elapsed());
            }
            self.run(&iterate.ops, scope).await?;
            done += 1;
            if done.is_multiple_of(TURN) {
                tokio::task::yield_now().await;
            }
        }
        Ok(())
    }

    /// Runs several turns concurrently, each with its own streams.
    async fn iterate_at_once(
        &self,
        iterate: &Iterate<Op>,
        scope: &Scope<'_>,
    ) -> Result<(), Failed> {
        let turn = |late| async move {
            let inner = Scope::within(scope, late);
            self.run(&iterate.ops, &inner).await?;
            self.finish(&inner).await
        };
        let mut turns = Turns::of(iterate);
        let mut running = FuturesUnordered::new();
        while let Some(due) = turns.due() {
            if running.len() >= iterate.concurrency as usize {
                running.try_next().await?;
                continue;
            }
            let begins = self.reaches(due);
            tokio::pin!(begins);
            let begins = loop {
                tokio::select! {
                    biased;
                    begins = &mut begins => break begins,
                    Some(done) = running.next() => done?,
                }
            };
            if !begins {
                break;
            }
            turns.advance();
            let late = if turns.is_open() {
                due.elapsed()
            } else {
                Duration::ZERO
            };
            running.push(turn(late));
        }
        while running.try_next().await?.is_some() {}
        Ok(())
    }

    /// Waits until that time; returns false if nothing new may begin.
    pub(super) async fn reaches(&self, due: Instant) -> bool {
        if self.observer.is_stopping() || due <= Instant::now() {
            return !self.observer.is_stopping();
        }
        tokio::select! {
            biased;
            () = self.observer.stopping() => false,
            () = clock::until(due) => true,
        }
    }

    async fn request(&self, request: &Request, scope: &Scope<'_>) -> Result<(), Failed> {
        let late = scope.late.take();
        let begin = Instant::now();
        self.run(&request.ops, scope).await?;
        self.observer
            .request(&request.label, begin.elapsed() + late);
        Ok(())
    }
}
