//! Requests over HTTP/2 and HTTP/1.1.

use std::{
    error::Error,
    io,
    net::SocketAddr,
    pin::{Pin, pin},
    sync::Arc,
    time::Duration,
};

use http::{HeaderValue, Request, Response, Uri, Version, header, request::Parts};
use hyper::{
    body::Incoming,
    client::conn::{TrySendError, http1, http2},
    rt::Executor,
};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::{
    net::TcpStream,
    sync::{oneshot, watch},
};
use tokio_rustls::{TlsConnector, client::TlsStream, rustls::pki_types::ServerName};

use super::{
    error::ClientError,
    failure::{Failure, Repeat},
    interim,
    origin::Origin,
    outgoing::Sending,
};
use crate::{
    Body, Peer, Tls,
    usage::{Ending, Exchange, Idle, Usage},
};

/// Time after which a silent HTTP/2 connection with requests is asked for a sign of life, and time in which
/// it must answer.
const PING_INTERVAL: Duration = Duration::from_secs(10);
const PING_TIME: Duration = Duration::from_secs(20);

/// Longest time that a connection of HTTP/2 may take to close.
const CLOSE_TIME: Duration = Duration::from_secs(1);

/// Application protocols over TCP, first choice first.
pub(super) const ALPN: [&str; 2] = ["h2", "http/1.1"];

/// Settings of connections.
pub(super) struct Settings {
    pub(super) tls: TlsConnector,
    pub(super) header_list: u64,
    pub(super) idle_time: Duration,
    pub(super) idle: Arc<Idle>,
}

/// A connection.
pub(super) enum Connection {
    Http1(Http1),
    Http2(Http2),
}

impl Connection {
    pub(super) fn usage(&self) -> &Usage {
        match self {
            Self::Http1(http1) => http1.usage(),
            Self::Http2(http2) => http2.usage(),
        }
    }
}

/// A connection of HTTP/2. Clones share it.
#[derive(Clone)]
pub(super) struct Http2 {
    sender: http2::SendRequest<Sending>,
    facts: Arc<Facts>,
}

/// A connection of HTTP/1.1, for one request at a time.
pub(super) struct Http1 {
    sender: http1::SendRequest<Sending>,
    facts: Arc<Facts>,
}

/// Facts about a connection.
struct Facts {
    server: Origin,
    address: SocketAddr,
    local_address: SocketAddr,
    tls: Arc<Tls>,
    usage: Arc<Usage>,
}

/// Task of a connection, which ends with it.
type Task = Pin<Box<dyn Future<Output = ()> + Send>>;

/// Connects to an address, and returns the connection with its task.
pub(super) async fn connect(
    settings: &Settings,
    server: &Origin,
    address: SocketAddr,
) -> io::Result<(Connection, Task)> {
    let name = ServerName::try_from(server.host().to_owned()).map_err(io::Error::other)?;
    let stream = TcpStream::connect(address).await?;
    stream.set_nodelay(true)?;
    let local_address = stream.local_addr()?;
    let stream = settings.tls.connect(name, stream).await?;
    let tls = stream.get_ref().1;
    let is_http2 = tls.alpn_protocol() == Some(b"h2");
    let facts = Arc::new(Facts {
        server: server.clone(),
        address,
        local_address,
        tls: Arc::new(Tls::of_server(tls, server.host())),
        usage: Usage::new(settings.idle.clone()),
    });
    let connection = if is_http2 {
        http2(settings, stream, facts).await
    } else {
        http1(settings, stream, facts).await
    };
    connection.map_err(io::Error::other)
}

async fn http2(
    settings: &Settings,
    stream: TlsStream<TcpStream>,
    facts: Arc<Facts>,
) -> hyper::Result<(Connection, Task)> {
    let (open, tasks) = watch::channel(());
    let mut builder = http2::Builder::new(Tasks(tasks));
    builder
        .timer(TokioTimer::new())
        .keep_alive_interval(PING_INTERVAL)
        .keep_alive_timeout(PING_TIME)
        // h2 counts late frames of cancelled streams too, over the life of the connection: a bound would end it
        // after a thousand. Resets cost a client as little as the frames that they answer.
        .max_local_error_reset_streams(None)
        .max_header_list_size(settings.header_list.try_into().unwrap_or(u32::MAX));
    let stream = interim::Followed::new(stream, facts.usage.clone());
    let (sender, connection) = builder.handshake(TokioIo::new(stream)).await?;
    let task = drive(connection, facts.usage.clone(), settings.idle_time);
    let usage = facts.usage.clone();
    let task = async move {
        task.await;
        // hyper is through with requests that use it no more, but may still send a body, or the end.
        usage.over(Duration::ZERO).await;
        let _ = tokio::time::timeout(CLOSE_TIME, open.closed()).await;
    };
    Ok((Connection::Http2(Http2 { sender, facts }), Box::pin(task)))
}

/// Runs the tasks of a connection of HTTP/2, until the sender of this is dropped.
#[derive(Clone)]
struct Tasks(watch::Receiver<()>);

impl<F: Future<Output: Send> + Send + 'static> Executor<F> for Tasks {
    fn execute(&self, task: F) {
        let mut open = self.0.clone();
        tokio::spawn(async move {
            tokio::select! {
                _ = task => {}
                _ = open.changed() => {}
            }
        });
    }
}

async fn http1(
    settings: &Settings,
    stream: TlsStream<TcpStream>,
    facts: Arc<Facts>,
) -> hyper::Result<(Connection, Task)> {
    let mut builder = http1::Builder::new();
    builder.max_buf_size((settings.header_list as usize).max(8 << 10));
    let (sender, connection) = builder.handshake(TokioIo::new(stream)).await?;
    let task = drive(connection, facts.usage.clone(), settings.idle_time);
    Ok((Connection::Http1(Http1 { sender, facts }), Box::pin(task)))
}

