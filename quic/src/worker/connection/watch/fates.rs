//! Datagrams whose sender waits for their fate.

use std::{
    collections::HashMap,
    future::poll_fn,
    sync::Arc,
    task::{Context, Poll, Waker},
};

use hybriq_proto::{owners::datagrams::Fate, wire::error::ConnectionError};

use crate::sync::{
    Mutex,
    waiters::{lock, set_waker},
};

/// Datagrams by their tags. Takes no memory beyond a pointer while no future waits.
#[derive(Default)]
pub(crate) struct Fates(Option<Box<Table>>);

#[derive(Default)]
struct Table {
    open: HashMap<u64, Arc<Letter>>,
    next: u64,
}

/// A datagram whose fate is awaited, shared with the future that waits.
#[derive(Default)]
struct Letter(Mutex<Content>);

#[derive(Default)]
struct Content {
    fate: Option<Result<Fate, ConnectionError>>,
    waker: Option<Waker>,
}

impl Letter {
    /// Stores the fate. Returns the task that waits.
    fn tell(&self, fate: Result<Fate, ConnectionError>) -> Option<Waker> {
        let mut content = lock(&self.0);
        content.fate = Some(fate);
        content.waker.take()
    }

    fn poll(&self, cx: &Context<'_>) -> Poll<Result<Fate, ConnectionError>> {
        let mut content = lock(&self.0);
        if let Some(fate) = &content.fate {
            return Poll::Ready(fate.clone());
        }
        let replaced = set_waker(&mut content.waker, cx);
        drop(content);
        drop(replaced);
        Poll::Pending
    }
}

impl Fates {
    /// Returns the tag of a new datagram, and a future of its fate. The datagram must be sent with the tag, or
    /// [given up](Self::give_up).
    pub(crate) fn add(
        &mut self,
    ) -> (
        u64,
        impl Future<Output = Result<Fate, ConnectionError>> + Send + Sync + use<>,
    ) {
        let table = self.0.get_or_insert_default();
        let tag = table.next;
        table.next += 1;
        let letter = Arc::<Letter>::default();
        table.open.insert(tag, letter.clone());
        (tag, poll_fn(move |cx| letter.poll(cx)))
    }

    /// Forgets a datagram that was not taken.
    pub(crate) fn give_up(&mut self, tag: u64) {
        self.take(tag);
    }

    fn take(&mut self, tag: u64) -> Option<Arc<Letter>> {
        let table = self.0.as_mut()?;
        let letter = table.open.remove(&tag);
        if table.open.is_empty() {
            self.0 = None;
        }
        letter
    }

    /// Tells what became of a datagram.
    pub(in crate::worker) fn tell(&mut self, tag: u64, fate: Fate, wakes: &mut Vec<Waker>) {
        let letter = self.take(tag);
        wakes.extend(letter.and_then(|letter| letter.tell(Ok(fate))));
    }

    /// Tells all that the connection is over.
    pub(in crate::worker) fn end(&mut self, error: &ConnectionError, wakes: &mut Vec<Waker>) {
        let open = self.0.take().map(|table| table.open);
        let letters = open.into_iter().flatten();
        wakes.extend(letters.filter_map(|(_, letter)| letter.tell(Err(error.clone()))));
    }

    /// Returns the number of datagrams whose fate is not known.
    pub(in crate::worker) fn len(&self) -> usize {
        self.0.as_ref().map_or(0, |table| table.open.len())
    }
}
