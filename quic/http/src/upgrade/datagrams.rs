//! The HTTP Datagrams of a connection, each for its request (RFC 9297 §2.1).

use std::{
    collections::{HashMap, VecDeque},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use bytes::{BufMut as _, Bytes};
use hybriq::{Connection, StreamId, error::SendDatagramError, stats::Census, tls::Side};
use hybriq_h3::{Inbox, Violation, datagram_head_len, put_datagram_head, read_datagram};
use tokio::sync::oneshot;

use crate::versions::http3::Link;

/// Number of requests that are remembered after their end, so that datagrams that come late for them are dropped.
const REMEMBERED: usize = 64;

/// Takes the datagrams of a request.
pub(crate) trait TakesDatagrams: Send + Sync {
    fn on_datagram(&self, data: Bytes);
}

/// The datagrams that arrive on a connection. Clones share them.
#[derive(Clone)]
pub(crate) struct Datagrams(Arc<Mutex<Table>>);

struct Table {
    takers: HashMap<StreamId, Arc<dyn TakesDatagrams>>,
    /// Datagrams that arrived before their request was accepted.
    waiting: Inbox<StreamId>,
    /// The last requests that are over.
    gone: VecDeque<StreamId>,
    /// Ends the task that reads the datagrams when it is dropped. `None` while no request takes any.
    reader: Option<oneshot::Sender<()>>,
    /// Number of such tasks.
    readers: usize,
}

impl Datagrams {
    /// Makes an empty table in which datagrams that cost up to `most_waiting` bytes wait for their requests, counted as
    /// in [`Inbox`].
    pub(crate) fn new(most_waiting: usize) -> Self {
        Self(Arc::new(Mutex::new(Table {
            takers: HashMap::new(),
            waiting: Inbox::new(most_waiting),
            gone: VecDeque::new(),
            reader: None,
            readers: 0,
        })))
    }

    fn lock(&self) -> MutexGuard<'_, Table> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Gives a request its datagrams from now on, and those that arrived before.
    pub(crate) fn add(
        &self,
        connection: &Connection,
        id: StreamId,
        taker: Arc<dyn TakesDatagrams>,
    ) {
        let mut table = self.lock();
        for data in table.waiting.take(id) {
            taker.on_datagram(data);
        }
        table.takers.insert(id, taker);
        let reader = table.reader.is_none().then(|| {
            let (reader, ended) = oneshot::channel();
            table.reader = Some(reader);
            table.readers += 1;
            ended
        });
        drop(table);
        if let Some(ended) = reader {
            connection.spawn(self.clone().read(connection.clone(), ended));
        }
    }

    /// Forgets a request that is over, or was refused.
    pub(crate) fn remove(&self, id: StreamId) {
        let mut table = self.lock();
        if table.gone.contains(&id) {
            return;
        }
        table.gone.push_back(id);
        if table.gone.len() > REMEMBERED {
            table.gone.pop_front();
        }
        let waited = table.waiting.take(id);
        let taker = table.takers.remove(&id);
        if table.takers.is_empty() {
            table.reader = None;
        }
        drop(table);
        drop((waited, taker));
    }

    /// Gives the datagrams of the connection to their requests, until no request takes any.
    async fn read(self, connection: Connection, mut ended: oneshot::Receiver<()>) {
        let reading = Reading(self);
        loop {
            let received = tokio::select! {
                biased;
                _ = &mut ended => return,
                received = connection.recv_datagram() => received,
            };
            let Ok(Some(datagram)) = received else {
                return;
            };
            if let Err(violation) = reading.0.on_datagram(&connection, datagram) {
                let reason = violation.to_string();
                return connection.close(violation.code().0, reason.as_bytes());
            }
            tokio::task::consume_budget().await;
        }
    }

    fn on_datagram(&self, connection: &Connection, datagram: Bytes) -> Result<(), Violation> {
        let (id, data) = read_datagram(datagram)?;
        let mut table = self.lock();
        if let Some(taker) = table.takers.get(&id) {
            taker.on_datagram(data);
        } else if connection.side() == Side::Server && !connection.may_peer_open(id) {
            return Err(Violation::DatagramBeyondLimit);
        } else if !table.gone.contains(&id) {
            table.waiting.push(id, data);
        }
        Ok(())
    }

    /// Counts what is held. Once all requests are over, that is only the numbers of the last 64, which [may
    /// grow](hybriq::stats::MAY_GROW).
    pub(crate) fn census(&self, census: &mut Census) {
        let table = self.lock();
        let (datagrams, bytes) = table.waiting.held();
        census.add("datagrams without request", datagrams, bytes);
        census.add_of::<u64>("numbers of requests that are over", table.gone.len());
        census.add("readers of datagrams", table.readers, 0);
        census.add_of::<(u64, Arc<dyn TakesDatagrams>)>(
            "requests with datagrams",
            table.takers.len(),
        );
    }
}

/// The task that reads the datagrams, until this is dropped.
struct Reading(Datagrams);

impl Drop for Reading {
    fn drop(&mut self) {
        self.0.lock().readers -= 1;
    }
}

/// The datagrams of one request. Dropping this forgets the request.
pub(crate) struct Flow {
    datagrams: Datagrams,
    link: Arc<Link>,
    connection: Connection,
    id: StreamId,
}

impl Flow {
    pub(crate) fn new(
        datagrams: Datagrams,
        link: Arc<Link>,
        connection: Connection,
        id: StreamId,
    ) -> Self {
        Self {
            datagrams,
            link,
            connection,
            id,
        }
    }

    pub(crate) fn connection(&self) -> &Connection {
        &self.connection
    }

    /// Gives the datagrams of the request to this from now on, and those that arrived before, until it is
    /// [over](Self::end).
    pub(crate) fn begin(&self, taker: Arc<dyn TakesDatagrams>) {
        self.datagrams.add(&self.connection, self.id, taker);
    }

    /// Takes no more datagrams.
    pub(crate) fn end(&self) {
        self.datagrams.remove(self.id);
    }

    /// Returns true if datagrams may be sent: the peer takes them, by settings that have arrived (RFC 9297 §2.1.1).
    pub(crate) fn is_taken(&self) -> bool {
        self.link.takes_datagrams()
    }

    /// Returns the largest size of a datagram now, in bytes. `None` if the peer takes none.
    pub(crate) fn max_size(&self) -> Option<usize> {
        let most = self.connection.max_datagram_size()?;
        most.checked_sub(datagram_head_len(self.id))
    }

    /// Sends a datagram of two parts.
    pub(crate) fn send(&self, head: &[u8], payload: &[u8]) -> Result<(), SendDatagramError> {
        let mut datagram = Vec::with_capacity(payload.len() + head.len() + 8);
        put_datagram_head(self.id, &mut datagram);
        datagram.put(head);
        datagram.put(payload);
        self.connection.send_datagram(datagram.into())
    }

    /// Ends the request because the peer broke a rule.
    pub(crate) fn abort(&self, violation: Violation) {
        let code = violation.code().0;
        self.connection.reset_stream(self.id, code, 0);
        self.connection.stop_stream(self.id, code);
    }
}

impl Drop for Flow {
    fn drop(&mut self) {
        self.end();
    }
}
