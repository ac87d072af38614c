//! Polling of what seldom happens.

use std::{
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll, Wake, Waker},
};

/// Polls a source only after it has woken its task: `h3` polls the peer's unidirectional streams for each
/// request, although they seldom have news.
#[derive(Debug)]
pub(crate) struct Watch {
    signal: Arc<Signal>,
    /// The waker of `signal`.
    waker: Waker,
}

#[derive(Debug, Default)]
struct Signal {
    /// True if the source was woken, or not polled yet.
    woken: AtomicBool,
    task: Mutex<Option<Waker>>,
}

impl Default for Watch {
    fn default() -> Self {
        let signal = Arc::new(Signal::default());
        signal.woken.store(true, Ordering::Release);
        Self {
            waker: signal.clone().into(),
            signal,
        }
    }
}

impl Watch {
    /// Polls a source if it may have news. A source that was ready is polled again the next time.
    pub(crate) fn poll<T>(
        &self,
        cx: &mut Context<'_>,
        source: impl FnOnce(&mut Context<'_>) -> Poll<T>,
    ) -> Poll<T> {
        self.signal.set_task(cx.waker());
        if !self.signal.woken.swap(false, Ordering::AcqRel) {
            return Poll::Pending;
        }
        let polled = source(&mut Context::from_waker(&self.waker));
        if polled.is_ready() {
            self.signal.woken.store(true, Ordering::Release);
        }
        polled
    }
}

impl Signal {
    fn set_task(&self, waker: &Waker) {
        let mut task = self.task.lock().unwrap_or_else(PoisonError::into_inner);
        if task.as_ref().is_some_and(|task| task.will_wake(waker)) {
            return;
        }
        let replaced = task.replace(waker.clone());
        drop(task);
        drop(replaced);
    }
}

impl Wake for Signal {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.woken.store(true, Ordering::Release);
        let task = self.task.lock().unwrap_or_else(PoisonError::into_inner);
        let task = task.clone();
        if let Some(task) = task {
            task.wake();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::{Cell, RefCell};

    use super::*;

    #[derive(Default)]
    struct Woken(AtomicBool);

    impl Wake for Woken {
        fn wake(self: Arc<Self>) {
            self.0.store(true, Ordering::Release);
        }
    }

    #[test]
    fn a_source_is_polled_once_for_each_wake() {
        let (watch, polls) = (Watch::default(), Cell::new(0));
        let task = Arc::new(Woken::default());
        let kept = RefCell::new(None);
        let poll = || {
            let waker = task.clone().into();
            watch.poll(&mut Context::from_waker(&waker), |cx| {
                polls.set(polls.get() + 1);
                kept.replace(Some(cx.waker().clone()));
                Poll::<()>::Pending
            })
        };
        for _ in 0..3 {
            assert_eq!(poll(), Poll::Pending);
        }
        assert_eq!(polls.get(), 1);
        kept.take().unwrap().wake();
        assert!(task.0.load(Ordering::Acquire), "the task is woken");
        for _ in 0..3 {
            assert_eq!(poll(), Poll::Pending);
        }
        assert_eq!(polls.get(), 2);
    }

    #[test]
    fn a_source_that_was_ready_is_polled_again() {
        let (watch, mut polls) = (Watch::default(), 0);
        for _ in 0..3 {
            let polled = watch.poll(&mut Context::from_waker(Waker::noop()), |_| {
                polls += 1;
                Poll::Ready(())
            });
            assert_eq!(polled, Poll::Ready(()));
        }
        assert_eq!(polls, 3);
    }

    /// The task that polled last is woken.
    #[test]
    fn a_task_may_change() {
        let watch = Watch::default();
        let tasks = [Arc::new(Woken::default()), Arc::new(Woken::default())];
        let mut kept = None;
        for task in &tasks {
            let waker = task.clone().into();
            let _ = watch.poll(&mut Context::from_waker(&waker), |cx| {
                kept = Some(cx.waker().clone());
                Poll::<()>::Pending
            });
        }
        kept.unwrap().wake();
        assert!(!tasks[0].0.load(Ordering::Acquire));
        assert!(tasks[1].0.load(Ordering::Acquire));
    }
}
