//! HTTP/3 over hybriq: the server of hybriq-http, and clients on the core of hybriq-h3.

use std::net::SocketAddr;
use std::rc::Rc;
use std::task::{Context, Poll};

use futures_util::future::BoxFuture;
use http::{Request, Response};
use http_body_util::BodyExt as _;
use hybriq::{EndpointBuilder, ServerConfig};
use hybriq_http::{Body, BodyError, Handle, Server};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::sync::oneshot;
use tokio::task::spawn_local;
use tower_service::Service;

use super::connection::{Opened, failed_to_connect};
use super::http3::Client;
use super::traffic;
use crate::drivers::http::body::Pattern;
use crate::drivers::http::{Come, Http, asked, not_found};
use crate::drivers::{Accepting, Answer, Connection, Listener, Traffic};
use crate::system::failure::Failure;
use crate::system::outcome::Failed;

/// Makes a connection that carries HTTP/3.
pub(super) async fn connect(connecting: hybriq::Connecting) -> Result<Rc<dyn Connection>, Failed> {
    let connection = connecting.await.map_err(failed_to_connect)?;
    let requests = Client::start(connection.clone()).await?;
    Ok(Http::over(
        Rc::new(Opened::established(connection)),
        requests,
    ))
}

/// Starts a server of hybriq-http, without its part over TCP.
pub(super) fn listen(
    endpoint: EndpointBuilder,
    address: SocketAddr,
    config: ServerConfig,
) -> Result<Box<dyn Listener>, Failure> {
    let server = Server::builder().without_tcp().endpoint(endpoint);
    let server = server.bind(address, config)?;
    let handle = server.handle();
    let (begin, begun) = unbounded_channel();
    let of = Of::Server(begin);
    spawn_local(server.serve(Answers { of }));
    Ok(Box::new(Served { handle, begun }))
}

/// The service. The server makes a clone of it for each connection, and of that one for each request.
struct Answers {
    of: Of,
}

enum Of {
    /// The server, which reports connections.
    Server(UnboundedSender<oneshot::Receiver<()>>),
    /// A connection, until this is dropped.
    Connection {
        _alive: oneshot::Sender<()>,
    },
    Request,
}

impl Clone for Answers {
    fn clone(&self) -> Self {
        let of = match &self.of {
            Of::Server(begin) => {
                let (alive, ended) = oneshot::channel();
                // The listener is there as long as the server.
                let _ = begin.send(ended);
                Of::Connection { _alive: alive }
            }
            Of::Connection { .. } | Of::Request => Of::Request,
        };
        Self { of }
    }
}

impl Service<Request<Body>> for Answers {
    type Response = Response<Pattern>;
    type Error = BodyError;
    type Future = BoxFuture<'static, Result<Response<Pattern>, BodyError>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BodyError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        Box::pin(answer(request))
    }
}

async fn answer(request: Request<Body>) -> Result<Response<Pattern>, BodyError> {
    let asked = asked(request.uri());
    let mut body = request.into_body();
    let mut come = Come::default();
    while let Some(frame) = body.frame().await {
        if let Ok(data) = frame?.into_data()
            && come.add(data).is_err()
        {
            return Ok(not_found());
        }
    }
    Ok(asked.map_or_else(not_found, |bytes| Response::new(Pattern::new(bytes))))
}

struct Served {
    handle: Handle,
    /// Connections, by the ends of which they tell.
    begun: UnboundedReceiver<oneshot::Receiver<()>>,
}

impl Listener for Served {
    fn address(&self) -> SocketAddr {
        self.handle.local_address()
    }

    fn accept(&mut self) -> Answer<'_, Accepting> {
        Box::pin(async {
            let ended = self.begun.recv().await;
            let ended = ended.ok_or_else(|| Failed::other("the server has stopped"))?;
            let connection = Http::hidden(ended);
            Ok(Box::pin(std::future::ready(Ok(connection))) as Accepting)
        })
    }

    fn traffic(&self) -> Option<Traffic> {
        Some(traffic(self.handle.endpoint()))
    }
}
