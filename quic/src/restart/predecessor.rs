//! The process that hands an endpoint over.

use std::{
    io,
    net::TcpListener,
    os::fd::{AsFd as _, BorrowedFd, OwnedFd},
    path::Path,
    sync::Arc,
};

use tokio::{net::UnixStream, sync::oneshot::Receiver, time::timeout};

use super::{
    Claimed, Inheritance, PATIENCE,
    link::{FILES, Link},
    listener::Listener,
    records::{Answer, CLAIMS, Hello, Offer, Record},
    relay::pair,
};
use crate::{
    config::{Ids, TokenKeys},
    errors::RestartError,
    udp::Handle,
};

/// Workers of an endpoint that is handed over.
pub(crate) trait Workers: Send + Sync + 'static {
    /// Waits for a future; returns `None` once the endpoint is closed.
    fn unless_closed<T: Send>(
        &self,
        waiting: impl Future<Output = T> + Send,
    ) -> impl Future<Output = Option<T>> + Send;

    /// Waits until this process receives from the sockets.
    fn receives(&self) -> impl Future<Output = ()> + Send;

    /// Asks each worker for additional handles of its sockets.
    fn lend(&self) -> Vec<Receiver<io::Result<Vec<Handle>>>>;

    /// Lets each worker receive from its relay instead of its sockets. The replies are the clients
    /// whose handshakes are not finished.
    fn give_way(&self, relays: Vec<Handle>) -> Vec<Receiver<Vec<Claimed>>>;

    /// Lets the workers receive from their sockets again.
    fn go_on(&self);

    /// Leaves new clients to a successor. Clients that arrived earlier can still be accepted.
    fn on_succeeded(&self);
}

/// Properties of the process that hands its endpoint over.
pub(crate) struct Own<'a> {
    /// Number of workers.
    pub(crate) workers: u8,
    pub(crate) ids: &'a Ids,
    pub(crate) token_keys: &'a TokenKeys,
    pub(crate) inheritance: &'a Inheritance,
}

/// Waits for a successor and hands the endpoint over.
pub(crate) async fn hand_over<W: Workers>(
    workers: &Arc<W>,
    own: Own<'_>,
    path: &Path,
    listeners: &impl Fn() -> Vec<TcpListener>,
) -> Result<(), RestartError> {
    if own.ids.are_empty() {
        return Err(RestartError::ZeroLengthCids);
    }
    workers
        .unless_closed(workers.receives())
        .await
        .ok_or(RestartError::Closed)?;
    let listener = Listener::new(path).await?;
    loop {
        let accepted = workers.unless_closed(listener.accept()).await;
        let stream = accepted.ok_or(RestartError::Closed)??;
        match timeout(PATIENCE, prepare(&**workers, &own, stream, listeners)).await {
            Ok(Ok(link)) => {
                listener.leave();
                return give_way(workers, own.workers, link).await;
            }
            Ok(Err(error)) => tracing::warn!(%error, "a process cannot succeed this one"),
            Err(_) => tracing::warn!("a process that wants to succeed this one is silent"),
        }
    }
}

/// Offers the endpoint to a process, sends the sockets, and waits until the process is ready.
async fn prepare(
    workers: &impl Workers,
    own: &Own<'_>,
    stream: UnixStream,
    listeners: &impl Fn() -> Vec<TcpListener>,
) -> Result<Link, RestartError> {
    let mut link = Link::new(stream);
    let (record, _) = link.receive().await.map_err(RestartError::Lost)?;
    let offered = match own.check(&link, &record) {
        Ok(next) => lend(workers).await.map(|lent| (next, lent)),
        Err(error) => Err(error),
    };
    let (next, sockets) = match offered {
        Ok(offered) => offered,
        Err(error) => {
            let answer = Answer::Refusal(error);
            let sent = link.send(&answer.to_bytes(), &[]).await;
            let Answer::Refusal(error) = answer else {
                return Err(RestartError::Closed);
            };
            return Err(sent.err().map_or(error, RestartError::Lost));
        }
    };
    let living = || own.inheritance.relays.living();
    let listeners = listeners().into_iter().take(u8::MAX.into());
    let listeners: Vec<OwnedFd> = listeners.map(OwnedFd::from).collect();
    let sample = |number| (number, own.ids.sample(number));
    let offer = Answer::Offer(Offer {
        generation: own.inheritance.generation,
        next,
        sockets: sockets.first().map_or(0, Vec::len) as u8,
        listeners: listeners.len() as u8,
        earlier: living().map(|(generation, _)| generation).collect(),
        samples: Answer::sampled(next).map(sample).collect(),
    });
    let relays = living().flat_map(|(_, relays)| relays);
    let files = sockets.iter().flatten().chain(&listeners).chain(relays);
    let files: Vec<_> = files.map(|file| file.as_fd()).collect();
    let send = async {
        link.send(&offer.to_bytes(), &[]).await?;
        send_files(&link, &files).await
    };
    send.await.map_err(RestartError::Lost)?;
    let (record, _) = link.receive().await.map_err(RestartError::Lost)?;
    match Record::read(&record) {
        Ok(Record::Ready) => Ok(link),
        _ => Err(RestartError::Ids),
    }
}

