//! What a connection is told to do.

use std::{
    future::poll_fn,
    sync::atomic::{AtomicU8, Ordering},
    task::Poll,
};

use futures_util::task::AtomicWaker;

/// What a connection does. Later variants win.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Order {
    /// It takes requests.
    Serve,
    /// It tells the client to send no more requests, and still takes those that are on their way.
    Drain,
    /// It takes no more requests, and ends when those in progress are answered.
    Finish,
    /// It ends at once.
    Close,
}

/// Why a connection is to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Cause {
    #[error("the server shuts down")]
    Shutdown,
    #[error("no request arrived in time")]
    Silent,
    #[error("the fields of a request did not arrive in time")]
    Fields,
    #[error("no request was in progress for too long")]
    Idle,
    #[error("the connection reached its limit of requests")]
    Requests,
    #[error("the client cancels too many requests")]
    Cancelled,
    #[error("the client keeps sending requests after GOAWAY")]
    Deaf,
    #[error("the client does not read a response")]
    Stalled,
    #[error("the server is short of memory")]
    Memory,
    #[error("the client is gone")]
    Gone,
}

/// The order that a connection has, and the task that waits for one.
#[derive(Debug, Default)]
pub(crate) struct Told {
    order: AtomicU8,
    cause: AtomicU8,
    task: AtomicWaker,
}

impl Told {
    /// Gives an order, unless a later one was given. Returns true if it is new.
    pub(crate) fn tell(&self, order: Order, cause: Cause) -> bool {
        if self.order() >= order {
            return false;
        }
        // Whoever sees the order sees its cause, or that of a later one.
        self.cause.store(cause as u8, Ordering::Release);
        let before = self.order.fetch_max(order as u8, Ordering::AcqRel);
        let news = before < order as u8;
        if news {
            self.task.wake();
        }
        news
    }

    pub(crate) fn order(&self) -> Order {
        match self.order.load(Ordering::Acquire) {
            0 => Order::Serve,
            1 => Order::Drain,
            2 => Order::Finish,
            _ => Order::Close,
        }
    }

    pub(crate) fn cause(&self) -> Cause {
        const ALL: [Cause; 10] = [
            Cause::Shutdown,
            Cause::Silent,
            Cause::Fields,
            Cause::Idle,
            Cause::Requests,
            Cause::Cancelled,
            Cause::Deaf,
            Cause::Stalled,
            Cause::Memory,
            Cause::Gone,
        ];
        let cause = self.cause.load(Ordering::Acquire);
        ALL.get(usize::from(cause))
            .copied()
            .unwrap_or(Cause::Shutdown)
    }

    /// Returns the cause for cutting off a client that continues after it was told to end.
    pub(crate) fn cause_of_deaf(&self) -> Cause {
        match self.cause() {
            Cause::Cancelled => Cause::Cancelled,
            _ => Cause::Deaf,
        }
    }

    /// Waits for this order, or a later one. One task waits at a time.
    pub(crate) async fn at_least(&self, order: Order) -> Order {
        poll_fn(|cx| {
            let mut told = self.order();
            if told < order {
                self.task.register(cx.waker());
                told = self.order();
            }
            if told < order {
                Poll::Pending
            } else {
                Poll::Ready(told)
            }
        })
        .await
    }
}
