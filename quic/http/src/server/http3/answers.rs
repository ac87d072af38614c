//! Answers the requests of a connection.

use std::{
    future::poll_fn,
    panic::{AssertUnwindSafe, catch_unwind},
    pin::Pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Context, Poll, Waker},
    time::{Duration, Instant},
};

use tokio::runtime::{Handle, RuntimeFlavor};

use crate::server::clock;

/// Longest time that an answer may take on the task of its connection.
const QUICK: Duration = Duration::from_micros(200);

/// Number of requests that immediately get tasks after one that took longer. It grows each time, so that a service
/// whose futures use the thread for long hardly ever holds up the others of its connection.
const SLOW: u32 = 64;

/// Largest such number.
const SLOWEST: u32 = 1 << 20;

/// Number of answers that may be sent together.
const TOGETHER: u32 = 12;

/// Answers the requests of a connection, each on its own task unless it is ready at once: most requests need not
/// wait, and a task costs more than they do.
pub(super) struct Answers<T> {
    make: Make<T>,
    /// A future that waits for its next request.
    spare: Option<(Inbox<T>, Answering)>,
    /// Number of requests that get a task before they are polled, because an earlier one used the thread for long.
    slow: u32,
    /// Number of requests that get tasks after the next one that is slow.
    next_slow: u32,
    /// True if the runtime has other threads, to run those in parallel.
    has_threads: bool,
    /// Time above which an answer is slow.
    quick: Duration,
    /// Number of answers since the last pause.
    answered: u32,
    /// End of the last answer, if the next one follows at once: the clock is read once for each.
    ended: Option<Instant>,
}

/// Makes a future that answers the requests that come into its inbox.
type Make<T> = Box<dyn Fn(Inbox<T>) -> Answering + Send>;

type Answering = Pin<Box<dyn Future<Output = ()> + Send>>;

/// The requests for a future, one at a time.
pub(super) struct Inbox<T>(Arc<Mutex<Slot<T>>>);

/// What there is in an inbox.
struct Slot<T> {
    request: Option<T>,
    reader: Reader,
    /// True if nothing comes after the request.
    is_closed: bool,
}

/// The future that reads an inbox.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Reader {
    /// It waits for a request.
    Waits,
    /// It answers the one that it took.
    Works,
}

impl<T> Clone for Inbox<T> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<T> Inbox<T> {
    fn new() -> Self {
        Self(Arc::new(Mutex::new(Slot {
            request: None,
            reader: Reader::Waits,
            is_closed: false,
        })))
    }

    fn slot(&self) -> MutexGuard<'_, Slot<T>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Says that nothing comes after the request that is there, or was taken.
    fn close(&self) {
        self.slot().is_closed = true;
    }

    /// Returns the next request; `None` if there are no more. Whoever puts one in polls the future.
    pub(super) async fn next(&self) -> Option<T> {
        poll_fn(|_| {
            let mut slot = self.slot();
            if slot.request.is_some() {
                slot.reader = Reader::Works;
            } else if !slot.is_closed {
                slot.reader = Reader::Waits;
                return Poll::Pending;
            }
            Poll::Ready(slot.request.take())
        })
        .await
    }
}

