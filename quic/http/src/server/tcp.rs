//! HTTP/1.1 and HTTP/2 over TCP.

use std::{io, sync::Arc, time::Duration};

use http::{
    HeaderValue, Request, Response,
    header::{ALT_SVC, UPGRADE},
};
use hyper_util::{
    rt::{TokioExecutor, TokioIo, TokioTimer},
    server::conn::auto,
};
use tokio::{
    net::{TcpListener, TcpStream},
    sync::Semaphore,
};
use tokio_rustls::{LazyConfigAcceptor, rustls::server::Acceptor, server::TlsStream};

use super::{
    Connect,
    activity::{Activity, Answering, Counted},
    app::{App, BoxError},
    handle::{Phase, Shared},
    linger::{Lingering, Place},
};
use crate::{Body, Peer, Tls, Upgrade};

/// Time to wait after the system could not accept a connection, usually for want of descriptors.
const PAUSE: Duration = Duration::from_millis(50);

/// Accepts connections until the server shuts down.
pub(super) async fn accept<A: App>(shared: &Arc<Shared>, listener: &TcpListener, app: &A) {
    let most = shared.limits.tcp_connections;
    let places = Arc::new(Semaphore::new(most.min(Semaphore::MAX_PERMITS)));
    loop {
        let stream = tokio::select! {
            () = shared.phase(Phase::Draining) => return,
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => stream,
                Err(error) => {
                    tracing::warn!(%error, "cannot accept a connection over TCP");
                    tokio::time::sleep(PAUSE).await;
                    continue;
                }
            },
        };
        let Ok(permit) = places.clone().try_acquire_owned() else {
            // The system resets it.
            drop(stream);
            continue;
        };
        let served = Arc::new(shared.connections.add());
        let (shared, app) = (shared.clone(), app.clone());
        tokio::spawn(async move {
            let place = Place {
                served: served.clone(),
                permit,
            };
            if let Err(error) = serve(&shared, stream, app, place).await {
                tracing::debug!(%error, "a connection over TCP failed");
            }
            // A caller that waits for the last connection may need the port.
            drop(shared);
            drop(served);
        });
    }
}

/// Serves a connection.
async fn serve<A: App>(
    shared: &Arc<Shared>,
    stream: TcpStream,
    app: A,
    place: Place,
) -> Result<(), BoxError> {
    stream.set_nodelay(true)?;
    let (address, local_address) = (stream.peer_addr()?, stream.local_addr()?);
    let limits = &shared.limits;
    let stream = tokio::time::timeout(limits.header_time, handshake(shared, stream)).await??;
    let tls = Arc::new(Tls::of_tcp(stream.get_ref().1));
    let is_h2 = stream.get_ref().1.alpn_protocol() == Some(b"h2");
    let activity = Arc::new(Activity::default());
    let service = hyper::service::service_fn(|request: Request<hyper::body::Incoming>| {
        let answering = activity.on_request();
        let peer = Peer {
            address,
            local_address,
            version: request.version(),
            tls: tls.clone(),
            early: false,
        };
        let alt_svc = shared.alt_svc.clone();
        let request = request.map(|body| Body::of_tcp_request(body, limits.stall_time));
        answer(app.clone(), request, peer, alt_svc, answering)
    });
    // The version is known: looking for it in the first bytes would wait for them without a limit.
    let builder = auto::Builder::new(TokioExecutor::new());
    let mut builder = if is_h2 {
        builder.http2_only()
    } else {
        builder.http1_only()
    };
    builder
        .http1()
        .timer(TokioTimer::new())
        .header_read_timeout(limits.header_time)
        .max_buf_size((limits.most_fields() as usize).max(8 << 10));
    builder
        .http2()
        .timer(TokioTimer::new())
        .max_header_list_size(limits.most_fields() as u32);
    if shared.features.connect == Connect::Extended {
        builder.http2().enable_connect_protocol();
    }
    let stream = TokioIo::new(Lingering::new(
        stream,
        place,
        activity.clone(),
        limits.stall_time,
    ));
    let connection = builder.serve_connection_with_upgrades(stream, service);
    tokio::pin!(connection);
    let silent = async {
        tokio::time::sleep(limits.header_time).await;
        if !activity.is_silent() {
            std::future::pending::<()>().await;
        }
    };
    tokio::select! {
        ended = connection.as_mut() => return ended,
        () = silent => return Err("no request came in time".into()),
        () = activity.idle(limits.tcp_idle_time) => {
            connection.as_mut().graceful_shutdown();
            // A client that is gone does not answer.
            return tokio::time::timeout(limits.header_time, connection).await?;
        }
        () = shared.phase(Phase::Draining) => connection.as_mut().graceful_shutdown(),
    }
    tokio::select! {
        ended = connection => ended,
        () = shared.phase(Phase::Closing) => Ok(()),
    }
}

/// Does the TLS handshake, with the configuration for the client's name and groups.
async fn handshake(shared: &Shared, stream: TcpStream) -> io::Result<TlsStream<TcpStream>> {
    let settings = shared.settings();
    let start = LazyConfigAcceptor::new(Acceptor::default(), stream).await?;
    let config = settings.tls.config(&start.client_hello());
    let config =
        config.ok_or_else(|| io::Error::other("the policy of key exchange has no group"))?;
    start.into_stream(config).await
}

/// Answers a request, and tells the client about HTTP/3.
async fn answer<A: App>(
    app: A,
    mut request: Request<Body>,
    peer: Peer,
    alt_svc: Option<HeaderValue>,
    answering: Answering,
) -> Result<Response<Counted<A::Body>>, BoxError> {
    request.extensions_mut().insert(peer);
    if let Some(upgrade) = upgrade(&request) {
        request.extensions_mut().insert(upgrade);
    }
    let mut response = app.answer(request).await?;
    if let Some(alt_svc) = alt_svc {
        response.headers_mut().entry(ALT_SVC).or_insert(alt_svc);
    }
    Ok(response.map(|body| Counted::new(body, answering)))
}

/// Returns what a request asks to upgrade to, by `upgrade` (RFC 9110 §7.8) or extended CONNECT (RFC 8441).
fn upgrade(request: &Request<Body>) -> Option<Upgrade> {
    let pending = request.extensions().get::<hyper::upgrade::OnUpgrade>()?;
    let protocol = match request.extensions().get::<hyper::ext::Protocol>() {
        Some(protocol) => protocol.as_str(),
        None => request.headers().get(UPGRADE)?.to_str().ok()?,
    };
    Some(Upgrade::over_tcp(protocol, pending.clone()))
}
