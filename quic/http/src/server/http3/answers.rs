//! Answers the requests of a connection.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    pin::Pin,
    task::{Context, Poll, Waker},
    time::Duration,
};

use tokio::runtime::{Handle, RuntimeFlavor};

use crate::server::clock;

/// Longest time that an answer may take on the task of its connection.
const QUICK: Duration = Duration::from_micros(200);

/// Number of requests that immediately get tasks after one that took longer.
const SLOW: u32 = 64;

/// Number of answers that may be sent together.
const TOGETHER: u32 = 12;

/// Answers the requests of a connection, each on a task of its own unless it is ready at once: most requests need not
/// wait, and a task costs more than they do.
pub(super) struct Answers<F> {
    /// Memory of a completed future, for the next one.
    spare: Option<Pin<Box<F>>>,
    /// Number of requests that get a task before they are polled, because an earlier one used the thread for long.
    slow: u32,
    /// True if the runtime has other threads, to run those in parallel.
    has_threads: bool,
    /// Time above which an answer is slow.
    quick: Duration,
    /// Number of answers since the last pause.
    answered: u32,
}

impl<F> Default for Answers<F> {
    fn default() -> Self {
        Self {
            spare: None,
            slow: 0,
            has_threads: Handle::try_current()
                .is_ok_and(|runtime| runtime.runtime_flavor() != RuntimeFlavor::CurrentThread),
            quick: QUICK,
            answered: 0,
        }
    }
}

impl<F: Future<Output = ()> + Send + 'static> Answers<F> {
    /// Pauses after some answers, so that they are sent, and the client works on them, while the next ones are
    /// prepared.
    pub(super) async fn pause(&mut self) {
        self.answered += 1;
        if self.answered >= TOGETHER {
            self.answered = 0;
            tokio::task::yield_now().await;
        }
    }

    /// Starts an answer.
    pub(super) fn start(&mut self, answer: F) {
        let mut answer = match self.spare.take() {
            Some(mut spare) => {
                spare.set(answer);
                spare
            }
            None => Box::pin(answer),
        };
        if self.slow > 0 {
            self.slow -= 1;
            tokio::spawn(answer);
            return;
        }
        let start = clock::now();
        // A task polls it again, so nothing needs to be woken here. A service that panics ends only its own request,
        // as it does on a task.
        let mut cx = Context::from_waker(Waker::noop());
        let polled = catch_unwind(AssertUnwindSafe(|| answer.as_mut().poll(&mut cx)));
        let Ok(polled) = polled else {
            return;
        };
        if clock::now().duration_since(start) > self.quick {
            if self.has_threads {
                self.slow = SLOW;
            } else {
                self.answered = TOGETHER;
            }
        }
        match polled {
            Poll::Ready(()) => self.spare = Some(answer),
            Poll::Pending => drop(tokio::spawn(answer)),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{
        future::{Ready, poll_fn},
        pin::pin,
        sync::{
            Arc,
            atomic::{AtomicUsize, Ordering},
        },
    };

    use futures_util::FutureExt as _;

    use super::*;

    /// Answers that are never slow.
    fn patient<F: Future<Output = ()> + Send + 'static>() -> Answers<F> {
        Answers {
            quick: Duration::MAX,
            ..Answers::default()
        }
    }

    /// Counts its polls, and ends after `polls`.
    async fn ends_after(polls: usize, count: Arc<AtomicUsize>) {
        poll_fn(|cx| {
            cx.waker().wake_by_ref();
            let polled = count.fetch_add(1, Ordering::Relaxed) + 1;
            if polled < polls {
                Poll::Pending
            } else {
                Poll::Ready(())
            }
        })
        .await;
    }

    #[tokio::test]
    async fn others_get_a_turn_after_some_answers() {
        let mut answers = patient::<Ready<()>>();
        for _ in 0..2 {
            for number in 1..=TOGETHER {
                let mut pause = pin!(answers.pause());
                let mut cx = Context::from_waker(Waker::noop());
                let pauses = pause.as_mut().poll(&mut cx).is_pending();
                assert_eq!(pauses, number == TOGETHER, "after {number}");
                if pauses {
                    pause.await;
                }
            }
        }
    }

    #[tokio::test]
    async fn an_answer_that_is_ready_needs_no_task() {
        let mut answers = patient();
        for _ in 0..3 {
            let count = Arc::new(AtomicUsize::new(0));
            answers.start(ends_after(1, count.clone()));
            assert_eq!(count.load(Ordering::Relaxed), 1);
            assert!(answers.spare.is_some());
        }
    }

    #[tokio::test]
    async fn a_panic_ends_its_request_alone() {
        let mut answers = patient();
        for panics in [true, false] {
            answers.start(async move { assert!(!panics, "of the service") });
            assert_eq!(answers.spare.is_some(), !panics);
        }
    }

    #[tokio::test]
    async fn an_answer_that_waits_gets_a_task() {
        let mut answers = patient();
        let count = Arc::new(AtomicUsize::new(0));
        answers.start(ends_after(3, count.clone()));
        assert_eq!(count.load(Ordering::Relaxed), 1);
        while count.load(Ordering::Relaxed) < 3 {
            tokio::task::yield_now().await;
        }
    }

    #[tokio::test]
    async fn after_a_slow_answer_others_get_tasks_at_once() {
        let mut answers = patient();
        answers.slow = 1;
        let counts = [(); 2].map(|()| Arc::new(AtomicUsize::new(0)));
        answers.start(ends_after(1, counts[0].clone()));
        assert_eq!(counts[0].load(Ordering::Relaxed), 0);
        answers.start(ends_after(1, counts[1].clone()));
        assert_eq!(counts[1].load(Ordering::Relaxed), 1);
        while counts[0].load(Ordering::Relaxed) == 0 {
            tokio::task::yield_now().await;
        }
    }

    #[tokio::test]
    async fn an_answer_that_takes_long_is_slow() {
        for has_threads in [true, false] {
            let mut answers = patient();
            (answers.quick, answers.has_threads) = (Duration::ZERO, has_threads);
            answers.start(async {
                // Some time passes, however little.
                let start = clock::now();
                while clock::now() == start {}
            });
            assert_eq!(answers.slow == SLOW, has_threads);
            assert_eq!(pin!(answers.pause()).now_or_never().is_none(), !has_threads);
        }
    }
}
