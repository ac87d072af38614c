use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    task::{Context, Wake, Waker},
};

use hybriq_proto::endpoint::{Arrival, Local};

use super::{Command, FOREIGN_DATAGRAMS, Mailbox, Reason, Requests};

#[derive(Default)]
struct Count(AtomicUsize);

impl Wake for Count {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

fn arrival() -> Arrival {
    Arrival {
        peer: ([127, 0, 0, 1], 1).into(),
        local: Local::default(),
        ecn: None,
    }
}

#[test]
fn a_sleeping_worker_is_woken_once() {
    let (mailbox, count) = (Mailbox::new(Arc::default()), Arc::new(Count::default()));
    let waker = Waker::from(count.clone());
    assert!(
        mailbox
            .poll_requests(&Context::from_waker(&waker))
            .is_pending()
    );
    for _ in 0..3 {
        assert!(mailbox.push(Command::Release));
    }
    assert_eq!(count.0.load(Ordering::Relaxed), 1);
    assert!(
        mailbox
            .poll_requests(&Context::from_waker(&waker))
            .is_ready()
    );
    let mut taken = Requests::default();
    assert!(mailbox.take(&mut taken));
    assert_eq!(taken.commands.len(), 3);
    assert!(!mailbox.take(&mut Requests::default()));
}

#[test]
fn datagrams_handed_over_are_bounded() {
    let mailbox = Mailbox::new(Arc::default());
    for _ in 0..FOREIGN_DATAGRAMS {
        assert!(mailbox.push_foreign(arrival(), &[0x40; 30], Reason::Id));
    }
    assert!(!mailbox.push_foreign(arrival(), &[0x40; 30], Reason::Id));
    let mut taken = Requests::default();
    assert!(mailbox.take(&mut taken));
    assert_eq!(taken.foreign.len(), FOREIGN_DATAGRAMS);
    assert!(mailbox.push_foreign(arrival(), &[0x40; 30], Reason::Id));
}

#[test]
fn an_ended_worker_takes_nothing() {
    let mailbox = Mailbox::new(Arc::default());
    assert!(mailbox.push(Command::Release));
    assert!(!mailbox.try_end(), "something waits");
    assert!(mailbox.take(&mut Requests::default()));
    assert!(mailbox.try_end());
    assert!(!mailbox.push(Command::Release));
    assert!(!mailbox.push_foreign(arrival(), &[0], Reason::Id));
}
