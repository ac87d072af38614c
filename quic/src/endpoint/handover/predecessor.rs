//! The process that hands an endpoint over.

use std::{
    io,
    net::TcpListener,
    os::fd::{AsFd as _, BorrowedFd, OwnedFd},
    path::Path,
    time::Duration,
};

use tokio::{
    net::UnixStream,
    sync::oneshot::{self, Receiver},
    time::timeout,
};

use crate::{
    endpoint::Endpoint,
    errors::RestartError,
    restart::{
        link::{FILES, Link},
        listener::Listener,
        records::{Answer, CLAIMS, Hello, Offer, Record},
        relay::pair,
    },
    worker::{Claimed, Command, Shared},
};

/// Longest time that the other process may be silent.
pub(super) const PATIENCE: Duration = Duration::from_secs(5);

/// Waits for a successor and hands the endpoint over.
pub(super) async fn hand_over(
    endpoint: &Endpoint,
    path: &Path,
    listeners: &impl Fn() -> Vec<TcpListener>,
) -> Result<(), RestartError> {
    if !endpoint.ports.has_ids {
        return Err(RestartError::ZeroLengthCids);
    }
    let shared = &endpoint.shared;
    shared
        .unless_closed(shared.receives())
        .await
        .ok_or(RestartError::Closed)?;
    let listener = Listener::new(path).await?;
    loop {
        let accepted = shared.unless_closed(listener.accept()).await;
        let stream = accepted.ok_or(RestartError::Closed)??;
        match timeout(PATIENCE, prepare(endpoint, stream, listeners)).await {
            Ok(Ok(link)) => {
                listener.leave();
                return give_way(endpoint, link).await;
            }
            Ok(Err(error)) => tracing::warn!(%error, "a process cannot succeed this one"),
            Err(_) => tracing::warn!("a process that wants to succeed this one is silent"),
        }
    }
}

/// Offers the endpoint to a process, sends the sockets, and waits until the process is ready.
async fn prepare(
    endpoint: &Endpoint,
    stream: UnixStream,
    listeners: &impl Fn() -> Vec<TcpListener>,
) -> Result<Link, RestartError> {
    let mut link = Link::new(stream);
    let (record, _) = link.receive().await.map_err(RestartError::Lost)?;
    let offered = match check(endpoint, &link, &record) {
        Ok(next) => lend(&endpoint.shared).await.map(|lent| (next, lent)),
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
    let inheritance = &endpoint.settings.inheritance;
    let living = || inheritance.relays.living();
    let listeners = listeners().into_iter().take(u8::MAX.into());
    let listeners: Vec<OwnedFd> = listeners.map(OwnedFd::from).collect();
    let sample = |number| (number, endpoint.settings.ids.sample(number));
    let offer = Answer::Offer(Offer {
        generation: inheritance.generation,
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

/// Checks that a process may succeed. Returns its generation.
fn check(endpoint: &Endpoint, link: &Link, record: &[u8]) -> Result<u8, RestartError> {
    if !link.is_trusted().map_err(RestartError::Lost)? {
        return Err(RestartError::User);
    }
    let settings = &endpoint.settings;
    let workers = settings.workers as u8;
    let own = Hello::new(workers, &settings.ids, &settings.token_keys);
    own.check(Hello::read(record)?)?;
    let inheritance = &settings.inheritance;
    let mut taken = inheritance.relays.generations();
    taken.insert(inheritance.generation);
    taken
        .next_after(inheritance.generation, workers)
        .ok_or(RestartError::Generations)
}

/// Returns additional handles of the sockets of each worker.
async fn lend(shared: &Shared) -> Result<Vec<Vec<OwnedFd>>, RestartError> {
    let mut lent: Vec<Vec<OwnedFd>> = Vec::new();
    for reply in ask(shared, Command::Lend) {
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

/// Sends each worker a command and returns the receivers of the replies. A worker that has ended
/// never replies.
fn ask<T>(shared: &Shared, command: impl Fn(oneshot::Sender<T>) -> Command) -> Vec<Receiver<T>> {
    let mut replies = Vec::new();
    shared.tell(|| {
        let (sender, receiver) = oneshot::channel();
        replies.push(receiver);
        command(sender)
    });
    replies
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
struct Attempt<'a> {
    shared: &'a Shared,
    progress: Progress,
}

impl Drop for Attempt<'_> {
    fn drop(&mut self) {
        match self.progress {
            Progress::Waiting => {
                self.shared.tell(|| Command::GoOn);
                self.shared.on_resumed();
            }
            Progress::Gone => {}
        }
    }
}

/// Pauses the workers, and waits until the successor receives.
async fn give_way(endpoint: &Endpoint, mut link: Link) -> Result<(), RestartError> {
    let shared = endpoint.shared.as_ref();
    let mut attempt = Attempt {
        shared,
        progress: Progress::Waiting,
    };
    shared.on_paused();
    let go = timeout(PATIENCE, start(shared, &link)).await;
    go.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))
        .map_err(RestartError::Lost)?;
    attempt.progress = Progress::Gone;
    drop(attempt);
    // There is no time limit: the relays serve the connections meanwhile. This runs in its own
    // task, because there is a successor even if nobody waits for the outcome any longer.
    let shared = endpoint.shared.clone();
    let waiting = tokio::spawn(async move {
        let (record, _) = link.receive().await?;
        match Record::read(&record)? {
            Record::Done => {
                shared.on_succeeded();
                Ok(())
            }
            _ => Err(io::ErrorKind::InvalidData.into()),
        }
    });
    let done = waiting.await.map_err(io::Error::from);
    done.and_then(|done| done).map_err(RestartError::Lost)
}

/// Pauses the workers, and tells the successor to receive.
async fn start(shared: &Shared, link: &Link) -> io::Result<()> {
    let (mut ours, mut replies) = (Vec::new(), Vec::new());
    let relays: Vec<_> = (0..shared.workers())
        .map(|_| pair())
        .collect::<io::Result<_>>()?;
    let mut relays = relays.into_iter();
    shared.tell(|| {
        let (sender, receiver) = oneshot::channel();
        match relays.next() {
            Some((to, from)) => {
                ours.push(to);
                replies.push(receiver);
                Command::GiveWay(from, sender)
            }
            None => Command::Recheck,
        }
    });
    let mut claims: Vec<Claimed> = Vec::new();
    for reply in replies {
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
