//! The clock of workers. In unit tests it can show virtual time.

use std::{
    future::Future as _,
    pin::Pin,
    task::{Context, Poll},
    time::{Duration, Instant, SystemTime},
};

use tokio::time::{Sleep, sleep_until};

/// Returns the current time. Nothing else in this crate reads the clock for the core. It is that of the runtime, which
/// programs may pause in their tests: without such tests, tokio reads the system's clock.
pub(crate) fn now() -> Instant {
    #[cfg(test)]
    if let Some(now) = crate::sync::time::now() {
        return now;
    }
    tokio::time::Instant::now().into_std()
}

/// Returns the time since 1970, on which the machines of a fleet agree.
pub(crate) fn time_of_day() -> Duration {
    SystemTime::UNIX_EPOCH.elapsed().unwrap_or_default()
}

/// The runtime's timer. One timer serves all deadlines, and it is set again only when the earliest
/// deadline changes.
#[derive(Default)]
pub(crate) struct Alarm {
    sleep: Option<Pin<Box<Sleep>>>,
    set: Option<Instant>,
}

impl Alarm {
    /// Returns ready at the time `at`.
    pub(crate) fn poll(&mut self, at: Option<Instant>, cx: &mut Context<'_>) -> Poll<()> {
        let Some(at) = at else {
            #[cfg(test)]
            crate::sync::time::cancel(cx);
            self.set = None;
            return Poll::Pending;
        };
        #[cfg(test)]
        if let Some(polled) = crate::sync::time::poll_until(at, cx) {
            return polled;
        }
        let sleep = match &mut self.sleep {
            Some(sleep) => sleep,
            none => none.insert(Box::pin(sleep_until(at.into()))),
        };
        if self.set != Some(at) {
            sleep.as_mut().reset(at.into());
            self.set = Some(at);
        }
        let ready = sleep.as_mut().poll(cx);
        if ready.is_ready() {
            self.set = None;
        }
        ready
    }
}
