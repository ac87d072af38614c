//! Counts the bytes of the heap that a server keeps for a connection over HTTP/3 that made one request and is at rest.
//!
//! ```text
//! cargo run --release -p hybriq-http --example idle_memory
//! ```
//!
//! The table of `quic/evidence/instructions.md` has the bytes of the QUIC connection below it.

use std::{
    convert::Infallible,
    error::Error,
    future::{Ready, poll_fn, ready},
    net::SocketAddr,
    sync::mpsc,
    task::{Context, Poll},
    thread,
    time::Duration,
};

use bytes::{Buf as _, Bytes};
use http::{Request, Response};
use http_body_util::Full;
use hybriq::{ClientConfig, Endpoint, Identity, ServerConfig, Trust, tls::PrivateKeyDer};
use hybriq_http::{Body, Limits, Server};
use hybriq_sim::heap;
use tokio::{runtime::Builder, task::JoinHandle};
use tower_service::Service;

type Result<T> = std::result::Result<T, Box<dyn Error + Send + Sync>>;
type Requests = h3::client::SendRequest<hybriq_h3::adapter::OpenStreams, Bytes>;

/// Connections that are there before, so that the server has allocated what it needs once.
const BEFORE: usize = 64;

/// Connections whose memory is counted: as many as make every table that doubles twice as large.
const COUNTED: usize = 192;

#[global_allocator]
static ALLOCATOR: heap::Counting = heap::Counting;

fn main() -> Result<()> {
    for table in [0, 4096] {
        let made = rcgen::generate_simple_self_signed(["localhost".to_owned()])?;
        let key = PrivateKeyDer::try_from(made.signing_key.serialize_der())?;
        let certificate = made.cert.der().clone();
        let config = ServerConfig::new(Identity::from_der(vec![certificate.clone()], key));
        let (tell, told) = mpsc::channel();
        thread::spawn(move || {
            let runtime = Builder::new_current_thread().enable_all().build()?;
            runtime.block_on(serve(config, table, &tell))
        });
        let address = told.recv()?;
        let config = ClientConfig::new().trust(Trust::roots_der([certificate]));
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let each = runtime.block_on(count(config, address))?;
        println!("{each} bytes for an idle connection with a dynamic table of {table} bytes");
    }
    Ok(())
}

/// Answers every request with the bytes that the thread holds.
#[derive(Clone)]
struct Held;

impl Service<Request<Body>> for Held {
    type Response = Response<Full<Bytes>>;
    type Error = Infallible;
    type Future = Ready<std::result::Result<Self::Response, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<std::result::Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: Request<Body>) -> Self::Future {
        let held = heap::allocated_by_thread().to_string();
        ready(Ok(Response::new(Full::new(held.into()))))
    }
}

async fn serve(config: ServerConfig, table: u64, tell: &mpsc::Sender<SocketAddr>) -> Result<()> {
    let mut limits = Limits::default();
    limits.field_table = table;
    let server = Server::builder()
        .without_tcp()
        .limits(limits)
        .bind("127.0.0.1:0", config)?;
    tell.send(server.handle().local_address())?;
    server.serve(Held).await?;
    Ok(())
}

/// Returns the bytes for each connection.
async fn count(config: ClientConfig, address: SocketAddr) -> Result<usize> {
    let endpoint = Endpoint::client(config.alpn([hybriq_h3::ALPN]))?;
    let mut connections = Vec::new();
    for _ in 0..BEFORE {
        connections.push(connect(&endpoint, address).await?);
    }
    let (probe, _) = &connections[0];
    let probe = probe.clone();
    let before = at_rest(&probe).await?;
    for _ in 0..COUNTED {
        connections.push(connect(&endpoint, address).await?);
    }
    let after = at_rest(&probe).await?;
    Ok(after.wrapping_sub(before) / COUNTED)
}

/// Returns the bytes that the server holds once they stay the same.
async fn at_rest(probe: &Requests) -> Result<usize> {
    let mut held = ask(probe.clone()).await?;
    loop {
        tokio::time::sleep(Duration::from_secs(2)).await;
        let now = ask(probe.clone()).await?;
        if now.abs_diff(held) < COUNTED {
            return Ok(now);
        }
        held = now;
    }
}

/// Makes a connection and one request on it.
async fn connect(
    endpoint: &Endpoint,
    address: SocketAddr,
) -> Result<(Requests, JoinHandle<h3::error::ConnectionError>)> {
    let connection = endpoint.connect(address, "localhost").await?;
    let transport = hybriq_h3::adapter::Connection::new(connection);
    let (mut driver, client) = h3::client::builder().build(transport).await?;
    let driver = tokio::spawn(async move { poll_fn(|cx| driver.poll_close(cx)).await });
    ask(client.clone()).await?;
    Ok((client, driver))
}

async fn ask(mut client: Requests) -> Result<usize> {
    let request = Request::get("https://localhost/").body(())?;
    let mut stream = client.send_request(request).await?;
    stream.finish().await?;
    stream.recv_response().await?;
    let mut answer = Vec::new();
    while let Some(mut data) = stream.recv_data().await? {
        answer.extend_from_slice(&data.copy_to_bytes(data.remaining()));
    }
    Ok(std::str::from_utf8(&answer)?.parse()?)
}
