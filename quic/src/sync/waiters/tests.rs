use std::{
    future::Future,
    pin::pin,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    task::{Context, Poll, Wake, Waker},
};

use super::{Place, Waited, Waiters, leave, lock, poll_waiting, wait_until, wake};
use crate::sync::Mutex;

/// Lets through as many tasks as it has tickets for.
#[derive(Default)]
struct Gate {
    tickets: usize,
    waiters: Waiters,
}

impl Waited for Gate {
    type For = ();

    fn waiters(&mut self, (): ()) -> &mut Waiters {
        &mut self.waiters
    }
}

impl Gate {
    fn poll_pass(&mut self) -> Poll<()> {
        match self.tickets.checked_sub(1) {
            Some(left) => {
                self.tickets = left;
                Poll::Ready(())
            }
            None => Poll::Pending,
        }
    }

    fn waiting(&self) -> usize {
        self.waiters.0.as_ref().map_or(0, |line| line.waiting.len())
    }
}

#[derive(Default)]
struct Count(AtomicUsize);

impl Wake for Count {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

impl Count {
    fn get(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }
}

fn pass(gate: &Mutex<Gate>) -> impl Future<Output = ()> {
    wait_until(gate, (), Gate::poll_pass)
}

/// Adds a ticket and wakes one task.
fn admit_one(gate: &Mutex<Gate>) {
    let mut wakes = Vec::new();
    let mut guarded = lock(gate);
    guarded.tickets += 1;
    guarded.waiters.wake_one(&mut wakes);
    drop(guarded);
    wake(&mut wakes);
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
    lock(&gate).tickets = 2;
    lock(&gate).waiters.wake_all(&mut wakes);
    lock(&gate).waiters.wake_all(&mut wakes);
    wake(&mut wakes);
    assert_eq!(count.get(), 2);
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
            let mut wakes = Vec::new();
            lock(&gate).waiters.wake_all(&mut wakes);
            assert_eq!(wakes.len(), 1);
            assert!(future.as_mut().poll(&mut cx).is_pending());
        }
        assert_eq!(lock(&gate).waiting(), 1);
    }
    assert_eq!(lock(&gate).waiting(), 0);
}

#[test]
fn the_oldest_is_woken_and_nobody_else() {
    let gate = Mutex::new(Gate::default());
    let counts = [(); 3].map(|()| Arc::new(Count::default()));
    let wakers = counts.clone().map(Waker::from);
    let mut futures = [(); 3].map(|()| Box::pin(pass(&gate)));
    for (future, waker) in futures.iter_mut().zip(&wakers) {
        let polled = future.as_mut().poll(&mut Context::from_waker(waker));
        assert!(polled.is_pending());
    }
    admit_one(&gate);
    assert_eq!(counts.each_ref().map(|count| count.get()), [1, 0, 0]);
    // If another task emptied it, this one keeps its turn.
    lock(&gate).tickets = 0;
    let polled = futures[0]
        .as_mut()
        .poll(&mut Context::from_waker(&wakers[0]));
    assert!(polled.is_pending());
    admit_one(&gate);
    assert_eq!(counts.each_ref().map(|count| count.get()), [2, 0, 0]);
}

#[test]
fn a_future_that_is_dropped_after_its_wake_hands_it_on() {
    let (gate, count) = (Mutex::new(Gate::default()), Arc::new(Count::default()));
    let waker = Waker::from(count.clone());
    let mut first = Box::pin(pass(&gate));
    let mut second = Box::pin(pass(&gate));
    let polled = first.as_mut().poll(&mut Context::from_waker(Waker::noop()));
    assert!(polled.is_pending());
    let mut cx = Context::from_waker(&waker);
    assert!(second.as_mut().poll(&mut cx).is_pending());
    admit_one(&gate);
    assert_eq!(count.get(), 0);
    drop(first);
    assert_eq!(count.get(), 1);
    assert!(second.as_mut().poll(&mut cx).is_ready());
}

#[test]
fn a_future_that_is_dropped_unwoken_wakes_nobody() {
    let (gate, count) = (Mutex::new(Gate::default()), Arc::new(Count::default()));
    let waker = Waker::from(count.clone());
    let mut cx = Context::from_waker(&waker);
    let mut first = Box::pin(pass(&gate));
    let mut second = Box::pin(pass(&gate));
    assert!(first.as_mut().poll(&mut cx).is_pending());
    assert!(second.as_mut().poll(&mut cx).is_pending());
    drop(first);
    assert_eq!(count.get(), 0);
}

/// The protocol reports only once that something is available, however much it is.
#[test]
fn whoever_took_something_wakes_the_next() {
    let (gate, count) = (Mutex::new(Gate::default()), Arc::new(Count::default()));
    let waker = Waker::from(count.clone());
    let mut cx = Context::from_waker(&waker);
    let mut futures = [(); 3].map(|()| Box::pin(pass(&gate)));
    for future in &mut futures {
        assert!(future.as_mut().poll(&mut cx).is_pending());
    }
    lock(&gate).tickets = 1;
    admit_one(&gate);
    assert_eq!(count.get(), 1);
    let [first, second, third] = &mut futures;
    assert!(first.as_mut().poll(&mut cx).is_ready());
    assert_eq!(count.get(), 2);
    assert!(second.as_mut().poll(&mut cx).is_ready());
    assert_eq!(count.get(), 3);
    assert!(third.as_mut().poll(&mut cx).is_pending());
}

/// It is not certain that anybody calls `poll` on a handle again, so the handle must not keep a
/// wake to itself.
#[test]
fn a_handle_is_woken_beside_a_future() {
    let (gate, count) = (Mutex::new(Gate::default()), Arc::new(Count::default()));
    let waker = Waker::from(count.clone());
    let mut cx = Context::from_waker(&waker);
    let mut places = [Place::of_handle(), Place::of_handle()];
    for place in &mut places {
        let polled = poll_waiting(&gate, (), place, &cx, Gate::poll_pass);
        assert!(polled.is_pending());
    }
    let mut future = Box::pin(pass(&gate));
    assert!(future.as_mut().poll(&mut cx).is_pending());
    assert_eq!(lock(&gate).waiting(), 3);
    admit_one(&gate);
    assert_eq!(count.get(), 3);
    assert!(future.as_mut().poll(&mut cx).is_ready());
    for place in &mut places {
        leave(&gate, (), place);
    }
    assert_eq!(lock(&gate).waiting(), 0);
    assert_eq!(count.get(), 3);
}

#[test]
fn a_handle_that_goes_leaves_no_place_behind() {
    let gate = Mutex::new(Gate::default());
    let cx = Context::from_waker(Waker::noop());
    for _ in 0..100 {
        let mut place = Place::of_handle();
        for _ in 0..3 {
            let polled = poll_waiting(&gate, (), &mut place, &cx, Gate::poll_pass);
            assert!(polled.is_pending());
        }
        assert_eq!(lock(&gate).waiting(), 1);
        leave(&gate, (), &mut place);
    }
    assert_eq!(lock(&gate).waiting(), 0);
    let handles = lock(&gate).waiters.0.as_ref().map(|line| line.handles);
    assert_eq!(handles, Some(0));
}
