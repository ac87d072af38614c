//! Accepts and serves connections over TCP.

use std::{
    io,
    pin::{Pin, pin},
    sync::{Arc, Weak},
    time::Duration,
};

use http::{HeaderValue, Request, Response, StatusCode, Version, header::CONNECTION};
use hybriq::tls::rustls::TcpServer;
use hyper_util::{
    rt::{TokioIo, TokioTimer},
    server::conn::auto,
};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::{
    LazyConfigAcceptor,
    rustls::{ServerConnection, server::Acceptor},
    server::TlsStream,
};

use super::{
    activity::{Activity, Answering, LEAST_BUFFER, Over},
    answer::{Beside, answer, status_alone},
    body::Fault,
    http2::observe,
    responses::Sending,
    streams::{Heads, Lender, Lingering, Place, lend},
};
use crate::{
    Body, Limits, Peer, Tls,
    limits::Patience,
    server::{
        App, BoxError,
        connections::{
            Account, Addresses, Admission, Cause, HTTP2_CONNECTION, Hosts, Kind, LATE, Order,
            ProxyError, ProxyProtocol,
        },
        fields,
        state::{Connect, Features, GOAWAY_PAUSE, Hints, Phase, Shared},
    },
    upgrade::Rest,
    versions::http2::inflow::{self, Incoming},
};

/// Time to wait after the system could not accept a connection, usually for lack of file descriptors.
const PAUSE: Duration = Duration::from_millis(50);

/// Bounds of the keep-alive time that systems accept: Linux has 15 bits for the seconds.
const KEEP_ALIVE: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(0x7fff));

/// Longest time to wait for the answer to a PING, in addition to [`Limits::stall_time`].
const PING_TIME: Duration = Duration::from_secs(20);

/// Largest number of concurrent requests on an HTTP/2 connection.
pub(crate) const STREAMS: u32 = 100;

/// Bytes that an HTTP/2 client may send on a stream before they are read: all that the connection allows.
const STREAM_WINDOW: u32 = inflow::WINDOW;

/// Bytes of a response that HTTP/2 buffers beyond the client's credit.
pub(crate) const SEND_BUFFER: usize = 400 << 10;

/// Most bytes of responses that HTTP/2 sends before a waiting reset: each stream has its turn.
const ROUND: u64 = STREAMS as u64 * SEND_BUFFER as u64;

/// Bytes of TLS records that wait for room in the socket.
pub(crate) const TLS_BUFFER: usize = 64 << 10;

/// Largest HTTP/2 frame that clients may send.
const FRAME: u32 = 16 << 10;

