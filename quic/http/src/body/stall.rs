//! The time for which a body may be silent.

use std::{
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
};

use tokio::time::{Instant, Sleep};

use super::BodyError;
use crate::limits::Patience;

/// Limits how long a reader may wait for data that does not arrive.
pub(super) struct Stall {
    /// Created when a reader first waits.
    timer: Option<Pin<Box<Sleep>>>,
    waits: Waits,
    patience: Arc<Patience>,
}

/// Fraction of the time by which a waiting reader may be late because its thread is busy.
const LATE: u32 = 8;

/// State of the reader of a body.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Waits {
    /// It has what arrived, and has not asked for more.
    No,
    /// It waits: the timer runs since the exchange had made this progress.
    Since(u64),
}

impl Stall {
    pub(super) fn new(patience: Arc<Patience>) -> Self {
        Self {
            timer: None,
            waits: Waits::No,
            patience,
        }
    }

    /// Returns the error once nothing has arrived for too long, and nothing of the response was accepted. Time counts
    /// only while the reader waits. A waiting reader is polled as soon as the timer ends; one that polls later was busy
    /// with something else.
    pub(super) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<BodyError> {
        let Some(time) = self.patience.time() else {
            return Poll::Pending;
        };
        let timer = &mut self.timer;
        let timer = timer.get_or_insert_with(|| Box::pin(tokio::time::sleep(time)));
        let waits = Waits::Since(self.patience.progress());
        if self.waits != waits {
            self.waits = waits;
            timer.as_mut().reset(Instant::now() + time);
        }
        ready!(timer.as_mut().poll(cx));
        let now = Instant::now();
        if now.saturating_duration_since(timer.deadline()) <= time / LATE {
            return Poll::Ready(BodyError::Stalled(time));
        }
        timer.as_mut().reset(now + time);
        timer.as_mut().poll(cx).map(|()| BodyError::Stalled(time))
    }

    /// Notes that something arrived. The time starts again when the reader asks for more.
    pub(super) fn on_news(&mut self) {
        self.waits = Waits::No;
        self.patience.on_progress();
    }
}

#[cfg(test)]
mod tests {
    use std::{task::Waker, time::Duration};

    use super::*;

    const MINUTE: Duration = Duration::from_secs(60);

    fn is_stalled(stall: &mut Stall) -> bool {
        let mut cx = Context::from_waker(Waker::noop());
        stall.poll(&mut cx).is_ready()
    }

    /// A service that works on what it has, and then asks for more, finds a client that had no reason to send.
    #[tokio::test(start_paused = true)]
    async fn the_stall_time_runs_only_while_the_body_is_waited_for() {
        let mut stall = Stall::new(Patience::new(MINUTE));
        for _ in 0..3 {
            assert!(!is_stalled(&mut stall));
            stall.on_news();
            tokio::time::advance(2 * MINUTE).await;
        }
        // It waits, gives up, and comes back.
        assert!(!is_stalled(&mut stall));
        tokio::time::advance(2 * MINUTE).await;
        for _ in 0..59 {
            assert!(!is_stalled(&mut stall));
            tokio::time::advance(MINUTE / 60).await;
        }
        assert!(!is_stalled(&mut stall));
        tokio::time::advance(MINUTE / 59).await;
        assert!(is_stalled(&mut stall));
    }

    /// The response counts too, and its reader may be given another time, or none.
    #[tokio::test(start_paused = true)]
    async fn progress_of_the_response_keeps_the_request_alive() {
        let patience = Patience::new(MINUTE);
        let mut stall = Stall::new(patience.clone());
        let mut waits_for = async |time| {
            assert!(!is_stalled(&mut stall));
            tokio::time::advance(time).await;
            is_stalled(&mut stall)
        };
        for _ in 0..4 {
            patience.on_progress();
            assert!(!waits_for(MINUTE / 2).await);
        }
        patience.set(None);
        assert!(!waits_for(100 * MINUTE).await);
        patience.set(Some(2 * MINUTE));
        patience.on_progress();
        assert!(!waits_for(MINUTE).await);
        assert!(waits_for(MINUTE).await);
    }
}
