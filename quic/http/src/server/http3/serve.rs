//! Accepts and serves connections over QUIC.

use std::{
    pin::pin,
    sync::{Arc, Weak},
};

use hybriq::{Incoming, StreamId};
use hybriq_h3::Code;

use super::{
    answers::Answers,
    connection::{Client, Quic, Running},
    request,
};
use crate::{
    server::{
        App,
        connections::{
            Account, Admission, Cause, Hosts, Kind, Memory, Order, QUIC_CONNECTION, Watched,
        },
        state::{GOAWAY_PAUSE, Phase, Shared},
    },
    versions::http3::{Arrived, Requests, Stream, StreamError},
};

/// First stream that the first GOAWAY does not allow: none (RFC 9114 §5.2).
const ALL: StreamId = StreamId((1 << 62) - 4);

/// Accepts connections until the server shuts down.
pub(crate) async fn accept<A: App>(shared: &Arc<Shared>, app: &A) {
    while let Some(incoming) = shared.endpoint.accept().await {
        let Some(account) = account(&shared.watch.memory, &incoming) else {
            turn_away(incoming);
            continue;
        };
        let served = shared.connections.add(Kind::Quic);
        let (shared, app) = (shared.clone(), app.clone());
        tokio::spawn(async move {
            if let Err(error) = start(shared, incoming, account, app, served).await {
                tracing::debug!(%error, "a QUIC connection failed");
            }
        });
    }
}

/// Opens the account of a client, if there is room for it.
fn account(memory: &Arc<Memory>, incoming: &Incoming) -> Option<Arc<Account>> {
    if incoming.is_validated() {
        (!memory.is_short()).then(|| Account::open(memory, QUIC_CONNECTION))
    } else {
        Account::open_unproven(memory, QUIC_CONNECTION)
    }
}

/// Refuses a client once it has proved its address.
fn turn_away(incoming: Incoming) {
    if incoming.is_validated() {
        incoming.refuse();
    } else if let Err(incoming) = incoming.retry() {
        // The client tries again for a while.
        incoming.ignore();
    }
}

/// Performs the handshake, and serves the connection next to its worker.
async fn start<A: App>(
    shared: Arc<Shared>,
    incoming: Incoming,
    account: Arc<Account>,
    app: A,
    served: impl Send + 'static,
) -> Result<(), hybriq::ConnectError> {
    let settings = shared.settings();
    let client = Client {
        address: incoming.peer_address(),
        account: account.clone(),
        hosts: Hosts::new(settings.tls, shared.features.misdirected),
    };
    let _counted = shared.connections.count_one(Kind::Handshake);
    let connecting = if settings.early {
        let name = incoming.client_hello().server_name().map(str::to_owned);
        match incoming.accept().early().await {
            Ok(early) => {
                let (quic, handshake) = Quic::early(shared, client, early.clone(), name);
                tokio::spawn(serve(quic, app, served));
                let (connection, _) = early.complete().await?;
                handshake.complete(connection);
                return Ok(());
            }
            Err(connecting) => connecting,
        }
    } else {
        incoming.accept()
    };
    let connection = connecting.await?;
    account.prove();
    let quic = Quic::established_at_once(shared, client, connection.clone());
    // Boxed, because the task has room for it twice.
    connection.spawn(Box::pin(serve(quic, app, served)));
    Ok(())
}

/// Serves a connection.
async fn serve<A: App>(quic: Arc<Quic>, app: A, served: impl Send) {
    let watched: Weak<Quic> = Arc::downgrade(&quic);
    let watched: Weak<dyn Watched> = watched;
    let _seat = quic.shared.watch.add(watched);
    if quic.shared.has_reached(Phase::Leaving) {
        quic.standing.tell(Order::Drain, Cause::Shutdown);
    }
    let link = quic.link.clone();
    // A client that allows too few streams keeps this waiting.
    let opened = tokio::select! {
        biased;
        opened = link.open() => Some(opened),
        _ = quic.standing.told(Order::Drain) => None,
    };
    match opened {
        Some(Ok(())) => {
            let error = tokio::select! {
                biased;
                // First, so that settings count for the requests that come with them.
                error = link.drive() => Some(error),
                ended = requests(&quic, app) => ended.err(),
            };
            if let Some(error) = error.filter(|error| !matches!(error, StreamError::Closed)) {
                tracing::debug!(%error, "an HTTP/3 connection failed");
            }
            let server = quic.shared.endpoint.local_address();
            let (peer, entries) = (quic.standing.peer(), quic.link.inserted());
            let (sent, received) = (entries.local, entries.peer);
            tracing::debug!(%server, %peer, entries_sent = sent, entries_received = received, "an HTTP/3 connection is over");
            quic.close(Code::H3_NO_ERROR, b"");
        }
        Some(Err(error)) => tracing::debug!(%error, "an HTTP/3 connection did not start"),
        None => {
            let cause = quic.standing.cause();
            tracing::debug!(%cause, "an HTTP/3 connection did not start");
            quic.close(Code::H3_NO_ERROR, cause.to_string().as_bytes());
        }
    }
    drop(quic);
    drop(served);
}

