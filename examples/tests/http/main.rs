//! Tests that the examples of HTTP run and do what their documentation promises.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "../common/mod.rs"]
mod common;
mod mixed;
mod mutual_tls;
mod reverse_proxy;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use common::Running as Server;
use http::{Request, StatusCode, header::ORIGIN};
use http_body_util::Full;
use hybriq::{ClientConfig, Endpoint, Trust};
use hybriq_http::webtransport::{self, ConnectError, Session, SessionError};
use hybriq_http::{Client, Http3};
use rustix::process::{Pid, Signal, kill_process};

const SERVER: &str = env!("CARGO_BIN_EXE_http3_server");
const CHAT: &str = env!("CARGO_BIN_EXE_webtransport_chat");
const GRPC: &str = env!("CARGO_BIN_EXE_grpc");

/// Returns an empty folder for the files of a test.
fn folder(name: &str) -> PathBuf {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).unwrap();
    folder
}

/// Writes a new certificate and its key.
fn certify(cert: &Path, key: &Path) {
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    fs::write(cert, made.cert.pem()).unwrap();
    fs::write(key, made.signing_key.serialize_pem()).unwrap();
}

/// Returns the command of a server with this certificate, on a free port.
fn serving(program: &str, cert: &Path, key: &Path) -> Command {
    let mut command = Command::new(program);
    command.args(["--listen", "127.0.0.1:0"]);
    command.arg("--cert").arg(cert).arg("--key").arg(key);
    command
}

/// Starts the web server with a certificate, its key and a folder.
fn web_server([cert, key, files]: [&Path; 3]) -> Server {
    Server::run(serving(SERVER, cert, key).arg("--files").arg(files))
}

fn signal(server: &Server, signal: Signal) {
    kill_process(Pid::from_child(&server.process), signal).unwrap();
}

fn client(server: &Server, cert: &Path, http3: Http3) -> Client {
    let config = ClientConfig::new().trust(Trust::roots_pem_file(cert).unwrap());
    let builder = Client::builder().http3(http3);
    let builder = builder.resolve("localhost", [server.address]);
    builder.build(config).unwrap()
}

/// Sends a request. Returns the status and the body.
async fn ask(
    client: &Client,
    server: &Server,
    (path, range, body): (&str, &str, Vec<u8>),
) -> (StatusCode, String) {
    let mut request = Request::new(Full::<bytes::Bytes>::from(body.clone()));
    if !body.is_empty() {
        *request.method_mut() = http::Method::POST;
    }
    if !range.is_empty() {
        request
            .headers_mut()
            .insert("range", range.parse().unwrap());
    }
    let uri = format!("https://localhost:{}{path}", server.address.port());
    *request.uri_mut() = uri.parse().unwrap();
    let response = client.request(request).await.unwrap();
    let status = response.status();
    let body = response.into_body().bytes(1 << 20).await.unwrap();
    (status, String::from_utf8(body.to_vec()).unwrap())
}

// The test waits for lines of the server, while the clients must be able to answer it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_web_server_tells_visitors_what_was_negotiated() {
    let folder = folder("http3-server");
    let (cert, key) = (folder.join("cert.pem"), folder.join("key.pem"));
    certify(&cert, &key);
    fs::write(folder.join("digits.txt"), "0123456789").unwrap();
    let mut server = web_server([&cert, &key, &folder]);
    for (http3, version) in [(Http3::Only, "HTTP/3.0"), (Http3::Off, "HTTP/2.0")] {
        let client = client(&server, &cert, http3);
        let (status, page) = ask(&client, &server, ("/", "", vec![])).await;
        assert_eq!(status, StatusCode::OK);
        let says = "this connection is post-quantum: X25519MLKEM768";
        assert!(page.contains(says), "{page}");
        let line = server.line();
        assert!(line.contains(&format!(" version={version} ")), "{line}");
        assert!(line.contains(" path=\"/\" status=200 "), "{line}");
        assert!(line.contains(" group=X25519MLKEM768 "), "{line}");
        let (_, json) = ask(&client, &server, ("/connection", "", vec![])).await;
        let json: serde_json::Value = serde_json::from_str(&json).unwrap();
        assert_eq!(json["version"], version);
        assert_eq!(json["post_quantum"], true);
        let part = ask(&client, &server, ("/files/digits.txt", "bytes=2-4", vec![])).await;
        assert_eq!(part, (StatusCode::PARTIAL_CONTENT, "234".to_owned()));
        let upload = ask(&client, &server, ("/upload", "", vec![7; 3 << 20])).await;
        assert_eq!(upload.1, "3145728 bytes came\n");
        for _ in 0..3 {
            server.line();
        }
    }
    // A key of another certificate, then the pair.
    let old = client(&server, &cert, Http3::Only);
    let (next, its_key) = (folder.join("next.pem"), folder.join("next.key"));
    certify(&next, &its_key);
    fs::copy(&its_key, &key).unwrap();
    signal(&server, Signal::HUP);
    let line = server.line();
    assert!(
        line.starts_with("not reloaded, the old certificate stays"),
        "{line}"
    );
    assert_eq!(
        ask(&old, &server, ("/", "", vec![])).await.0,
        StatusCode::OK
    );
    server.line();
    fs::remove_file(&cert).unwrap();
    signal(&server, Signal::HUP);
    let line = server.line();
    assert!(
        line.contains("cert.pem"),
        "an unreadable file is named: {line}"
    );
    fs::copy(&next, &cert).unwrap();
    signal(&server, Signal::HUP);
    assert_eq!(server.line(), "reloaded");
    let new = client(&server, &next, Http3::Only);
    assert_eq!(
        ask(&new, &server, ("/", "", vec![])).await.0,
        StatusCode::OK
    );
    server.line();
    signal(&server, Signal::TERM);
    assert_eq!(server.line(), "draining for at most 5 s");
    assert!(server.process.wait().unwrap().success());
}

