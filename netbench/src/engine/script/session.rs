//! State shared by the scripts of one connection.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::future::poll_fn;
use std::rc::Rc;
use std::task::{Context, Waker};

use tokio::sync::Notify;

use super::in_flight::InFlight;
use super::streams::Stream;
use crate::drivers::Connection;
use crate::engine::plan::Scripts;
use crate::engine::record::observer::Observer;
use crate::engine::time::checkpoints::Checkpoints;
use crate::system::outcome::Failed;

/// One side of a connection.
pub(crate) struct Session<'a> {
    pub(crate) connection: Rc<dyn Connection>,
    /// Scripts of this side on streams that the peer opens.
    pub(crate) own: &'a Scripts,
    /// Scripts of the peer on streams that this side opens.
    pub(crate) peer: &'a Scripts,
    pub(crate) observer: Rc<dyn Observer + 'a>,
    pub(crate) checkpoints: Checkpoints,
    pub(crate) in_flight: InFlight,
    /// Number of streams that the peer will open in total; `None` if it is unknown.
    awaited: Cell<Option<u64>>,
    /// Number of the peer's streams whose scripts are done.
    pub(crate) served: Cell<u64>,
    pub(crate) progressed: Notify,
    /// Streams that were finished and may not have arrived completely.
    finished: RefCell<VecDeque<Rc<Stream>>>,
}

impl<'a> Session<'a> {
    pub(crate) fn new(
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
            in_flight: InFlight::default(),
            awaited: Cell::new(Some(0)),
            served: Cell::new(0),
            progressed: Notify::new(),
            finished: RefCell::default(),
        }
    }

    /// Adds streams that the peer will open; `None` if their number is unknown.
    pub(crate) fn await_streams(&self, more: Option<u64>) {
        let both = self.awaited.get().zip(more);
        self.awaited
            .set(both.map(|(sum, more)| sum.saturating_add(more)));
    }

    pub(crate) async fn finish_stream(&self, stream: &Rc<Stream>) -> Result<(), Failed> {
        if !stream.finish().await? {
            return Ok(());
        }
        let mut finished = self.finished.borrow_mut();
        finished.push_back(Rc::clone(stream));
        // Streams that have arrived need not be remembered.
        let mut cx = Context::from_waker(Waker::noop());
        while finished
            .front()
            .is_some_and(|stream| stream.poll_settled(&mut cx).is_ready())
        {
            finished.pop_front();
        }
        Ok(())
    }

    /// Waits until all sent data has arrived and all expected streams of the peer are done. The
    /// connection may be closed only then.
    pub(crate) async fn wait_until_delivered(&self) -> Result<(), Failed> {
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