/// Answers the requests of a connection until it ends.
async fn requests<A: App>(quic: &Arc<Quic>, app: A) -> Result<(), StreamError> {
    let mut intake = Intake {
        quic,
        requests: Requests::new(quic.link.clone()),
        answers: Answers::new(move |requests| request::answer(requests, app.clone())),
        next: StreamId(0),
    };
    let order = loop {
        tokio::select! {
            biased;
            order = quic.standing.told(Order::Drain) => break order,
            taken = intake.some() => taken?,
        }
    };
    // Boxed, because most connections do not come so far.
    if order == Order::Drain {
        Box::pin(drain(&mut intake)).await?;
    }
    Box::pin(finish(quic, intake.requests, intake.next)).await
}

/// Tells the client to send no more requests, and answers those that are on their way.
async fn drain(intake: &mut Intake<'_>) -> Result<(), StreamError> {
    let quic = intake.quic;
    quic.link.go_away(ALL)?;
    let mut pause = pin!(tokio::time::sleep(GOAWAY_PAUSE));
    loop {
        tokio::select! {
            biased;
            () = &mut pause => return Ok(()),
            _ = quic.standing.told(Order::Finish) => return Ok(()),
            taken = intake.some() => taken?,
        }
    }
}

/// Takes the requests of a connection, and starts their answers.
struct Intake<'q> {
    quic: &'q Arc<Quic>,
    requests: Requests,
    answers: Answers<(Running, Stream)>,
    /// The first stream whose request was not seen.
    next: StreamId,
}

impl Intake<'_> {
    /// Takes requests that have arrived, at least one. No request is lost if the future is dropped.
    async fn some(&mut self) -> Result<(), StreamError> {
        let mut request = self.requests.now()?;
        if request.is_none() {
            self.answers.rest();
            request = Some(self.requests.next().await?);
        }
        while let Some(arrived) = request {
            let is_last = self.take(arrived) != Admission::Serve;
            request = if is_last || self.answers.are_enough() {
                None
            } else {
                self.requests.now()?
            };
        }
        self.answers.pause().await;
        Ok(())
    }

    fn take(&mut self, request: Stream) -> Admission {
        self.next = self.next.max(StreamId(request.id().0 + 4));
        let admission = admit(self.quic);
        match admission {
            Admission::Refuse => refuse(self.quic, request),
            Admission::Serve | Admission::ServeLast => {
                self.answers
                    .start((Running::new(self.quic.clone()), request));
            }
        }
        admission
    }
}

/// Decides about a request. Requests before it that turned out to be malformed count as cancelled.
fn admit(quic: &Quic) -> Admission {
    for _ in 0..quic.link.take_broken() {
        quic.on_cancelled();
    }
    quic.admit()
}

/// Tells the client which requests are answered, refuses the others, and waits for the answers.
async fn finish(quic: &Quic, requests: Requests, next: StreamId) -> Result<(), StreamError> {
    let standing = &quic.standing;
    standing.tell(Order::Finish, standing.cause());
    quic.link.go_away(next)?;
    let over = async {
        quic.drained().await;
        // Leaves time for the client to learn that its last requests are refused.
        tokio::time::sleep(GOAWAY_PAUSE).await;
    };
    let ended = tokio::select! {
        error = refuse_all(quic, requests) => Err(error),
        _ = standing.told(Order::Close) => Ok(()),
        () = over => Ok(()),
        () = tokio::time::sleep(quic.shared.limits.drain_time) => Ok(()),
    };
    if matches!(standing.cause(), Cause::Cancelled | Cause::Deaf) {
        let reason = standing.cause().to_string();
        quic.close(Code::H3_EXCESSIVE_LOAD, reason.as_bytes());
    }
    ended
}

/// Refuses all requests, and counts them as late. Returns the end of the connection.
async fn refuse_all(quic: &Quic, mut requests: Requests) -> StreamError {
    loop {
        match requests.next().await {
            Ok(request) => {
                quic.admit();
                refuse(quic, request);
            }
            Err(error) => return error,
        }
    }
}

/// Refuses a request unprocessed: the client may send it again on another connection.
fn refuse(quic: &Quic, request: Stream) {
    let Arrived { mut send, mut recv } = request.into_request(&quic.link);
    send.reset(Code::H3_REQUEST_REJECTED);
    recv.stop(Code::H3_REQUEST_REJECTED);
}
