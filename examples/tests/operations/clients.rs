//! Clients that keep a server busy, and notice everything that is lost.

use std::{
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use hybriq::tls::CertificateDer;
use hybriq::{
    ClientConfig, ConnectError, Connection, ConnectionError, Endpoint, Trust, error::Code,
};
use tokio::sync::Notify;

/// Bytes of a request: several packets each way.
const REQUEST: usize = 5_000;

/// Returns an endpoint whose clients trust the authority.
pub(crate) fn endpoint(trust: Trust) -> Endpoint {
    Endpoint::client(config(trust)).unwrap()
}

pub(crate) fn config(trust: Trust) -> ClientConfig {
    ClientConfig::new().alpn(["echo"]).trust(trust)
}

pub(crate) async fn connect(
    client: &Endpoint,
    server: SocketAddr,
) -> Result<Connection, ConnectError> {
    soon(client.connect(server, "localhost")).await
}

/// Returns the certificate that the server showed.
pub(crate) fn certificate(connection: &Connection) -> CertificateDer<'static> {
    connection.peer_certificates().swap_remove(0)
}

pub(crate) fn is_refused(error: &ConnectError) -> bool {
    use ConnectError::Connection;
    let code = match error {
        Connection(ConnectionError::Transport { code, .. }) => *code,
        _ => return false,
    };
    code == Code::CONNECTION_REFUSED
}

/// Sends a request, and expects the whole of it back.
pub(crate) async fn ask(connection: &Connection, number: u64) -> Result<(), String> {
    let request: Vec<u8> = (0..REQUEST)
        .map(|at| (at as u64 * 31 + number) as u8)
        .collect();
    let exchange = async {
        let (mut send, mut receive) = connection.open_bidi().await?;
        send.write_all(&request).await?;
        send.finish();
        Ok::<_, std::io::Error>(receive.read_to_end(2 * REQUEST).await?)
    };
    match soon(exchange).await {
        Ok(answer) if answer == request => Ok(()),
        Ok(answer) => Err(format!("{} bytes of {REQUEST} came back", answer.len())),
        Err(error) => Err(format!("request {number}: {error}")),
    }
}

/// Counts what clients did, and wakes who waits for a number.
#[derive(Clone, Default)]
pub(crate) struct Count(Arc<(AtomicU64, Notify)>);

impl Count {
    pub(crate) fn add(&self) {
        self.0.0.fetch_add(1, Ordering::Relaxed);
        self.0.1.notify_waiters();
    }

    pub(crate) fn now(&self) -> u64 {
        self.0.0.load(Ordering::Relaxed)
    }

    pub(crate) async fn reaches(&self, number: u64) {
        let reached = async {
            loop {
                let changed = self.0.1.notified();
                if self.now() >= number {
                    return;
                }
                changed.await;
            }
        };
        soon(reached).await;
    }

    pub(crate) async fn grows(&self, by: u64) {
        self.reaches(self.now() + by).await;
    }
}

/// Asks over one connection, again and again, until the server wants it to go. The connection then
/// stays as it is, so that the caller decides when it ends.
pub(crate) async fn ask_until_asked_to_go(
    connection: Connection,
    answered: Count,
) -> Result<Connection, String> {
    let other = connection.clone();
    let asked_to_go = async move {
        let mut stream = match other.accept_uni().await {
            Ok(Some(stream)) => stream,
            Ok(None) => return Err("closed before it was asked to go".to_owned()),
            Err(error) => return Err(error.to_string()),
        };
        let text = stream
            .read_to_end(100)
            .await
            .map_err(|error| error.to_string())?;
        if text == b"goaway" {
            Ok(())
        } else {
            Err(format!("{text:?}"))
        }
    };
    tokio::pin!(asked_to_go);
    for number in 0.. {
        // A request that was begun is finished, although the server wants the client to go.
        ask(&connection, number).await?;
        answered.add();
        if let Some(end) = ready(asked_to_go.as_mut()).await {
            end?;
            break;
        }
    }
    Ok(connection)
}

/// Polls a future once.
async fn ready<F: Future>(mut future: std::pin::Pin<&mut F>) -> Option<F::Output> {
    std::future::poll_fn(|context| match future.as_mut().poll(context) {
        std::task::Poll::Ready(output) => std::task::Poll::Ready(Some(output)),
        std::task::Poll::Pending => std::task::Poll::Ready(None),
    })
    .await
}

/// Fails a test that hangs. Nothing is measured with it.
pub(crate) async fn soon<T>(future: impl Future<Output = T>) -> T {
    let long = Duration::from_secs(20);
    tokio::time::timeout(long, future)
        .await
        .expect("it takes too long")
}
