//! What the scripts of one connection share, and what is done for the peer's.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::future::poll_fn;
use std::rc::Rc;
use std::task::{Context, Waker};

use futures_util::StreamExt as _;
use futures_util::future::LocalBoxFuture;
use futures_util::stream::FuturesUnordered;
use tokio::sync::Notify;

use super::checkpoints::Checkpoints;
use super::datagrams::Datagrams;
use super::observer::Observer;
use super::plan::Scripts;
use super::script::Frame;
use super::streams::Stream;
use crate::drivers::Connection;
use crate::outcome::{Failed, Kind};
use crate::scenario::Op;

/// One side of a connection.
pub(super) struct Session<'a> {
    pub(super) connection: Rc<dyn Connection>,
    /// What this side does on streams that the peer opens.
    pub(super) own: &'a Scripts,
    /// What the peer does on streams that this side opens.
    pub(super) peer: &'a Scripts,
    pub(super) observer: Rc<dyn Observer + 'a>,
    pub(super) checkpoints: Checkpoints,
    pub(super) datagrams: Datagrams,
    /// Streams that the peer will open in all; `None`: nobody knows.
    awaited: Cell<Option<u64>>,
    /// Streams of the peer whose scripts are done.
    served: Cell<u64>,
    progressed: Notify,
    /// Streams that were finished and may not have arrived.
    finished: RefCell<VecDeque<Rc<Stream>>>,
}

/// What happened beside the script.
enum Event {
    Bidi(Option<Stream>),
    Uni(Option<Stream>),
    /// The script of a stream that the peer opened is done.
    Served(Result<(), Failed>),
    NoMoreDatagrams,
}

impl<'a> Session<'a> {
    pub(super) fn new(
        connection: Rc<dyn Connection>,
        own: &'a Scripts,
        peer: &'a Scripts,
        observer: Rc<dyn Observer + 'a>,
    ) -> Self {
        Self {
            connection,
            own,
            peer,
            observer,
            checkpoints: Checkpoints::default(),
            datagrams: Datagrams::default(),
            awaited: Cell::new(Some(0)),
            served: Cell::new(0),
            progressed: Notify::new(),
            finished: RefCell::default(),
        }
    }

    /// The peer will open so many more streams; `None`: nobody knows.
    pub(super) fn await_streams(&self, more: Option<u64>) {
        let both = self.awaited.get().zip(more);
        self.awaited
            .set(both.map(|(sum, more)| sum.saturating_add(more)));
    }

    /// Answers what the peer opens and sends, until it closes. `on_end` is told of the end of each
    /// stream's script, and may give up.
    pub(super) async fn serve(
        &self,
        mut on_end: impl FnMut(Result<(), Failed>) -> Result<(), Failed>,
    ) -> Result<(), Failed> {
        type Events<'a> = FuturesUnordered<LocalBoxFuture<'a, Result<Event, Failed>>>;
        let mut events = Events::new();
        if !self.own.bidi.is_empty() {
            events.push(Box::pin(self.accept_bidi()));
        }
        if !self.own.uni.is_empty() {
            events.push(Box::pin(self.accept_uni()));
        }
        if self.own.datagrams.is_awaited() {
            events.push(Box::pin(async {
                self.receive_datagrams().await?;
                Ok(Event::NoMoreDatagrams)
            }));
        }
        while let Some(event) = events.next().await {
            match event? {
                Event::Bidi(Some(stream)) => {
                    events.push(Box::pin(self.accept_bidi()));
                    events.push(Box::pin(self.answer(stream, &self.own.bidi)));
                }
                Event::Uni(Some(stream)) => {
                    events.push(Box::pin(self.accept_uni()));
                    events.push(Box::pin(self.answer(stream, &self.own.uni)));
                }
                Event::Served(outcome) => {
                    self.served.set(self.served.get() + 1);
                    self.progressed.notify_one();
                    on_end(outcome)?;
                }
                Event::Bidi(None) | Event::Uni(None) | Event::NoMoreDatagrams => {}
            }
        }
        Ok(())
    }

    async fn accept_bidi(&self) -> Result<Event, Failed> {
        let accepted = self.connection.accept_bidi().await?;
        Ok(Event::Bidi(
            accepted.map(|(writer, reader)| Stream::bidi(writer, reader)),
        ))
    }

    async fn accept_uni(&self) -> Result<Event, Failed> {
        let accepted = self.connection.accept_uni().await?;
        Ok(Event::Uni(accepted.map(Stream::receiving)))
    }

    /// Runs the script of a stream that the peer opened.
    async fn answer(&self, stream: Stream, scripts: &[Vec<Op>]) -> Result<Event, Failed> {
        Ok(Event::Served(self.script_of(stream, scripts).await))
    }

    async fn script_of(&self, stream: Stream, scripts: &[Vec<Op>]) -> Result<(), Failed> {
        let number = match scripts.len() {
            0 | 1 => 0,
            _ => stream.receive_prefix().await?,
        };
        let Some(script) = scripts.get(usize::from(number)) else {
            return Err(Failed::new(
                Kind::Mismatch,
                format_args!("a stream for script {number} of {}", scripts.len()),
            ));
        };
        let frame = Frame::of(stream);
        if script.is_empty() {
            frame.stream(0)?.receive_all(&*self.observer).await?;
        }
        self.run(script, &frame).await?;
        self.finish(&frame).await
    }

    /// Ends the streams of a script that is done.
    pub(super) async fn finish(&self, frame: &Frame<'_>) -> Result<(), Failed> {
        for stream in frame.own_streams() {
            self.finish_stream(&stream).await?;
        }
        Ok(())
    }

    pub(super) async fn finish_stream(&self, stream: &Rc<Stream>) -> Result<(), Failed> {
        if !stream.finish().await? {
            return Ok(());
        }
        let mut finished = self.finished.borrow_mut();
        finished.push_back(Rc::clone(stream));
        // Those that have arrived need not be remembered.
        let mut cx = Context::from_waker(Waker::noop());
        while finished
            .front()
            .is_some_and(|stream| stream.poll_settled(&mut cx).is_ready())
        {
            finished.pop_front();
        }
        Ok(())
    }

    /// Waits until all that was sent has arrived, and all streams that the peer was to open are
    /// done. Only then may the connection be closed.
    pub(super) async fn settle(&self) -> Result<(), Failed> {
        while let Some(stream) = { self.finished.borrow_mut().pop_front() } {
            poll_fn(|cx| stream.poll_settled(cx)).await?;
        }
        while self
            .awaited
            .get()
            .is_some_and(|awaited| self.served.get() < awaited)
        {
            self.progressed.notified().await;
        }
        Ok(())
    }
}
