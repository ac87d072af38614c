//! Clients that wait for the application to decide about them.

use std::{
    collections::VecDeque,
    sync::atomic::Ordering,
    task::{Poll, Waker},
    time::Instant,
};

use hybriq_proto::endpoint::Incoming;

use super::{Shared, mailbox::Command};
use crate::{
    sync::waiters::{Waited, Waiters, lock, wait_until},
    worker::admit::{
        admission::{Address, Admission, Limit, Present, TurnAway},
        refusal,
    },
};

/// Reason why a ClientHello is not queued for the application.
pub(in crate::worker) enum Turned {
    /// Too many clients wait.
    Full(Box<Incoming>),
    /// The endpoint accepts no more clients.
    Stopped(Box<Incoming>),
    /// The operator's limits do not admit the client.
    Limited(TurnAway, Box<Incoming>),
}

/// Queue of ClientHellos that wait for the application, each with its worker.
pub(super) struct Arrivals {
    pub(super) waiting: VecDeque<(u8, Incoming)>,
    /// Number of waiting clients that did not prove their address.
    pub(super) unproven: usize,
    pub(super) accepting: Waiters,
    pub(super) open: bool,
    pub(super) admission: Admission,
}

impl Arrivals {
    pub(super) fn new(admission: Admission) -> Self {
        Self {
            waiting: VecDeque::new(),
            unproven: 0,
            accepting: Waiters::default(),
            open: true,
            admission,
        }
    }
}

impl Waited for Arrivals {
    type For = ();

    fn waiters(&mut self, (): ()) -> &mut Waiters {
        &mut self.accepting
    }
}

impl Shared {
    /// Waits for the next ClientHello and its worker; `None` once the endpoint is closed. The
    /// caller reports its decision with [`Shared::on_one_decided`].
    pub(crate) async fn accept(&self) -> Option<(u8, Incoming)> {
        wait_until(&self.arrivals, (), |arrivals| {
            match arrivals.waiting.pop_front() {
                Some(arrival) => {
                    arrivals.unproven -= usize::from(!arrival.1.is_validated());
                    self.undecided.fetch_add(1, Ordering::AcqRel);
                    Poll::Ready(Some(arrival))
                }
                None if arrivals.open => Poll::Pending,
                None => Poll::Ready(None),
            }
        })
        .await
    }

    /// Notes that a client returned by [`Shared::accept`] was decided on. If it was accepted, its
    /// connection was started before.
    pub(crate) fn on_one_decided(&self) {
        self.undecided.fetch_sub(1, Ordering::AcqRel);
    }

    /// Queues a ClientHello for the application, or returns it. `handshakes` is the number of other
    /// clients that have not completed theirs.
    pub(in crate::worker) fn on_incoming(
        &self,
        worker: u8,
        incoming: Box<Incoming>,
        now: Instant,
        handshakes: usize,
        wakes: &mut Vec<Waker>,
    ) -> Result<(), Turned> {
        let mut arrivals = lock(&self.arrivals);
        if !arrivals.open {
            return Err(Turned::Stopped(incoming));
        }
        if arrivals.waiting.len() >= self.backlog {
            return Err(Turned::Full(incoming));
        }
        let is_proven = incoming.is_validated();
        if !is_proven && arrivals.unproven >= self.backlog.div_ceil(2) {
            let answer = TurnAway::Retry(Limit::Backlog);
            return Err(Turned::Limited(answer, incoming));
        }
        // Each may become a connection. The order matters: a client that is accepted at this moment
        // must count twice rather than not at all.
        let undecided = arrivals.waiting.len() + self.undecided.load(Ordering::Acquire);
        let present = Present {
            connections: undecided + self.open_connections(),
            handshakes,
        };
        let client = incoming.peer_address().ip();
        let address = if is_proven {
            Address::Proven
        } else {
            Address::Unproven
        };
        if let Err(answer) = arrivals.admission.judge(now, client, address, present) {
            return Err(Turned::Limited(answer, incoming));
        }
        arrivals.unproven += usize::from(!is_proven);
        arrivals.waiting.push_back((worker, *incoming));
        arrivals.accepting.wake_one(wakes);
        Ok(())
    }

    /// Returns true if the limits have room only for clients that proved their address, given the
    /// number of clients that have not completed their handshake.
    pub(in crate::worker) fn is_crowded(&self, now: Instant, handshakes: usize) -> bool {
        if !self.has_limits {
            return false;
        }
        let arrivals = lock(&self.arrivals);
        let undecided = arrivals.waiting.len() + self.undecided.load(Ordering::Acquire);
        let present = Present {
            connections: undecided + self.open_connections(),
            handshakes,
        };
        arrivals.admission.wants_proof(now, present)
    }

    /// Accepts no more clients, and refuses those that wait.
    pub(in crate::worker) fn stop_accepting(&self, wakes: &mut Vec<Waker>) {
        let waiting = {
            let mut arrivals = lock(&self.arrivals);
            arrivals.open = false;
            arrivals.accepting.wake_all(wakes);
            arrivals.unproven = 0;
            std::mem::take(&mut arrivals.waiting)
        };
        for (worker, incoming) in waiting {
            self.decide(worker, Command::Refuse(incoming, refusal::STOPPED));
        }
    }
}
