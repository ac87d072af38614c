//! Answers requests over HTTP/3, to count the instructions that each of them takes.
//!
//! The server and the client each run in a thread of their own, so that valgrind counts them separately:
//!
//! ```text
//! cargo build --release -p hybriq-http --example instructions
//! export GLIBC_TUNABLES=glibc.cpu.x86_rep_movsb_threshold=1073741824:glibc.cpu.x86_rep_stosb_threshold=1073741824
//! valgrind --tool=callgrind --separate-threads=yes target/release/examples/instructions 2000 100 100
//! ```
//!
//! Thread 2 is the server, thread 3 the client. The difference between runs of 2,000 and 4,000 requests leaves out
//! the setup. Without the tunables, glibc copies with `rep movsb`, and valgrind counts every byte of it as an
//! instruction.
//!
//! The arguments are the number of requests, the number of concurrent requests, and the number of bytes in the body
//! of each response.

use std::{
    convert::Infallible,
    env,
    error::Error,
    future::{Ready, poll_fn, ready},
    net::SocketAddr,
    sync::mpsc,
    task::{Context, Poll},
    thread,
};

use bytes::{Buf as _, Bytes};
use futures_util::{StreamExt as _, stream};
use http::{Request, Response};
use http_body_util::Full;
use hybriq::{ClientConfig, Endpoint, Identity, ServerConfig, Trust, tls::PrivateKeyDer};
use hybriq_http::{Body, Server};
use tokio::runtime::Builder;
use tower_service::Service;

type Result<T> = std::result::Result<T, Box<dyn Error + Send + Sync>>;
type Requests = h3::client::SendRequest<hybriq_h3::adapter::OpenStreams, Bytes>;

const USAGE: &str = "instructions REQUESTS IN_FLIGHT RESPONSE_BYTES";

fn main() -> Result<()> {
    let numbers: Vec<usize> = env::args()
        .skip(1)
        .map_while(|word| word.parse().ok())
        .collect();
    let &[requests, in_flight, bytes] = numbers.as_slice() else {
        return Err(USAGE.into());
    };
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()])?;
    let key = PrivateKeyDer::try_from(made.signing_key.serialize_der())?;
    let certificate = made.cert.der().clone();
    let identity = Identity::from_der(vec![certificate.clone()], key);
    let (tell, told) = mpsc::channel();
    thread::spawn(move || {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        runtime.block_on(serve(ServerConfig::new(identity), bytes, &tell))
    });
    let address = told.recv()?;
    let trust = Trust::roots_der([certificate]);
    let client = thread::spawn(move || {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        runtime.block_on(ask(
            ClientConfig::new().trust(trust),
            address,
            requests,
            in_flight,
        ))
    });
    println!(
        "received {} bytes",
        client.join().map_err(|_| "the client failed")??
    );
    Ok(())
}

/// Answers every request with the same bytes.
#[derive(Clone)]
struct Fixed(Bytes);

impl Service<Request<Body>> for Fixed {
    type Response = Response<Full<Bytes>>;
    type Error = Infallible;
    type Future = Ready<std::result::Result<Self::Response, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<std::result::Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: Request<Body>) -> Self::Future {
        ready(Ok(Response::new(Full::new(self.0.clone()))))
    }
}

async fn serve(config: ServerConfig, bytes: usize, tell: &mpsc::Sender<SocketAddr>) -> Result<()> {
    let server = Server::builder()
        .without_tcp()
        .bind("127.0.0.1:0", config)?;
    tell.send(server.handle().local_address())?;
    server.serve(Fixed(vec![0; bytes].into())).await?;
    Ok(())
}

/// Sends all requests, and returns the number of bytes received.
async fn ask(
    config: ClientConfig,
    address: SocketAddr,
    requests: usize,
    in_flight: usize,
) -> Result<usize> {
    let endpoint = Endpoint::client(config.alpn([hybriq_h3::ALPN]))?;
    let connection = endpoint.connect(address, "localhost").await?;
    let transport = hybriq_h3::adapter::Connection::new(connection);
    let (mut driver, client) = h3::client::builder().build(transport).await?;
    tokio::spawn(async move { poll_fn(|cx| driver.poll_close(cx)).await });
    let answers = stream::iter(0..requests).map(|_| one(client.clone()));
    let mut answers = answers.buffer_unordered(in_flight);
    let mut came = 0;
    while let Some(bytes) = answers.next().await {
        came += bytes?;
    }
    Ok(came)
}

async fn one(mut client: Requests) -> Result<usize> {
    let request = Request::get("https://localhost/100").body(())?;
    let mut stream = client.send_request(request).await?;
    stream.finish().await?;
    stream.recv_response().await?;
    let mut came = 0;
    while let Some(data) = stream.recv_data().await? {
        came += data.remaining();
    }
    Ok(came)
}
