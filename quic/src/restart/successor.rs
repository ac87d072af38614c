//! The process that takes an endpoint over.

use std::{io, net::TcpListener, os::fd::OwnedFd, path::Path};

use tokio::{net::UnixStream, time::timeout};

use super::{
    Claimed, Inheritance, PATIENCE,
    link::Link,
    records::{Answer, Hello, Offer, Record},
    relay::Relays,
};
use crate::{
    config::{Ids, TokenKeys},
    errors::{EndpointError, RestartError},
    udp::{Opened, Options},
};

/// Properties of the process that takes an endpoint over.
pub(crate) struct Own<'a> {
    /// Number of workers.
    pub(crate) workers: u8,
    pub(crate) ids: &'a Ids,
    pub(crate) token_keys: Option<&'a TokenKeys>,
    /// Options of the sockets.
    pub(crate) options: Options,
}

/// An endpoint that was taken over, to be started.
pub(crate) struct Taken {
    /// For each address, a socket for each worker.
    pub(crate) sockets: Vec<Vec<Opened>>,
    pub(crate) listeners: Vec<TcpListener>,
    pub(crate) inheritance: Inheritance,
    /// The predecessor, which waits until this process receives.
    pub(crate) waiting: Waiting,
}

/// A predecessor that waits until this process receives.
pub(crate) struct Waiting(Link);

impl Waiting {
    /// Tells the predecessor that this process receives.
    pub(crate) async fn tell(&self) {
        // If the predecessor has ended meanwhile, there is nobody to tell.
        let _ = self.0.send(&Record::Done.to_bytes(), &[]).await;
    }
}

/// Takes over the endpoint of the process that waits at the path.
pub(crate) async fn take_over(own: Own<'_>, path: &Path) -> Result<Taken, EndpointError> {
    let connected = UnixStream::connect(path).await;
    let stream = connected.map_err(|error| match error.kind() {
        // No process can ever wait at such a path: it is too long, for example.
        io::ErrorKind::InvalidInput => RestartError::Path(error),
        _ => RestartError::NoPredecessor(error),
    })?;
    let mut link = Link::new(stream);
    if !link.is_trusted().map_err(RestartError::Lost)? {
        return Err(RestartError::User.into());
    }
    let (offer, mut sockets, mut relays) = within(ask(&mut link, &own)).await?;
    let first = sockets.len() - usize::from(offer.listeners);
    let listeners = sockets.split_off(first).into_iter().map(TcpListener::from);
    let listeners = listeners.collect();
    let sockets = adopt(sockets, &offer, own.options)?;
    let ready = Record::Ready.to_bytes();
    let sent = link.send(&ready, &[]).await;
    sent.map_err(RestartError::Lost)?;
    let (claims, workers) = within(inherit(&mut link, own.workers.into())).await?;
    relays.add(offer.generation, workers);
    Ok(Taken {
        sockets,
        listeners,
        inheritance: Inheritance {
            generation: offer.next,
            relays,
            claims,
        },
        waiting: Waiting(link),
    })
}

/// Runs a step with a time limit.
async fn within<T>(step: impl Future<Output = Result<T, RestartError>>) -> Result<T, RestartError> {
    let outcome = timeout(PATIENCE, step).await;
    outcome.unwrap_or_else(|_| Err(RestartError::Lost(io::ErrorKind::TimedOut.into())))
}

/// Asks for the endpoint. Returns the offer, all sockets with the listeners at the end, and the relays
/// to earlier processes.
async fn ask(
    link: &mut Link,
    own: &Own<'_>,
) -> Result<(Offer, Vec<OwnedFd>, Relays), RestartError> {
    let workers = own.workers;
    let mut ids = own.ids.clone();
    ids.draw_reset_key();
    let tokens = own.token_keys.cloned();
    let tokens = tokens.unwrap_or_else(TokenKeys::random);
    let hello = Hello::new(workers, &ids, &tokens);
    let asked = async {
        link.send(&hello.to_bytes(), &[]).await?;
        let (record, _) = link.receive().await?;
        Answer::read(&record, workers)
    };
    let offer = match asked.await.map_err(RestartError::Lost)? {
        Answer::Offer(offer) => offer,
        Answer::Refusal(error) => return Err(error),
    };
    let understood = |(number, cid): &(u8, Vec<u8>)| ids.number(cid) == Some(*number);
    if offer.samples.is_empty() || !offer.samples.iter().all(understood) {
        return Err(RestartError::Ids);
    }
    let workers = usize::from(workers);
    let count = workers * usize::from(offer.sockets) + usize::from(offer.listeners);
    let mut files = Vec::new();
    let wanted = count + workers * offer.earlier.len();
    while files.len() < wanted {
        let (record, more) = link.receive().await.map_err(RestartError::Lost)?;
        match Record::read(&record) {
            Ok(Record::Files) if !more.is_empty() => files.extend(more),
            _ => return Err(RestartError::Release),
        }
    }
    let mut earlier = files.split_off(count).into_iter();
    let mut relays = Relays::default();
    for &generation in &offer.earlier {
        relays.add(generation, earlier.by_ref().take(workers).collect());
    }
    Ok((offer, files, relays))
}

/// Prepares the sockets: for each address, one for each worker.
fn adopt(
    files: Vec<OwnedFd>,
    offer: &Offer,
    options: Options,
) -> Result<Vec<Vec<Opened>>, EndpointError> {
    let per_worker = usize::from(offer.sockets).max(1);
    let mut sockets: Vec<Vec<Opened>> = (0..per_worker).map(|_| Vec::new()).collect();
    for (place, file) in files.into_iter().enumerate() {
        let socket = Opened::adopt(file.into(), options)?;
        if let Some(group) = sockets.get_mut(place % per_worker) {
            group.push(socket);
        }
    }
    Ok(sockets)
}

/// Receives what the predecessor passes on, until it reports that its workers no longer receive.
async fn inherit(
    link: &mut Link,
    workers: usize,
) -> Result<(Vec<Claimed>, Vec<OwnedFd>), RestartError> {
    let (mut claims, mut relays) = (Vec::new(), Vec::new());
    loop {
        let (record, files) = link.receive().await.map_err(RestartError::Lost)?;
        match Record::read(&record).map_err(RestartError::Lost)? {
            Record::Claims(more) => claims.extend(more),
            Record::Files => relays.extend(files),
            Record::Go if relays.len() == workers => return Ok((claims, relays)),
            Record::Go | Record::Ready | Record::Done => return Err(RestartError::Release),
        }
    }
}