impl<T> Answers<T> {
    /// Answers requests by futures that this function makes.
    pub(super) fn new<F>(make: impl Fn(Inbox<T>) -> F + Send + 'static) -> Self
    where
        F: Future<Output = ()> + Send + 'static,
    {
        Self {
            make: Box::new(move |inbox| Box::pin(make(inbox))),
            spare: None,
            slow: 0,
            next_slow: SLOW,
            has_threads: Handle::try_current()
                .is_ok_and(|runtime| runtime.runtime_flavor() != RuntimeFlavor::CurrentThread),
            quick: QUICK,
            answered: 0,
            ended: None,
        }
    }

    /// Returns true if it is time for a pause.
    pub(super) fn are_enough(&self) -> bool {
        self.answered >= TOGETHER
    }

    /// Pauses after enough answers, so that they are sent, and the client works on them, while the next ones are
    /// prepared.
    pub(super) async fn pause(&mut self) {
        if self.are_enough() {
            self.answered = 0;
            self.ended = None;
            tokio::task::yield_now().await;
        }
    }

    /// Releases memory while there are no requests.
    pub(super) fn rest(&mut self) {
        self.spare = None;
        self.ended = None;
    }

    /// Starts the answer to a request.
    pub(super) fn start(&mut self, request: T) {
        self.answered += 1;
        let (inbox, mut answer) = self.spare.take().unwrap_or_else(|| {
            let inbox = Inbox::new();
            let answer = (self.make)(inbox.clone());
            (inbox, answer)
        });
        inbox.slot().request = Some(request);
        if self.slow > 0 {
            self.slow -= 1;
            inbox.close();
            tokio::spawn(answer);
            return;
        }
        let start = self.ended.unwrap_or_else(clock::now);
        // A task polls it again, so nothing needs to be woken here. A service that panics ends only its own request,
        // as it does on a task.
        let mut cx = Context::from_waker(Waker::noop());
        let polled = catch_unwind(AssertUnwindSafe(|| answer.as_mut().poll(&mut cx)));
        let ended = clock::now();
        self.ended = Some(ended);
        if ended.duration_since(start) > self.quick {
            if self.has_threads {
                self.slow = self.next_slow;
                self.next_slow = (self.next_slow * 8).min(SLOWEST);
            } else {
                self.answered = TOGETHER;
            }
        }
        match polled {
            Ok(Poll::Pending) => {}
            Ok(Poll::Ready(())) => return,
            Err(_) => {
                // What it leaves may panic, too, when it is dropped.
                let _ = catch_unwind(AssertUnwindSafe(|| drop(answer)));
                return;
            }
        }
        if inbox.slot().reader == Reader::Waits {
            self.spare = Some((inbox, answer));
        } else {
            inbox.close();
            tokio::spawn(answer);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{
        pin::pin,
        sync::atomic::{AtomicUsize, Ordering},
    };

    use futures_util::FutureExt as _;

    use super::*;

    /// Answers that are never slow, by a function for each request.
    fn patient<T, A>(answer: fn(T) -> A) -> Answers<T>
    where
        T: Send + 'static,
        A: Future<Output = ()> + Send + 'static,
    {
        let make = move |inbox: Inbox<T>| async move {
            while let Some(request) = inbox.next().await {
                answer(request).await;
            }
        };
        Answers {
            quick: Duration::MAX,
            ..Answers::new(make)
        }
    }

    /// Counts its polls, and ends after `polls`.
    async fn ends_after((polls, count): (usize, Arc<AtomicUsize>)) {
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
        let mut answers = patient(std::future::ready::<()>);
        for _ in 0..2 {
            for number in 1..=TOGETHER {
                answers.start(());
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
        let mut answers = patient(ends_after);
        for _ in 0..3 {
            let count = Arc::new(AtomicUsize::new(0));
            answers.start((1, count.clone()));
            assert_eq!(count.load(Ordering::Relaxed), 1);
            assert!(answers.spare.is_some());
        }
        answers.rest();
        assert!(answers.spare.is_none());
    }

    #[tokio::test]
    async fn a_panic_ends_its_request_alone() {
        let mut answers = patient(|panics: bool| async move { assert!(!panics, "of the service") });
        for panics in [true, false] {
            answers.start(panics);
            assert_eq!(answers.spare.is_some(), !panics);
        }
    }

    /// The task ends with its answer.
    #[tokio::test]
    async fn an_answer_that_waits_gets_a_task() {
        let mut answers = patient(ends_after);
        let count = Arc::new(AtomicUsize::new(0));
        answers.start((3, count.clone()));
        assert_eq!(count.load(Ordering::Relaxed), 1);
        assert!(answers.spare.is_none());
        while Arc::strong_count(&count) > 1 {
            tokio::task::yield_now().await;
        }
        assert_eq!(count.load(Ordering::Relaxed), 3);
        let tasks = Handle::current().metrics().num_alive_tasks();
        assert_eq!(tasks, 0);
    }

    #[tokio::test]
    async fn after_a_slow_answer_others_get_tasks_at_once() {
        let mut answers = patient(ends_after);
        answers.slow = 1;
        let counts = [(); 2].map(|()| Arc::new(AtomicUsize::new(0)));
        answers.start((1, counts[0].clone()));
        assert_eq!(counts[0].load(Ordering::Relaxed), 0);
        answers.start((1, counts[1].clone()));
        assert_eq!(counts[1].load(Ordering::Relaxed), 1);
        while Handle::current().metrics().num_alive_tasks() > 0 {
            tokio::task::yield_now().await;
        }
        assert_eq!(counts[0].load(Ordering::Relaxed), 1);
    }

    #[tokio::test]
    async fn an_answer_that_takes_long_is_slow() {
        for has_threads in [true, false] {
            let mut answers = patient(|()| async {
                // Some time passes, however little.
                let start = clock::now();
                while clock::now() == start {}
            });
            (answers.quick, answers.has_threads) = (Duration::ZERO, has_threads);
            answers.start(());
            assert_eq!(answers.slow == SLOW, has_threads);
            assert_eq!(pin!(answers.pause()).now_or_never().is_none(), !has_threads);
        }
    }
}
