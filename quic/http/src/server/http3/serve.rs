//! Accepts and serves connections over QUIC.

use std::{
    future::poll_fn,
    pin::pin,
    sync::{Arc, Weak},
};

use h3::error::Code;
use hybriq::Incoming;
use hybriq_h3::Payload;

use super::{
    answers::Answers,
    connection::{DELIVERY_LOOK, Quic, Running},
    request,
};
use crate::server::{
    App,
    connections::{Account, Admission, Cause, Kind, Memory, Order, QUIC_CONNECTION, Watched},
    state::{GOAWAY_PAUSE, Phase, Shared},
};

/// Requests that the first GOAWAY still allows: all of them.
const ALL: usize = 1 << 40;

type Request = h3::server::RequestResolver<hybriq_h3::Connection, Payload>;
type H3 = h3::server::Connection<hybriq_h3::Connection, Payload>;

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

/// Performs the handshake, and serves the connection beside its worker.
async fn start<A: App>(
    shared: Arc<Shared>,
    incoming: Incoming,
    account: Arc<Account>,
    app: A,
    served: impl Send + 'static,
) -> Result<(), hybriq::ConnectError> {
    let peer = incoming.peer_address();
    let _counted = shared.connections.count_one(Kind::Handshake);
    let connecting = incoming.accept();
    let connecting = if shared.settings().early {
        match connecting.early().await {
            Ok(early) => {
                let mut transport = hybriq_h3::Connection::early(early.clone());
                let (quic, handshake) =
                    Quic::early(shared, account, peer, &mut transport, early.clone());
                tokio::spawn(serve(quic, transport, app, served));
                let (connection, _) = early.complete().await?;
                handshake.complete(connection);
                return Ok(());
            }
            Err(connecting) => connecting,
        }
    } else {
        connecting
    };
    let connection = connecting.await?;
    account.prove();
    let mut transport = hybriq_h3::Connection::new(connection.clone());
    let quic = Quic::established_at_once(shared, account, peer, &mut transport, connection.clone());
    connection.spawn(serve(quic, transport, app, served));
    Ok(())
}

/// Serves a connection.
async fn serve<A: App>(
    quic: Arc<Quic>,
    transport: hybriq_h3::Connection,
    app: A,
    served: impl Send,
) {
    let watched: Weak<Quic> = Arc::downgrade(&quic);
    let watched: Weak<dyn Watched> = watched;
    let _seat = quic.shared.watch.add(watched);
    if quic.shared.has_reached(Phase::Draining) {
        quic.standing.tell(Order::Drain, Cause::Shutdown);
    }
    let header_list = quic.shared.limits.most_fields();
    let transport = transport.max_frame(header_list);
    let transport = transport.field_section_limit(header_list);
    let mut builder = h3::server::builder();
    let builder = builder.max_field_section_size(header_list);
    // A client that allows too few streams keeps this waiting.
    let built = tokio::select! {
        biased;
        built = Box::pin(builder.build(transport)) => Some(built),
        _ = quic.standing.told(Order::Drain) => None,
    };
    match built {
        Some(Ok(mut connection)) => {
            if let Err(error) = requests(&quic, &mut connection, app).await {
                if !error.is_h3_no_error() {
                    tracing::debug!(%error, "an HTTP/3 connection failed");
                }
            }
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
async fn requests<A: App>(
    quic: &Arc<Quic>,
    connection: &mut H3,
    app: A,
) -> Result<(), h3::error::ConnectionError> {
    let mut answers = Answers::default();
    let mut take = async |request: Request| match admit(quic) {
        Admission::Refuse => refuse(quic, request),
        Admission::Serve | Admission::ServeLast => {
            let running = Running::new(quic.clone());
            answers.start(request::answer(running, request, app.clone()));
            answers.pause().await;
        }
    };
    let order = loop {
        let request = tokio::select! {
            biased;
            order = quic.standing.told(Order::Drain) => break order,
            request = connection.accept() => request?,
        };
        let Some(request) = request else {
            return Ok(());
        };
        take(request).await;
    };
    if order == Order::Drain {
        connection.shutdown(ALL).await?;
        // Requests that were on their way arrive in this time.
        let mut pause = pin!(tokio::time::sleep(GOAWAY_PAUSE));
        loop {
            let request = tokio::select! {
                biased;
                () = &mut pause => break,
                _ = quic.standing.told(Order::Finish) => break,
                request = late(connection) => request?,
            };
            take(request).await;
        }
    }
    finish(quic, connection).await
}

/// Decides about a request. Requests before it that turned out to be malformed count as cancelled.
fn admit(quic: &Quic) -> Admission {
    for _ in 0..quic.requests.take_broken() {
        quic.on_cancelled();
    }
    quic.admit()
}

/// Tells the client which requests are answered, refuses the others, and waits for the answers.
async fn finish(quic: &Quic, connection: &mut H3) -> Result<(), h3::error::ConnectionError> {
    let standing = &quic.standing;
    standing.tell(Order::Finish, standing.cause());
    // The number of the first request that is not answered (RFC 9114 §5.2).
    connection.shutdown(1).await?;
    let over = async {
        quic.drained().await;
        // Leaves time for the client to learn that its last requests are refused.
        tokio::time::sleep(GOAWAY_PAUSE).await;
    };
    let ended = tokio::select! {
        refused = refuse_all(quic, connection) => refused,
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

/// Refuses all requests, and counts them as late.
async fn refuse_all(quic: &Quic, connection: &mut H3) -> Result<(), h3::error::ConnectionError> {
    quic.requests.refuse_all(Code::H3_REQUEST_REJECTED.value());
    let mut counted = 0;
    loop {
        let mut late = pin!(late(connection));
        // `h3` returns only what it had before.
        let request = poll_fn(|cx| {
            let polled = late.as_mut().poll(cx);
            while counted < quic.requests.refused() {
                counted += 1;
                quic.admit();
            }
            polled
        });
        let request = request.await?;
        quic.admit();
        refuse(quic, request);
    }
}

/// Returns the next request of a connection that was told to end. `h3` reports that there is none as soon as none is
/// in progress, but some may still be on their way.
async fn late(connection: &mut H3) -> Result<Request, h3::error::ConnectionError> {
    loop {
        if let Some(request) = connection.accept().await? {
            return Ok(request);
        }
        tokio::time::sleep(DELIVERY_LOOK).await;
    }
}

/// Refuses a request unprocessed: the client may send it again on another connection.
fn refuse(quic: &Quic, request: Request) {
    let code = Code::H3_REQUEST_REJECTED.value();
    quic.requests.refuse(request, code);
}
