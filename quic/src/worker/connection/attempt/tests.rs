use std::task::{Context, Poll, Waker};

use hybriq_proto::wire::error::ConnectionError;

use super::{Attempt, Departure};
use crate::errors::ConnectError;

#[test]
fn a_promise_that_is_dropped_says_that_the_endpoint_is_closed() {
    let cx = Context::from_waker(Waker::noop());
    let (attempt, promise) = Attempt::new(Departure::Now);
    assert!(attempt.poll(&cx).is_pending());
    assert!(!promise.is_left());
    drop(promise);
    let outcome = attempt.poll(&cx);
    assert!(matches!(
        outcome,
        Poll::Ready(Err(ConnectError::EndpointClosed))
    ));
}

#[test]
fn a_promise_that_is_kept_wakes_who_waits() {
    let cx = Context::from_waker(Waker::noop());
    let (attempt, promise) = Attempt::new(Departure::Now);
    assert!(attempt.poll(&cx).is_pending());
    let mut wakes = Vec::new();
    promise.keep(Err(ConnectionError::TimedOut.into()), &mut wakes);
    assert_eq!(wakes.len(), 1);
    let outcome = attempt.poll(&cx);
    assert!(matches!(
        outcome,
        Poll::Ready(Err(ConnectError::Connection(ConnectionError::TimedOut)))
    ));
}

#[test]
fn a_promise_to_nobody_is_known_as_such() {
    let (attempt, promise) = Attempt::new(Departure::Now);
    attempt.leave();
    assert!(promise.is_left());
    let mut wakes = Vec::new();
    promise.keep(Err(ConnectionError::TimedOut.into()), &mut wakes);
    assert!(wakes.is_empty());
}
