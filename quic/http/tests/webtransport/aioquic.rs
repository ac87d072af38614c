//! aioquic as the client of our server, and as the server of our client.

use std::{
    env,
    path::{Path, PathBuf},
    process::Stdio,
    time::Duration,
};

use axum::{Extension, Router, routing::any};
use http::Request;
use hybriq::Endpoint;
use hybriq_http::{
    Server,
    webtransport::{self, Limits, Session, StreamError, WebTransport},
};
use tokio::{
    io::{AsyncBufReadExt as _, BufReader},
    process::Command,
};

use crate::support::{Certificate, client_config, installed, run_with, soon};

/// Sends everything back, until the session ends.
async fn echo(session: Session) -> Result<(), StreamError> {
    loop {
        tokio::select! {
            stream = session.accept_bidi() => {
                let Some((mut send, mut recv)) = stream? else { return Ok(()) };
                send.write_all(&recv.read_to_end(100).await?).await?;
                send.finish();
            }
            stream = session.accept_uni() => {
                let Some(mut recv) = stream? else { return Ok(()) };
                let read = recv.read_to_end(100).await?;
                let mut send = session.open_uni().await?;
                send.write_all(&read).await?;
                send.finish();
                let (mut send, _) = session.open_bidi().await?;
                send.write_all(b"of the server").await?;
                send.finish();
            }
            datagram = session.recv_datagram() => {
                let Some(datagram) = datagram? else { return Ok(()) };
                session.send_datagram(datagram)?;
            }
        }
    }
}

/// Returns a command that runs a program for aioquic, if that is installed.
pub(crate) fn aioquic(program: &str) -> Option<Command> {
    let mut command = Command::new(installed("venv/bin/python")?);
    let programs = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/webtransport");
    command.arg(programs.join(program));
    command.stderr(Stdio::inherit()).kill_on_drop(true);
    Some(command)
}

/// A file for a judge, until it is dropped.
pub(crate) struct File(pub(crate) PathBuf);

impl File {
    pub(crate) fn new(name: &str, content: &[u8]) -> Self {
        let name = format!("hybriq-judge-{}-{name}", std::process::id());
        let path = env::temp_dir().join(name);
        std::fs::write(&path, content).unwrap();
        Self(path)
    }
}

impl Drop for File {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

#[tokio::test]
async fn a_session_of_aioquic_is_used() {
    let Some(mut server) = aioquic("server.py") else {
        return;
    };
    let certificate = Certificate::shared();
    let files = [
        File::new("session-server.der", &certificate.der()),
        File::new("session-key.der", certificate.key().secret_der()),
    ];
    server.args(files.iter().map(|file| &file.0));
    let server = server.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut server = server.spawn().unwrap();
    let mut lines = BufReader::new(server.stdout.take().unwrap()).lines();
    let port = soon(lines.next_line()).await.unwrap().expect("a port");
    let endpoint = Endpoint::client(client_config(&certificate)).unwrap();
    let request = Request::get(format!("https://localhost:{port}/echo"));
    let opened = webtransport::connect(&endpoint, request.body(()).unwrap());
    let session = soon(opened).await.unwrap();
    let (mut send, mut recv) = soon(session.open_bidi()).await.unwrap();
    send.write_all(b"bidi").await.unwrap();
    send.finish();
    assert_eq!(soon(recv.read_to_end(100)).await.unwrap(), b"bidi");
    let mut send = soon(session.open_uni()).await.unwrap();
    send.write_all(b"uni").await.unwrap();
    send.finish();
    let mut recv = soon(session.accept_uni()).await.unwrap().unwrap();
    assert_eq!(soon(recv.read_to_end(100)).await.unwrap(), b"uni");
    soon(async {
        // Datagrams may be lost.
        let wait = Duration::from_millis(100);
        loop {
            session.send_datagram("datagram".into()).unwrap();
            if let Ok(datagram) = tokio::time::timeout(wait, session.recv_datagram()).await {
                return assert_eq!(datagram.unwrap().unwrap(), "datagram");
            }
        }
    })
    .await;
    session.close(0, "");
}

#[tokio::test]
async fn aioquic_uses_a_session() {
    let Some(mut client) = aioquic("client.py") else {
        return;
    };
    let handler = async |Extension(request): Extension<WebTransport>| {
        request.accept(async |session| drop(echo(session).await))
    };
    let router = Router::new().route("/echo", any(handler));
    let builder = Server::builder().webtransport(Limits::default());
    let server = run_with(builder, Certificate::shared().config(), router);
    let certificate = File::new("session-client.der", &Certificate::shared().der());
    client.args(["session", &server.address().port().to_string()]);
    let output = soon(client.arg(&certificate.0).output()).await.unwrap();
    let told = String::from_utf8_lossy(&output.stdout).into_owned();
    assert_eq!(
        told,
        "status 200\nstream, bidi\nstream, of the server, uni\ndatagram datagram\n"
    );
}
