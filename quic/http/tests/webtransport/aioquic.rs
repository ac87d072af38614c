//! aioquic as the client of our server.

use std::{env, path::Path, process::Stdio};

use axum::{Extension, Router, routing::any};
use hybriq_http::{
    Server,
    webtransport::{Limits, Session, StreamError, WebTransport},
};
use tokio::process::Command;

use crate::support::{Certificate, run_with, soon};

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

#[tokio::test]
async fn aioquic_uses_a_session() {
    let folder = env::var_os("HYBRIQ_JUDGES").unwrap_or_default();
    let python = Path::new(&folder).join("venv/bin/python");
    if !python.exists() {
        return test_summary::skip(
            "HYBRIQ_JUDGES names no folder with aioquic: .ci/judges makes one",
        );
    }
    let handler = async |Extension(request): Extension<WebTransport>| {
        request.accept(async |session| drop(echo(session).await))
    };
    let router = Router::new().route("/echo", any(handler));
    let builder = Server::builder().webtransport(Limits::default());
    let server = run_with(builder, Certificate::shared().config(), router);
    let name = format!("hybriq-aioquic-{}.der", std::process::id());
    let certificate = env::temp_dir().join(name);
    std::fs::write(&certificate, Certificate::shared().der()).unwrap();
    let client = Command::new(python)
        .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/webtransport/client.py"))
        .arg(server.address().port().to_string())
        .arg(&certificate)
        .stderr(Stdio::inherit())
        .kill_on_drop(true)
        .output();
    let output = soon(client).await.unwrap();
    let _ = std::fs::remove_file(certificate);
    let told = String::from_utf8_lossy(&output.stdout).into_owned();
    assert_eq!(
        told,
        "status 200\nstream, bidi\nstream, of the server, uni\ndatagram datagram\n"
    );
}
