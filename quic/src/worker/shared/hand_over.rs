//! What the workers do while a [hot restart](crate::restart) hands their endpoint over.

use std::{future::poll_fn, io, pin::pin, sync::atomic::Ordering, task::Poll};

use tokio::sync::oneshot::{self, Receiver};

use super::{Shared, mailbox::Command};
use crate::{
    restart::{Claimed, predecessor::Workers},
    udp::Handle,
};

impl Workers for Shared {
    async fn unless_closed<T: Send>(&self, waiting: impl Future<Output = T> + Send) -> Option<T> {
        let mut closed = self.closing.subscribe();
        let (mut waiting, mut closed) = (pin!(waiting), pin!(closed.wait_for(|closed| *closed)));
        poll_fn(|cx| match closed.as_mut().poll(cx) {
            Poll::Ready(_) => Poll::Ready(None),
            Poll::Pending => waiting.as_mut().poll(cx).map(Some),
        })
        .await
    }

    async fn receives(&self) {
        let mut receives = self.receives.subscribe();
        // The sender lives as long as `self`.
        let _ = receives.wait_for(|receives| *receives).await;
    }

    fn lend(&self) -> Vec<Receiver<io::Result<Vec<Handle>>>> {
        self.ask(Command::Lend)
    }

    fn give_way(&self, relays: Vec<Handle>) -> Vec<Receiver<Vec<Claimed>>> {
        self.receives.send_replace(false);
        let mut relays = relays.into_iter();
        self.ask(|reply| match relays.next() {
            Some(relay) => Command::GiveWay(relay, reply),
            None => Command::Recheck,
        })
    }

    fn go_on(&self) {
        self.tell(|| Command::GoOn);
        self.on_resumed();
    }

    fn on_succeeded(&self) {
        if self.succeeded.swap(true, Ordering::AcqRel) {
            return;
        }
        self.deciding.fetch_add(self.workers(), Ordering::AcqRel);
        for mailbox in &self.mailboxes {
            mailbox.push(Command::Succeeded);
        }
    }
}

impl Shared {
    /// Sends each worker a command and returns the receivers of the replies. A worker that has ended
    /// never replies.
    fn ask<T>(&self, mut command: impl FnMut(oneshot::Sender<T>) -> Command) -> Vec<Receiver<T>> {
        let mut replies = Vec::new();
        self.tell(|| {
            let (sender, receiver) = oneshot::channel();
            replies.push(receiver);
            command(sender)
        });
        replies
    }

    /// Sends each worker a command, in order, up to the first that has ended.
    fn tell(&self, mut command: impl FnMut() -> Command) {
        let mut mailboxes = self.mailboxes.iter();
        mailboxes.all(|mailbox| mailbox.push(command()));
    }
}
