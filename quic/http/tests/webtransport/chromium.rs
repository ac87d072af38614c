//! Chromium as the client of our server.

use std::{
    sync::{Arc, Mutex},
    time::{Duration, SystemTime},
};

use aws_lc_rs::digest;
use axum::{
    Extension, Router,
    http::StatusCode,
    response::Html,
    routing::{any, get, post},
};
use hybriq::{Identity, ServerConfig, tls::PrivateKeyDer};
use hybriq_http::{
    Peer, Server,
    webtransport::{Limits, Session, SessionError, StreamError, WebTransport},
};
use tokio::{process::Command, sync::Notify};

use crate::support::run_with;

/// Time after which a browser is not waited for any more.
const PATIENCE: Duration = Duration::from_secs(60);

/// Reports of the page and the server.
#[derive(Clone, Default)]
struct Told {
    lines: Arc<Mutex<Vec<String>>>,
    reported: Arc<Notify>,
}

impl Told {
    fn add(&self, line: impl Into<String>) {
        self.lines.lock().unwrap().push(line.into());
    }
}

/// A certificate that a browser takes by its hash (W3C WebTransport §3.2.1), and the hash.
#[expect(
    clippy::disallowed_methods,
    reason = "browsers compare these times with their own clock"
)]
fn certificate() -> (ServerConfig, Vec<u8>) {
    let day = Duration::from_secs(24 * 60 * 60);
    let now = SystemTime::now();
    let mut params = rcgen::CertificateParams::new(["localhost".to_owned()]).unwrap();
    params.not_before = (now - day).into();
    params.not_after = (now + 10 * day).into();
    let key = rcgen::KeyPair::generate().unwrap();
    let certificate = params.self_signed(&key).unwrap();
    let hash = digest::digest(&digest::SHA256, certificate.der())
        .as_ref()
        .to_vec();
    let key = PrivateKeyDer::try_from(key.serialize_der()).unwrap();
    let identity = Identity::from_der(vec![certificate.der().clone()], key);
    (ServerConfig::new(identity), hash)
}

/// Plays the server's part in the session that uses everything.
async fn all(session: Session) -> Result<(), StreamError> {
    let (mut send, mut recv) = session.accept_bidi().await?.unwrap();
    let asked = recv.read_to_end(100).await?;
    send.write_all(&[b"answered: ", &asked[..]].concat())
        .await?;
    send.finish();
    let (mut send, mut recv) = session.open_bidi().await?;
    send.write_all(b"asked by the server").await?;
    send.finish();
    let answer = recv.read_to_end(100).await?;
    assert_eq!(answer, b"answered by the page");
    let news = session
        .accept_uni()
        .await?
        .unwrap()
        .read_to_end(100)
        .await?;
    assert_eq!(news, b"news of the page");
    let mut send = session.open_uni().await?;
    send.write_all(b"news of the server").await?;
    send.finish();
    assert_eq!(session.recv_datagram().await?.unwrap(), "ping");
    // The page needs one of these.
    for _ in 0..5 {
        session.send_datagram("pong".into())?;
    }
    assert_eq!(
        session
            .accept_uni()
            .await?
            .unwrap()
            .read_to_end(100)
            .await?,
        b"enough"
    );
    session.close(7, "enough");
    Ok(())
}

/// Plays the server's part in the session that the page closes.
async fn codes(session: Session, told: Told) -> Result<(), StreamError> {
    let mut recv = session.accept_uni().await?.unwrap();
    // Without RESET_STREAM_AT, the other end knows of a stream only if its beginning came before the
    // reset: both are reset once both are known.
    let mut send = session.open_uni().await?;
    send.write_all(b"unfinished").await?;
    let ended = recv.read_to_end(100).await;
    told.add(format!("stream: {}", ended.unwrap_err()));
    assert_eq!(session.recv_datagram().await?.unwrap(), "read");
    send.reset(u32::MAX);
    match session.closed().await {
        SessionError::Closed { code, reason } => told.add(format!("session: {code} {reason}")),
        other => told.add(format!("session: {other}")),
    }
    Ok(())
}