impl Own<'_> {
    /// Checks that a process may succeed. Returns its generation.
    fn check(&self, link: &Link, record: &[u8]) -> Result<u8, RestartError> {
        if !link.is_trusted().map_err(RestartError::Lost)? {
            return Err(RestartError::User);
        }
        let own = Hello::new(self.workers, self.ids, self.token_keys);
        own.check(Hello::read(record)?)?;
        let generation = self.inheritance.generation;
        let mut taken = self.inheritance.relays.generations();
        taken.insert(generation);
        taken
            .next_after(generation, self.workers)
            .ok_or(RestartError::Generations)
    }
}

/// Returns additional handles of the sockets of each worker.
async fn lend(workers: &impl Workers) -> Result<Vec<Vec<OwnedFd>>, RestartError> {
    let mut lent: Vec<Vec<OwnedFd>> = Vec::new();
    for reply in workers.lend() {
        let sockets = reply.await.map_err(|_| RestartError::Closed)?;
        lent.push(sockets.map_err(|_| RestartError::Moved)?);
    }
    let same = |own: &Vec<_>| lent.first().is_some_and(|first| first.len() == own.len());
    if lent.iter().all(same) {
        Ok(lent)
    } else {
        Err(RestartError::Moved)
    }
}

async fn send_files(link: &Link, files: &[BorrowedFd<'_>]) -> io::Result<()> {
    for files in files.chunks(FILES) {
        link.send(&Record::Files.to_bytes(), files).await?;
    }
    Ok(())
}

/// State of a hand-over during which the workers pause.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Progress {
    /// The workers wait, and resume if the hand-over fails.
    Waiting,
    /// The successor may have started. If it ends, the relays tell the workers.
    Gone,
}

/// Makes the workers resume if the hand-over fails.
struct Attempt<'a, W: Workers> {
    workers: &'a W,
    progress: Progress,
}

impl<W: Workers> Drop for Attempt<'_, W> {
    fn drop(&mut self) {
        match self.progress {
            Progress::Waiting => self.workers.go_on(),
            Progress::Gone => {}
        }
    }
}

/// Pauses the workers, and waits until the successor receives.
async fn give_way<W: Workers>(
    workers: &Arc<W>,
    count: u8,
    mut link: Link,
) -> Result<(), RestartError> {
    let mut attempt = Attempt {
        workers: &**workers,
        progress: Progress::Waiting,
    };
    let go = timeout(PATIENCE, start(&**workers, count, &link)).await;
    go.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))
        .map_err(RestartError::Lost)?;
    attempt.progress = Progress::Gone;
    drop(attempt);
    // There is no time limit: the relays serve the connections meanwhile. This runs in its own
    // task, because there is a successor even if nobody waits for the outcome any longer.
    let workers = workers.clone();
    let waiting = tokio::spawn(async move {
        let (record, _) = link.receive().await?;
        match Record::read(&record)? {
            Record::Done => {
                workers.on_succeeded();
                Ok(())
            }
            _ => Err(io::ErrorKind::InvalidData.into()),
        }
    });
    let done = waiting.await.map_err(io::Error::from);
    done.and_then(|done| done).map_err(RestartError::Lost)
}

/// Pauses the workers, and tells the successor to receive.
async fn start(workers: &impl Workers, count: u8, link: &Link) -> io::Result<()> {
    let relays: Vec<_> = (0..count).map(|_| pair()).collect::<io::Result<_>>()?;
    let (ours, theirs): (Vec<_>, Vec<_>) = relays.into_iter().unzip();
    let mut claims: Vec<Claimed> = Vec::new();
    for reply in workers.give_way(theirs) {
        let lost = |_| io::Error::from(io::ErrorKind::BrokenPipe);
        claims.extend(reply.await.map_err(lost)?);
    }
    for claims in claims.chunks(CLAIMS) {
        let record = Record::Claims(claims.to_vec());
        link.send(&record.to_bytes(), &[]).await?;
    }
    let files: Vec<_> = ours.iter().map(|file| file.as_fd()).collect();
    send_files(link, &files).await?;
    link.send(&Record::Go.to_bytes(), &[]).await
}