/// Accepts connections until the server shuts down.
pub(crate) async fn accept<A: App>(shared: &Arc<Shared>, listener: &TcpListener, app: &A) {
    loop {
        let stream = tokio::select! {
            () = shared.phase(Phase::Leaving) => return,
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => stream,
                Err(error) => {
                    tracing::warn!(%error, "cannot accept a TCP connection");
                    tokio::time::sleep(PAUSE).await;
                    continue;
                }
            },
        };
        if shared.watch.memory.is_short() {
            if shared.watch.may_log() {
                tracing::warn!(
                    "refusing TCP connections: the memory budget is exhausted; raise Limits::memory"
                );
            }
            continue;
        }
        let Ok(permit) = shared.places.clone().try_acquire_owned() else {
            // The system resets it.
            drop(stream);
            if shared.watch.may_log() {
                let most = shared.limits.tcp_connections;
                tracing::warn!(
                    most,
                    "refusing TCP connections: their limit is reached; raise \
                     Limits::tcp_connections, or lower Limits::idle_time"
                );
            }
            continue;
        };
        let arriving = Account::open(&shared.watch.memory, HTTP2_CONNECTION);
        let served = Arc::new(shared.connections.add(Kind::Tcp));
        let (shared, app) = (shared.clone(), app.clone());
        tokio::spawn(async move {
            let place = Place {
                shared: shared.clone(),
                served: served.clone(),
                permit,
            };
            tokio::select! {
                ended = serve(&shared, stream, arriving, app, place) => if let Err(error) = ended {
                    tracing::debug!(%error, "a TCP connection failed");
                },
                // Whatever is in progress, and whoever holds the stream.
                () = shared.phase(Phase::Closing) => {}
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
    mut stream: TcpStream,
    arriving: Arc<Account>,
    app: A,
    place: Place,
) -> Result<(), BoxError> {
    stream.set_nodelay(true)?;
    if let Err(error) = keep_alive(&stream, silence(&shared.limits, shared.features)) {
        tracing::debug!(%error, "cannot set keep-alive on a TCP connection");
    }
    let addresses = named(shared, &mut stream).await?;
    let limits = &shared.limits;
    let settings = shared.settings();
    let handshake = handshake(shared, &settings.tls, stream);
    let stream = tokio::time::timeout(limits.header_time, handshake).await??;
    let hosts = Hosts::new(settings.tls, shared.features.misdirected);
    let tls = Arc::new(Tls::of_tcp(stream.get_ref().1));
    let is_h2 = stream.get_ref().1.alpn_protocol() == Some(b"h2");
    let version = if is_h2 { Over::Http2 } else { Over::Http1 };
    let activity = Activity::new(addresses.client, version, limits, &shared.watch);
    // It has an account of its own now.
    drop(arriving);
    let watched: Weak<Activity> = Arc::downgrade(&activity);
    let _seat = shared.watch.add(watched);
    if is_h2 && shared.has_reached(Phase::Leaving) {
        activity.standing.tell(Order::Drain, Cause::Shutdown);
    }
    // Over HTTP/1.1, that of the request in progress.
    let line = Patience::new(limits.stall_time);
    let service = hyper::service::service_fn(|request: Request<hyper::body::Incoming>| {
        let admission = match activity.admit() {
            Admission::Serve if shared.has_reached(Phase::Leaving) => Admission::ServeLast,
            admission => admission,
        };
        let is_short = shared.watch.memory.is_short();
        // Over HTTP/1.1, hyper bounds all fields together, at 8 KiB or more.
        let is_large = version == Over::Http1 && fields::size(&request) > limits.most_fields();
        let names_one_host = fields::names_one_host(&request);
        let is_misdirected = names_one_host && !hosts.serve(&request, &tls);
        let answering = activity.on_request(fields::memory(&request));
        let peer = Peer {
            address: addresses.client,
            local_address: addresses.server,
            version: request.version(),
            tls: tls.clone(),
            early: false,
        };
        let patience = patience(&request, &line, limits.stall_time);
        let mut request = request.map(|body| {
            let body = Incoming::new(body, activity.inflow());
            Body::of_tcp_request(body, patience.clone())
        });
        if version == Over::Http2 {
            fields::join_cookies(request.headers_mut());
        }
        let hints = shared.features.interim;
        let has_hints = hints == Hints::Sent && request.version() == Version::HTTP_11;
        let beside = Beside {
            peer,
            alt_svc: shared.alt_svc.clone(),
            hints,
            connect: shared.features.connect,
            head: has_hints.then(|| activity.head().clone()),
            patience,
            stall_time: limits.stall_time,
        };
        let app = app.clone();
        async move {
            match admission {
                Admission::Refuse => Err(refused(answering)),
                _ if is_short => Ok(status_alone(StatusCode::SERVICE_UNAVAILABLE, answering)),
                _ if is_large => {
                    let status = StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE;
                    Ok(status_alone(status, answering))
                }
                _ if !names_one_host => Ok(status_alone(StatusCode::BAD_REQUEST, answering)),
                _ if is_misdirected => Ok(status_alone(StatusCode::MISDIRECTED_REQUEST, answering)),
                _ => answer(app, request, beside, answering)
                    .await
                    .map(|response| last(response, admission, version))
                    .map_err(Fault::Service),
            }
        }
    });
    let builder = builder(limits, version, &activity, shared.features);
    let (stream, lender) = lend(Lingering::new(stream, place, line.clone()));
    let observer = activity.is_http2().then(|| activity.clone());
    let head = (!activity.is_http2()).then(|| activity.head().clone());
    let stream = Heads::new(observe(stream, observer, ROUND), head);
    let stream = TokioIo::new(stream);
    let connection = builder.serve_connection_with_upgrades(stream, service);
    let drain =
        |connection: Pin<&mut _>| auto::UpgradeableConnection::graceful_shutdown(connection);
    activity.watch_line(lender.line());
    run(shared, connection, drain, &activity, &lender).await?;
    activity.leave_line();
    // After an HTTP/1.1 upgrade, the service has the stream.
    let _tunnel = (
        shared.connections.count_one(Kind::Tunnel),
        activity.on_tunnel(),
    );
    tokio::select! {
        () = lender.returned() => Ok(()),
        _ = activity.standing.told(Order::Close) => Err(activity.standing.cause().into()),
    }
}

/// Returns the patience of a request: over HTTP/1.1 that of its connection, and over HTTP/2 its own if it has a
/// body.
fn patience(
    request: &Request<hyper::body::Incoming>,
    line: &Arc<Patience>,
    stall_time: Duration,
) -> Option<Arc<Patience>> {
    if request.version() == Version::HTTP_2 {
        let is_empty = hyper::body::Body::is_end_stream(request.body());
        return (!is_empty).then(|| Patience::new(stall_time));
    }
    line.set(Some(stall_time));
    Some(line.clone())
}

/// Runs a connection until hyper has finished with it. `drain` ends it after the requests in progress.
async fn run<C: Future<Output = Result<(), BoxError>>>(
    shared: &Shared,
    connection: C,
    drain: impl Fn(Pin<&mut C>),
    activity: &Activity,
    lender: &Lender<Lingering>,
) -> Result<(), BoxError> {
    let limits = &shared.limits;
    let mut connection = pin!(connection);
    let standing = &activity.standing;
    let order = tokio::select! {
        ended = connection.as_mut() => return ended,
        order = standing.told(Order::Drain) => order,
        () = shared.phase(Phase::Draining) => Order::Drain,
    };
    if order == Order::Close || standing.cause() == Cause::Silent {
        return Err(standing.cause().into());
    }
    drain(connection.as_mut());
    let over = async {
        activity.drained(GOAWAY_PAUSE).await;
        if standing.cause() == Cause::Memory && !lender.has_unsent() {
            // What it holds is needed elsewhere, and nothing is lost.
            lender.finish();
            return;
        }
        // A client that is gone does not answer.
        tokio::time::sleep(limits.header_time).await;
    };
    let is_bounded = activity.is_http2() || standing.cause() == Cause::Memory;
    tokio::select! {
        ended = connection => ended,
        _ = standing.told(Order::Close) => Err(standing.cause().into()),
        () = over, if is_bounded => Ok(()),
        () = tokio::time::sleep(limits.drain_time) => Ok(()),
    }
}

/// Returns the settings of a connection, which include all bounds on memory.
fn builder(
    limits: &Limits,
    version: Over,
    activity: &Arc<Activity>,
    features: Features,
) -> auto::Builder<Tasks> {
    // The version is known. Detecting it from the first bytes would wait for them without a limit.
    let builder = auto::Builder::new(Tasks(activity.clone()));
    let mut builder = match version {
        Over::Http2 => builder.http2_only(),
        Over::Http1 => builder.http1_only(),
    };
    builder
        .http1()
        .timer(TokioTimer::new())
        .header_read_timeout(limits.header_time)
        .max_buf_size((limits.most_fields() as usize).max(LEAST_BUFFER));
    builder
        .http2()
        .timer(TokioTimer::new())
        .max_header_list_size(limits.most_fields() as u32)
        .max_concurrent_streams(STREAMS)
        .max_pending_accept_reset_streams(limits.cancelled as usize + LATE as usize)
        // Honest clients cause many such resets, with frames for streams that have just ended. `observe` counts those
        // that are the client's fault, and bounds those that wait.
        .max_local_error_reset_streams(None)
        .initial_stream_window_size(STREAM_WINDOW)
        .initial_connection_window_size(inflow::WINDOW)
        .max_send_buf_size(SEND_BUFFER)
        .max_frame_size(FRAME)
        .keep_alive_interval(silence(limits, features))
        .keep_alive_timeout(limits.stall_time.min(PING_TIME));
    if features.connect >= Connect::Extended {
        builder.http2().enable_connect_protocol();
    }
    builder
}

/// Returns the silence after which a client is asked whether it is there.
fn silence(limits: &Limits, features: Features) -> Duration {
    let silence = features.keep_alive.unwrap_or(limits.stall_time);
    silence.min(limits.stall_time)
}

/// Starts the tasks of a connection over HTTP/2.
#[derive(Clone)]
struct Tasks(Arc<Activity>);

impl<F> hyper::rt::Executor<F> for Tasks
where
    F: Future<Output: Send> + Send + 'static,
{
    fn execute(&self, future: F) {
        match Rest::agreed() {
            Some(rest) => {
                let activity = self.0.clone();
                tokio::spawn(async move { activity.send_rest(rest, future).await });
            }
            None => {
                tokio::spawn(Sending::new(future, self.0.on_task()));
            }
        }
    }
}

/// Returns the error of a request that is refused unprocessed, so that the client may try elsewhere.
fn refused(mut answering: Answering) -> Fault {
    answering.on_over();
    Fault::Refused(h2::Reason::REFUSED_STREAM.into())
}

/// Tells an HTTP/1.1 client that this was the last response of its connection, unless another protocol follows.
fn last<B>(mut response: Response<B>, admission: Admission, version: Over) -> Response<B> {
    let is_upgrade = response.status() == StatusCode::SWITCHING_PROTOCOLS;
    if admission == Admission::ServeLast && version == Over::Http1 && !is_upgrade {
        let close = HeaderValue::from_static("close");
        response.headers_mut().insert(CONNECTION, close);
    }
    response
}

/// Lets the system detect clients that are gone while nothing is sent.
fn keep_alive(stream: &TcpStream, time: Duration) -> io::Result<()> {
    let time = time.clamp(KEEP_ALIVE.0, KEEP_ALIVE.1);
    let keep_alive = socket2::TcpKeepalive::new().with_time(time);
    // Not every system lets programs set more than the first wait.
    #[cfg(any(
        target_os = "linux",
        target_os = "android",
        target_vendor = "apple",
        windows
    ))]
    let keep_alive = keep_alive.with_interval((time / 4).max(KEEP_ALIVE.0));
    socket2::SockRef::from(stream).set_tcp_keepalive(&keep_alive)
}

