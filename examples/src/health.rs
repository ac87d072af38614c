//! Answers health checks over HTTP, for orchestrators that cannot speak QUIC.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

/// Longest request line that is read.
const REQUEST_LINE: u64 = 256;

/// Time that a check may take.
const TIMEOUT: Duration = Duration::from_secs(1);

/// State of a server, as told to health checks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Health {
    /// New clients are welcome.
    Ready,
    /// Connections are finishing; send new clients elsewhere.
    Draining,
}

/// Answers `GET /ready` with 200, or with 503 while the server drains, and every other path with
/// 200: the process is alive. Runs on the runtime of the caller, so that a main loop that hangs is
/// noticed. Returns the address, and the switch with which the server tells its state; the port is
/// closed when the switch is dropped.
///
/// # Errors
/// The listener has no address.
pub fn answer(listener: TcpListener) -> io::Result<(SocketAddr, watch::Sender<Health>)> {
    let address = listener.local_addr()?;
    let (switch, health) = watch::channel(Health::Ready);
    let mut dropped = health.clone();
    tokio::spawn(async move {
        loop {
            let accepted = tokio::select! {
                accepted = listener.accept() => accepted,
                () = gone(&mut dropped) => return,
            };
            let Ok((stream, _)) = accepted else {
                // Out of file descriptors, perhaps not for long.
                tokio::time::sleep(TIMEOUT).await;
                continue;
            };
            let now = *health.borrow();
            // One at a time: a check that dawdles delays only other checks.
            let _ = tokio::time::timeout(TIMEOUT, reply(stream, now)).await;
        }
    });
    Ok((address, switch))
}

/// Waits until the switch is dropped.
async fn gone(health: &mut watch::Receiver<Health>) {
    while health.changed().await.is_ok() {}
}

async fn reply(mut stream: TcpStream, health: Health) -> io::Result<()> {
    let (read, mut write) = stream.split();
    let mut line = String::new();
    let mut read = BufReader::new(read.take(REQUEST_LINE));
    read.read_line(&mut line).await?;
    let is_ready = health == Health::Ready || !line.starts_with("GET /ready ");
    let (status, text) = if is_ready {
        ("200 OK", "ok\n")
    } else {
        ("503 Service Unavailable", "draining\n")
    };
    let length = text.len();
    let answer = format!(
        "HTTP/1.1 {status}\r\nContent-Type: text/plain\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{text}"
    );
    write.write_all(answer.as_bytes()).await?;
    write.shutdown().await
}