#[test]
fn a_call_of_grpc_goes_over_http3() {
    let ca = folder("grpc").join("ca.pem");
    let mut command = Command::new(GRPC);
    command.args(["--listen", "127.0.0.1:0", "--ca"]).arg(&ca);
    let output = command.output().unwrap();
    let said = String::from_utf8(output.stdout).unwrap();
    let failed = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{failed}");
    let lines: Vec<_> = said.lines().skip(1).collect();
    assert_eq!(
        lines,
        [
            "without a token: Unauthenticated",
            "SERVING over HTTP/3.0, with X25519MLKEM768",
            "watched: SERVING",
            "watched: NOT_SERVING",
            "no more changes before the deadline",
        ]
    );
}

#[test]
fn a_game_gets_to_its_goal_by_datagrams() {
    let ca = folder("game").join("ca.pem");
    let mut command = Command::new(env!("CARGO_BIN_EXE_game_loop"));
    command.args(["--listen", "127.0.0.1:0", "--ca"]).arg(&ca);
    let output = command.output().unwrap();
    let said = String::from_utf8(output.stdout).unwrap();
    let failed = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{failed}");
    assert!(said.ends_with("\nthe player arrived at 10\n"), "{said}");
}

/// Waits for a future that is ready within seconds unless something is broken.
async fn soon<F: Future>(future: F) -> F::Output {
    let limit = std::time::Duration::from_secs(30);
    tokio::time::timeout(limit, future).await.expect("hangs")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_static_site_finds_its_new_certificate() {
    let folder = folder("static-site");
    let (cert, key) = (folder.join("cert.pem"), folder.join("key.pem"));
    certify(&cert, &key);
    fs::write(folder.join("digits.txt"), "0123456789").unwrap();
    let mut command = serving(env!("CARGO_BIN_EXE_static_site"), &cert, &key);
    let mut server = Server::run(command.args(["--look", "10", "--files"]).arg(&folder));
    for http3 in [Http3::Only, Http3::Off] {
        let client = client(&server, &cert, http3);
        let page = ask(&client, &server, ("/digits.txt", "", vec![])).await;
        assert_eq!(page, (StatusCode::OK, "0123456789".to_owned()));
        assert!(server.line().contains(" path=\"/digits.txt\" status=200 "));
    }
    certify(&cert, &key);
    let uri = format!("https://localhost:{}/", server.address.port());
    soon(async {
        while client(&server, &cert, Http3::Only)
            .get(&*uri)
            .await
            .is_err()
        {}
    })
    .await;
    signal(&server, Signal::TERM);
    assert!(server.process.wait().unwrap().success());
}

/// Enters the chat from a page of this origin.
async fn enter(server: &Server, cert: &Path, origin: &str) -> Result<Session, ConnectError> {
    let config = ClientConfig::new().trust(Trust::roots_pem_file(cert).unwrap());
    let endpoint = Endpoint::client(config.alpn(["h3"])).unwrap();
    let uri = format!("https://localhost:{}/chat", server.address.port());
    let request = Request::get(uri).header(ORIGIN, origin);
    webtransport::connect(&endpoint, request.body(()).unwrap()).await
}

/// Enters the chat under a name, and returns the welcome.
async fn join(server: &Server, cert: &Path, name: &str) -> (Session, String) {
    let origin = format!("https://localhost:{}", server.address.port());
    let session = enter(server, cert, &origin).await.unwrap();
    let (mut send, mut recv) = session.open_bidi().await.unwrap();
    send.write_all(name.as_bytes()).await.unwrap();
    send.finish();
    let welcome = recv.read_to_end(1000).await.unwrap();
    (session, String::from_utf8(welcome).unwrap())
}

async fn hears(session: &Session) -> String {
    let mut recv = session.accept_uni().await.unwrap().unwrap();
    String::from_utf8(recv.read_to_end(1000).await.unwrap()).unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn visitors_of_the_chat_hear_each_other() {
    let folder = folder("chat");
    let (cert, key) = (folder.join("cert.pem"), folder.join("key.pem"));
    certify(&cert, &key);
    let mut server = Server::run(&mut serving(CHAT, &cert, &key));

    let foreign = enter(&server, &cert, "https://example.com").await;
    let refused = foreign.map(drop).unwrap_err().to_string();
    assert!(refused.contains("403"), "{refused}");

    let (first, welcome) = join(&server, &cert, "Ada").await;
    assert!(welcome.starts_with("1 here"), "{welcome}");
    assert!(welcome.contains("X25519MLKEM768"), "{welcome}");
    assert!(server.line().starts_with("Ada joined from 127.0.0.1:"));
    let (second, welcome) = join(&server, &cert, "Alan").await;
    assert!(welcome.starts_with("2 here"), "{welcome}");

    let mut send = first.open_uni().await.unwrap();
    send.write_all(b"hello").await.unwrap();
    send.finish();
    assert_eq!(hears(&second).await, "Ada: hello");
    assert_eq!(hears(&first).await, "Ada: hello");

    second.send_datagram(Vec::new().into()).unwrap();
    assert_eq!(first.recv_datagram().await.unwrap().unwrap(), "Alan");
    signal(&server, Signal::INT);
    let closed = SessionError::Closed {
        code: 0,
        reason: "the server shuts down".to_owned(),
    };
    assert_eq!(first.closed().await, closed);
    assert_eq!(second.closed().await, closed);
    assert!(server.process.wait().unwrap().success());
}
