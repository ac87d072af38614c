//! Precise waiting for a point in time.
//!
//! The runtime's timers are up to a millisecond late, which would dominate many latencies. A
//! measuring process waits with a timer of the kernel instead.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::future::poll_fn;
use std::io;
use std::rc::Rc;
use std::task::{Poll, Waker};

use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio::task::spawn_local;
use tokio::time::Instant;

use crate::system::os;

thread_local! {
    static ALARM: RefCell<Option<Rc<Alarm>>> = const { RefCell::new(None) };
}

/// Makes this thread wait with a timer of the kernel from now on, if there is one.
#[expect(
    deprecated,
    reason = "the timer owns its descriptor for as long as it lives"
)]
pub(crate) fn sharpen() -> io::Result<()> {
    let Some(timer) = os::Timer::new()? else {
        return Ok(());
    };
    let alarm = Rc::new(Alarm {
        timer: AsyncFd::with_interest(timer, Interest::READABLE)?,
        waiting: RefCell::default(),
        count: Cell::new(0),
    });
    ALARM.set(Some(Rc::clone(&alarm)));
    spawn_local(async move { alarm.ring().await });
    Ok(())
}

/// Waits until then; returns at once if that is in the past.
pub(crate) async fn until(at: Instant) {
    if at <= Instant::now() {
        return;
    }
    match ALARM.with_borrow(Option::clone) {
        Some(alarm) => alarm.until(at).await,
        None => tokio::time::sleep_until(at).await,
    }
}

/// All waits of a thread, on one timer.
struct Alarm {
    timer: AsyncFd<os::Timer>,
    /// Wakers by time, and by the order in which they came.
    waiting: RefCell<BTreeMap<(Instant, u64), Waker>>,
    count: Cell<u64>,
}

/// One wait, which ends when dropped.
struct Waiting<'a> {
    alarm: &'a Alarm,
    key: (Instant, u64),
}

impl Alarm {
    async fn until(&self, at: Instant) {
        let number = self.count.get();
        self.count.set(number + 1);
        let waiting = Waiting {
            alarm: self,
            key: (at, number),
        };
        poll_fn(|cx| {
            if at <= Instant::now() {
                return Poll::Ready(());
            }
            let mut all = self.waiting.borrow_mut();
            let is_first = all
                .first_key_value()
                .is_none_or(|(first, _)| *first >= waiting.key);
            all.insert(waiting.key, cx.waker().clone());
            drop(all);
            if is_first {
                self.set();
            }
            Poll::Pending
        })
        .await;
    }

    /// Sets the timer for the earliest wait.
    fn set(&self) {
        if let Some(((at, _), _)) = self.waiting.borrow().first_key_value() {
            let delay = at.saturating_duration_since(Instant::now());
            // Any delay is valid.
            let _ = self.timer.get_ref().set(delay);
        }
    }

    async fn ring(&self) {
        loop {
            let Ok(mut ready) = self.timer.readable().await else {
                return;
            };
            let _ = self.timer.get_ref().acknowledge();
            ready.clear_ready();
            let now = Instant::now();
            loop {
                let mut all = self.waiting.borrow_mut();
                let Some(entry) = all.first_entry().filter(|entry| entry.key().0 <= now) else {
                    break;
                };
                let waker = entry.remove();
                drop(all);
                waker.wake();
            }
            self.set();
        }
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.alarm.waiting.borrow_mut().remove(&self.key);
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::time::Duration;

    use tokio::task::LocalSet;
    use tokio::time::Instant;

    use super::{ALARM, sharpen, until};

    #[test]
    fn the_kernel_wakes_all_and_none_too_early() {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        let all = async {
            sharpen().unwrap();
            let begin = Instant::now();
            let order = RefCell::new(Vec::new());
            let wait = |micros: u64| {
                let order = &order;
                async move {
                    let at = begin + Duration::from_micros(micros);
                    until(at).await;
                    assert!(Instant::now() >= at);
                    order.borrow_mut().push(micros);
                }
            };
            let dropped = tokio::time::timeout(Duration::ZERO, wait(1_000_000));
            let _ = tokio::join!(wait(900), wait(300), wait(300), wait(4000), dropped);
            let mut woken = order.take();
            woken.sort_unstable();
            assert_eq!(woken, [300, 300, 900, 4000]);
            ALARM.with_borrow(|alarm| {
                assert!(alarm.as_ref().unwrap().waiting.borrow().is_empty());
            });
        };
        runtime.block_on(LocalSet::new().run_until(all));
        ALARM.set(None);
    }
}
