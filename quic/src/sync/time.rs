//! Virtual time of a model.

use std::{
    cell::RefCell,
    future::poll_fn,
    task::{Context, Poll, Waker},
    time::{Duration, Instant},
};

use shuttle::{current::context_switches, future::yield_now};

thread_local! {
    static CLOCK: RefCell<Option<Clock>> = const { RefCell::new(None) };
}

/// Time between two reads of the clock.
const STEP: Duration = Duration::from_micros(10);

/// Number of times that the task of [`pass`] runs alone before time passes.
const QUIET: usize = 20;

/// Time, and the tasks that wait for it.
struct Clock {
    now: Instant,
    alarms: Vec<(Instant, Waker)>,
    /// Waker of the task that lets time pass.
    keeper: Option<Waker>,
    phase: Phase,
}

/// Progress of the time.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// No alarm rings.
    Frozen,
    Passing,
    Over,
}

/// Starts virtual time on this thread. No alarm rings before [`run`].
pub(crate) fn start() {
    let clock = Clock {
        now: Instant::now(),
        alarms: Vec::new(),
        keeper: None,
        phase: Phase::Frozen,
    };
    CLOCK.with_borrow_mut(|slot| drop(slot.replace(clock)));
}

/// Returns to real time.
pub(crate) fn end() {
    CLOCK.with_borrow_mut(|slot| drop(slot.take()));
}

/// Lets alarms ring from now on.
pub(crate) fn run() {
    enter(Phase::Passing);
}

/// Ends [`pass`].
pub(crate) fn stop() {
    enter(Phase::Over);
}

fn enter(phase: Phase) {
    let keeper = with(|clock| {
        clock.phase = phase;
        clock.keeper.take()
    });
    if let Some(keeper) = keeper.flatten() {
        keeper.wake();
    }
}

fn with<R>(act: impl FnOnce(&mut Clock) -> R) -> Option<R> {
    CLOCK.with_borrow_mut(|slot| slot.as_mut().map(act))
}

/// Returns the virtual time, which moves a little with every call; `None` outside of a model.
pub(crate) fn now() -> Option<Instant> {
    with(|clock| {
        clock.now += STEP;
        clock.now
    })
}

/// Waits until the time `at`; `None` outside of a model.
pub(crate) fn poll_until(at: Instant, cx: &Context<'_>) -> Option<Poll<()>> {
    let (polled, keeper) = with(|clock| {
        clock.forget(cx.waker());
        if at <= clock.now {
            return (Poll::Ready(()), None);
        }
        clock.alarms.push((at, cx.waker().clone()));
        (Poll::Pending, clock.keeper.take())
    })?;
    if let Some(keeper) = keeper {
        keeper.wake();
    }
    Some(polled)
}

/// Waits for a while of virtual time.
pub(crate) async fn sleep(time: Duration) {
    let until = now().map(|now| now + time);
    poll_fn(|cx| {
        let polled = until.and_then(|until| poll_until(until, cx));
        polled.unwrap_or(Poll::Ready(()))
    })
    .await;
}

/// Cancels an alarm.
pub(crate) fn cancel(cx: &Context<'_>) {
    with(|clock| clock.forget(cx.waker()));
}

impl Clock {
    fn forget(&mut self, waker: &Waker) {
        self.alarms.retain(|(_, other)| !other.will_wake(waker));
    }

    /// Returns the position of the first alarm, if it is near.
    fn first(&self, horizon: Duration) -> Option<usize> {
        let alarms = self.alarms.iter().enumerate();
        let (place, at) = alarms
            .map(|(place, (at, _))| (place, *at))
            .min_by_key(|&(_, at)| at)?;
        (at <= self.now + horizon).then_some(place)
    }

    /// Advances the time to the first alarm, if it is near, and returns the waker to call.
    fn advance(&mut self, horizon: Duration) -> Option<Waker> {
        let (at, waker) = self.alarms.swap_remove(self.first(horizon)?);
        self.now = self.now.max(at);
        Some(waker)
    }
}

/// Lets time pass, from one alarm to the next, until [`stop`]. Before each step, this task gives
/// the others the chance to run: time stands still while any of them has something to do.
///
/// Alarms beyond the `horizon` never ring. They would hide a missing wake-up.
pub(crate) async fn pass(horizon: Duration) {
    while poll_fn(|cx| poll_near(horizon, cx)).await.is_some() {
        let mut quiet = 0;
        while quiet < QUIET {
            let before = context_switches();
            yield_now().await;
            // One of the switches is this task's own.
            let alone = context_switches() - before == 1;
            quiet = if alone { quiet + 1 } else { 0 };
        }
        if let Some(waker) = with(|clock| clock.advance(horizon)).flatten() {
            waker.wake();
        }
    }
}

/// Returns ready when an alarm is near, or with `None` at the end.
fn poll_near(horizon: Duration, cx: &Context<'_>) -> Poll<Option<()>> {
    let polled = with(|clock| {
        match clock.phase {
            Phase::Over => return Poll::Ready(None),
            Phase::Passing if clock.first(horizon).is_some() => return Poll::Ready(Some(())),
            Phase::Passing | Phase::Frozen => {}
        }
        clock.keeper = Some(cx.waker().clone());
        Poll::Pending
    });
    polled.unwrap_or(Poll::Ready(None))
}
