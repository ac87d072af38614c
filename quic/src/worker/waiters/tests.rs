use std::{
    future::Future,
    pin::pin,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    task::{Context, Poll, Wake, Waker},
};

use super::{Waiters, lock, wait_until, wake};

#[derive(Default)]
struct Gate {
    open: bool,
    waiters: Waiters,
}

#[derive(Default)]
struct Count(AtomicUsize);

impl Wake for Count {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

fn pass(gate: &Mutex<Gate>) -> impl Future<Output = ()> {
    wait_until(
        gate,
        |gate| &mut gate.waiters,
        |gate| {
            if gate.open {
                Poll::Ready(())
            } else {
                Poll::Pending
            }
        },
    )
}

#[test]
fn everybody_who_waits_is_woken_once() {
    let (gate, count) = (Mutex::new(Gate::default()), Arc::new(Count::default()));
    let waker = Waker::from(count.clone());
    let mut cx = Context::from_waker(&waker);
    let (mut first, mut second) = (pin!(pass(&gate)), pin!(pass(&gate)));
    for _ in 0..3 {
        assert!(first.as_mut().poll(&mut cx).is_pending());
        assert!(second.as_mut().poll(&mut cx).is_pending());
    }
    let mut wakes = Vec::new();
    lock(&gate).open = true;
    lock(&gate).waiters.wake_all(&mut wakes);
    lock(&gate).waiters.wake_all(&mut wakes);
    wake(&mut wakes);
    assert_eq!(count.0.load(Ordering::Relaxed), 2);
    assert!(first.poll(&mut cx).is_ready());
    assert!(second.poll(&mut cx).is_ready());
}

#[test]
fn a_future_holds_its_place_only_while_it_lives() {
    let gate = Mutex::new(Gate::default());
    let mut cx = Context::from_waker(Waker::noop());
    for _ in 0..100 {
        let mut future = pin!(pass(&gate));
        for _ in 0..3 {
            assert!(future.as_mut().poll(&mut cx).is_pending());
            // Woken for nothing, it keeps its place.
            let mut wakes = Vec::new();
            lock(&gate).waiters.wake_all(&mut wakes);
            assert_eq!(wakes.len(), 1);
        }
        assert_eq!(lock(&gate).waiters.0.len(), 1);
    }
    assert!(lock(&gate).waiters.0.is_empty());
}