/// Runs a connection until it ends, or is not used any more.
async fn drive(
    connection: impl Future<Output = hyper::Result<()>>,
    usage: Arc<Usage>,
    idle: Duration,
) {
    let usage = Ending(usage);
    tokio::select! {
        ended = connection => if let Err(error) = ended {
            tracing::debug!(%error, "a connection over TCP failed");
        },
        () = usage.0.over(idle) => {}
    }
}

impl Http2 {
    /// Begins a request. Returns `None` if the connection takes no more.
    pub(super) fn begin(&self) -> Option<Exchange> {
        self.facts
            .usage
            .begin()
            .filter(|_| !self.sender.is_closed())
    }

    pub(super) fn usage(&self) -> &Usage {
        &self.facts.usage
    }

    /// Sends a request and returns the response.
    pub(super) async fn send(
        mut self,
        mut exchange: Exchange,
        request: &Parts,
        body: Sending,
    ) -> Result<Response<Body>, Failure> {
        let upload = body.upload();
        let mut head = head(request, Version::HTTP_2, request.uri.clone());
        // The authority says it.
        head.headers_mut().remove(header::HOST);
        let sent = self.sender.try_send_request(head.map(|()| body)).await;
        let response = sent.map_err(|error| {
            let failure = self.facts.failure(error);
            if failure.repeat == Repeat::Any {
                // The server takes no more.
                self.facts.usage.end();
            }
            failure
        })?;
        let response = self.facts.with_peer(response);
        if let Some(upload) = upload.filter(super::outgoing::Upload::is_under_way) {
            // The connection goes on with it when the response is dropped.
            exchange.upload(move || upload.end());
        }
        Ok(response.map(|body| Body::answered(body, exchange)))
    }
}

impl Http1 {
    /// Begins a request. Returns `None` if the connection takes no more.
    pub(super) fn begin(&self) -> Option<Exchange> {
        self.facts
            .usage
            .begin()
            .filter(|_| !self.sender.is_closed())
    }

    pub(super) fn usage(&self) -> &Usage {
        &self.facts.usage
    }

    /// Sends a request and returns the response. Calls `free` with the connection when it can take the next
    /// request.
    pub(super) async fn send(
        mut self,
        exchange: Exchange,
        request: &Parts,
        body: Sending,
        free: impl FnOnce(Self) + Send + 'static,
    ) -> Result<Response<Body>, Failure> {
        let path = request.uri.path_and_query();
        let path = path.map_or(Uri::default(), |path| Uri::from(path.clone()));
        let mut head = head(request, Version::HTTP_11, path);
        let authority = request.uri.authority();
        let host = authority.and_then(|host| HeaderValue::from_str(host.as_str()).ok());
        if let (Some(host), false) = (host, head.headers().contains_key(header::HOST)) {
            head.headers_mut().insert(header::HOST, host);
        }
        let mut head = head.map(|()| body);
        let too_many = interim::too_many(&mut head);
        let sent = tokio::select! {
            biased;
            // Without its request, the connection ends.
            () = too_many => return Err(Failure::interim(self.facts.server.to_string())),
            sent = self.sender.try_send_request(head) => sent,
        };
        let response = sent.map_err(|error| self.facts.failure(error))?;
        let response = self.facts.with_peer(response);
        let (end, ended) = oneshot::channel();
        tokio::spawn(async move {
            let ready = {
                let mut ready = pin!(self.sender.ready());
                tokio::select! {
                    biased;
                    ready = &mut ready => {
                        drop(exchange);
                        ready
                    }
                    // The rest of the request is still sent, until the connection has been idle for too long.
                    _ = ended => {
                        drop(exchange);
                        ready.await
                    }
                }
            };
            // An error ends the connection.
            if ready.is_ok() {
                free(self);
            }
        });
        Ok(response.map(|body| Body::of_http1(body, end)))
    }
}

impl Facts {
    fn with_peer(&self, mut response: Response<Incoming>) -> Response<Incoming> {
        let peer = Peer {
            address: self.address,
            local_address: self.local_address,
            version: response.version(),
            tls: self.tls.clone(),
            early: false,
        };
        response.extensions_mut().insert(peer);
        response
    }

    fn failure(&self, mut error: TrySendError<Request<Sending>>) -> Failure {
        let unsent = error.take_message().is_some();
        let error = error.into_error();
        let reason = error
            .source()
            .and_then(|source| source.downcast_ref::<h2::Error>());
        if reason.is_some_and(interim::is_too_many) {
            return Failure::interim(self.server.to_string());
        }
        let refused = reason.is_some_and(|reason| {
            let is_over = reason.is_go_away() && reason.is_remote();
            reason.reason() == Some(h2::Reason::REFUSED_STREAM)
                || is_over && reason.reason() == Some(h2::Reason::NO_ERROR)
        });
        let repeat = if unsent || refused {
            Repeat::Any
        } else if error.is_user() || error.is_parse() {
            Repeat::Never
        } else {
            Repeat::Idempotent
        };
        let source: Arc<dyn Error + Send + Sync> = Arc::new(error);
        let error = if source
            .downcast_ref::<hyper::Error>()
            .is_some_and(hyper::Error::is_user)
        {
            ClientError::Body(source)
        } else {
            let server = self.server.to_string();
            ClientError::Lost { server, source }
        };
        Failure::new(error, repeat)
    }
}

/// Returns the head of a request.
fn head(request: &Parts, version: Version, uri: Uri) -> Request<()> {
    let mut head = Request::new(());
    *head.method_mut() = request.method.clone();
    *head.uri_mut() = uri;
    *head.version_mut() = version;
    head.headers_mut().clone_from(&request.headers);
    head
}