/// Returns the addresses of the client and of the server, which a proxy in front of the listener may name.
async fn named(shared: &Shared, stream: &mut TcpStream) -> Result<Addresses, BoxError> {
    let socket = Addresses {
        client: stream.peer_addr()?,
        server: stream.local_addr()?,
    };
    let peer = socket.client;
    let is_of = |port| port == socket.server.port();
    let is_here = |proxies: &&ProxyProtocol| proxies.port().is_none_or(is_of);
    let Some(proxies) = shared.proxies.iter().find(is_here) else {
        return Ok(socket);
    };
    let read = tokio::time::timeout(shared.limits.header_time, proxies.read(peer, stream));
    let read = tokio::select! {
        biased;
        read = read => read.unwrap_or(Err(ProxyError::Late)),
        () = shared.phase(Phase::Draining) => return Err(Cause::Shutdown.into()),
    };
    match read {
        Ok(named) => Ok(named.unwrap_or(socket)),
        Err(error) => {
            if shared.watch.may_log() {
                tracing::warn!(%peer, %error, "closing a TCP connection");
            }
            Err(error.into())
        }
    }
}

/// Performs the TLS handshake, with the configuration for the client's name and groups.
async fn handshake(
    shared: &Shared,
    tls: &TcpServer,
    stream: TcpStream,
) -> io::Result<TlsStream<TcpStream>> {
    let _counted = shared.connections.count_one(Kind::Handshake);
    let start = tokio::select! {
        biased;
        start = LazyConfigAcceptor::new(Acceptor::default(), stream) => start?,
        // A client that has said nothing loses nothing.
        () = shared.phase(Phase::Draining) => return Err(io::ErrorKind::ConnectionAborted.into()),
    };
    let config = tls.config(&start.client_hello());
    let config = config.ok_or_else(|| io::Error::other("the key exchange policy has no groups"))?;
    let limit = |session: &mut ServerConnection| session.set_buffer_limit(Some(TLS_BUFFER));
    start.into_stream_with(config, limit).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_system_takes_any_time_for_keep_alive() -> io::Result<()> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let stream = TcpStream::connect(listener.local_addr()?).await?;
        for time in [Duration::ZERO, Duration::from_secs(40_000), Duration::MAX] {
            keep_alive(&stream, time)?;
        }
        Ok(())
    }
}