fn router(page: String, told: &Told) -> Router {
    let (all_told, codes_told) = (told.clone(), told.clone());
    let (wait_told, report_told) = (told.clone(), told.clone());
    let begin = async move |peer: Extension<Peer>, request: Extension<WebTransport>| {
        all_told.add(format!("group: {}", peer.tls));
        request
            .0
            .accept(async |session| all(session).await.unwrap())
    };
    let codes = async move |Extension(request): Extension<WebTransport>| {
        request.accept(async move |session| codes(session, codes_told).await.unwrap())
    };
    let report = async move |lines: String| {
        lines.lines().for_each(|line| report_told.add(line));
        report_told.reported.notify_waiters();
        report_told.reported.notify_one();
    };
    let wait = async move || wait_told.reported.notified().await;
    Router::new()
        .route("/", get(async || Html(page)))
        .route("/wait", get(wait))
        .route("/report", post(report))
        .route("/all", any(begin))
        .route("/codes", any(codes))
        .route("/refused", any(async || StatusCode::FORBIDDEN))
}

/// Newest version of WebTransport that Chromium's SETTINGS offer.
#[derive(Clone, Copy, Debug)]
enum Draft {
    /// The one of a browser without switches.
    Draft02,
    /// The one behind a switch, which it prefers then.
    Draft07,
}

#[tokio::test]
async fn a_page_uses_sessions_of_draft_02() {
    a_page_uses_sessions(Draft::Draft02).await;
}

#[tokio::test]
async fn a_page_uses_sessions_of_draft_07() {
    a_page_uses_sessions(Draft::Draft07).await;
}

/// Opens sessions, and uses all that they have: streams of both kinds from both ends, datagrams, codes of
/// streams, closing by both ends, a refusal.
async fn a_page_uses_sessions(draft: Draft) {
    let (config, hash) = certificate();
    let page = include_str!("page.html").replace("HASH", &format!("{hash:?}"));
    let told = Told::default();
    let builder = Server::builder().webtransport(Limits::default());
    let server = run_with(builder, config, router(page, &told));
    let profile = std::env::temp_dir().join(format!("hybriq-{draft:?}-{}", std::process::id()));
    let features = match draft {
        Draft::Draft02 => "--disable-features=EnableWebTransportDraft07",
        Draft::Draft07 => "--enable-features=EnableWebTransportDraft07",
    };
    let browser = Command::new("chromium")
        .arg(features)
        .args([
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-dev-shm-usage",
        ])
        .args([
            "--disable-background-networking",
            "--ignore-certificate-errors",
        ])
        .args([
            "--host-resolver-rules=MAP localhost 127.0.0.1",
            "--dump-dom",
        ])
        .arg(format!("--user-data-dir={}", profile.display()))
        .arg(format!("https://localhost:{}/", server.address().port()))
        .kill_on_drop(true)
        .output();
    let output = tokio::time::timeout(PATIENCE, browser).await;
    let _ = std::fs::remove_dir_all(profile);
    let output = match output {
        Ok(Ok(output)) => output,
        Ok(Err(_)) => {
            return test_summary::skip("chromium is not installed: apt-get install chromium");
        }
        Err(late) => panic!("{late}: {:?}", told.lines.lock().unwrap()),
    };
    let mut lines = told.lines.lock().unwrap().clone();
    lines.sort();
    let log = String::from_utf8_lossy(&output.stderr);
    assert_eq!(
        lines,
        [
            "bidi: answered: asked by the page",
            "closed: 7 enough",
            "datagram: pong",
            "group: X25519MLKEM768",
            "refused: session",
            "reset: 4294967295",
            "server's bidi: asked by the server",
            "session: 9 bye",
            "stream: the peer reset the stream with code 42",
            "unfinished: unfinished",
            "uni: news of the server",
        ],
        "{log}"
    );
}
