//! Independent stacks of HTTP/3 as clients of our server, and as servers of our client.
//!
//! `.ci/judges` installs them into a folder, which `HYBRIQ_JUDGES` names here. Tests of what is not
//! installed say so and pass.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod browsers;
mod certificates;
mod clients;
mod curl;
mod ml_dsa;
mod ml_dsa_go;
mod servers;
#[path = "../support/mod.rs"]
mod support;
mod tables;

use std::{
    fs,
    net::SocketAddr,
    path::{Path, PathBuf},
    process::Stdio,
    time::Duration,
};

use aws_lc_rs::digest;
use axum::{
    Extension, Router,
    body::Body,
    extract::{Path as UrlPath, Request},
    http::{HeaderMap, HeaderName, StatusCode},
    response::IntoResponse,
    routing::{get, post},
};
use hybriq_http::{Peer, Server};
use rcgen::PublicKeyData as _;
use serde::Deserialize;
use support::installed;
use tokio::process::Command;

/// Group of servers and clients that know it.
const POST_QUANTUM: &str = "X25519MLKEM768";

/// Answer to one case, as every judge prints it.
#[derive(Debug, Deserialize)]
struct Answer {
    case: String,
    status: u16,
    len: usize,
    sha256: String,
    group: String,
    fields: usize,
}

/// Waits until a server has its UDP port: a client that comes too early is refused by the system.
async fn listens(server: SocketAddr) {
    let port = format!(":{:04X} ", server.port());
    let listens = async {
        loop {
            let sockets = fs::read_to_string("/proc/net/udp").unwrap();
            if sockets.contains(&port) {
                return;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    support::soon(listens).await;
}

/// The bytes that every server here sends.
fn pattern(len: usize) -> Vec<u8> {
    (0..=250).cycle().take(len).collect()
}

fn sha256_bytes(bytes: &[u8]) -> Vec<u8> {
    digest::digest(&digest::SHA256, bytes).as_ref().to_vec()
}

fn sha256(bytes: &[u8]) -> String {
    let digest = sha256_bytes(bytes);
    let digits = digest.iter().flat_map(|byte| [byte >> 4, byte & 15]);
    digits
        .filter_map(|digit| char::from_digit(digit.into(), 16))
        .collect()
}

/// A certificate and its key in a folder of their own, which goes away in the end.
struct Files {
    folder: PathBuf,
    /// Folder that the judge sees as its root.
    root: PathBuf,
    /// The certificate's key as SubjectPublicKeyInfo.
    public_key: Vec<u8>,
}

impl Files {
    /// Writes them where a judge with this root folder finds them.
    fn new(root: &Path, name: &str) -> Self {
        Self::named(root, name, &[])
    }

    /// Writes them with more names of the server.
    fn named(root: &Path, name: &str, names: &[String]) -> Self {
        let folder = root.join(format!("tmp/hybriq-{}-{name}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let names = [&["localhost".to_owned()], names].concat();
        let made = rcgen::generate_simple_self_signed(names).unwrap();
        fs::write(folder.join("cert.pem"), made.cert.pem()).unwrap();
        fs::write(folder.join("key.pem"), made.signing_key.serialize_pem()).unwrap();
        let root = root.to_owned();
        let public_key = made.signing_key.subject_public_key_info();
        Self {
            folder,
            root,
            public_key,
        }
    }

    /// Writes a certificate that an authority signed, whose own is `root.pem`.
    fn signed(root: &Path, name: &str) -> Self {
        let mut files = Self::new(root, name);
        let mut params = rcgen::CertificateParams::new([]).unwrap();
        params.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
        let key = rcgen::KeyPair::generate().unwrap();
        let own = params.self_signed(&key).unwrap();
        let authority = rcgen::Issuer::new(params, key);
        let key = rcgen::KeyPair::generate().unwrap();
        let params = rcgen::CertificateParams::new(["localhost".to_owned()]).unwrap();
        let leaf = params.signed_by(&key, &authority).unwrap();
        fs::write(files.path("root.pem"), own.pem()).unwrap();
        fs::write(files.path("cert.pem"), leaf.pem()).unwrap();
        fs::write(files.path("key.pem"), key.serialize_pem()).unwrap();
        files.public_key = key.subject_public_key_info();
        files
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// Returns a path as the judge sees it.
    fn seen(&self, name: &str) -> String {
        let path = self.path(name);
        let inside = path.strip_prefix(&self.root).unwrap();
        format!("/{}", inside.display())
    }

    /// Starts a server of all cases with this certificate.
    fn serve(&self) -> support::Running {
        self.serve_with(cases())
    }

    fn serve_with(&self, router: Router) -> support::Running {
        tables::listen();
        support::run_with(Server::builder(), self.config(), router)
    }

    /// Returns the configuration of a server with this certificate.
    fn config(&self) -> hybriq::ServerConfig {
        let (certificate, key) = (self.path("cert.pem"), self.path("key.pem"));
        let identity = hybriq::Identity::from_pem_files(certificate, key).unwrap();
        hybriq::ServerConfig::new(identity)
    }
}

impl Drop for Files {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// The cases that every judge asks for.
fn cases() -> Router {
    let fields = async |Extension(peer): Extension<Peer>, UrlPath(count): UrlPath<usize>| {
        let field = |index: usize| {
            let name: HeaderName = format!("x-field-{index}").parse().unwrap();
            (name, "v".repeat(index).parse().unwrap())
        };
        let all: HeaderMap = (0..count).map(field).collect();
        (group(&peer), all)
    };
    let bytes = async |Extension(peer): Extension<Peer>, UrlPath(len): UrlPath<usize>| {
        (group(&peer), pattern(len))
    };
    let echo = async |Extension(peer): Extension<Peer>, request: Request| {
        (group(&peer), request.into_body()).into_response()
    };
    let missing = async |Extension(peer): Extension<Peer>| {
        (StatusCode::NOT_FOUND, group(&peer), Body::empty())
    };
    Router::new()
        .route("/bytes/{len}", get(bytes))
        .route("/fields/{count}", get(fields))
        .route("/echo", post(echo))
        .route("/missing", get(missing))
}

fn group(peer: &Peer) -> [(&'static str, String); 2] {
    let version = format!("{:?}", peer.version);
    [("x-group", peer.tls.to_string()), ("x-version", version)]
}

/// Asserts that all cases were answered as they should be, on connections with this group.
fn check(answers: &[Answer], group: &str) {
    let count = |case| answers.iter().filter(|answer| answer.case == case).count();
    for case in [
        "small", "empty", "large", "upload", "head", "fields", "missing",
    ] {
        assert_eq!(count(case), 1, "{case}: {answers:?}");
    }
    assert_eq!(count("parallel"), 100);
    for answer in answers {
        let (status, len, fields) = match answer.case.as_str() {
            "small" => (200, 10, 0),
            "large" => (200, 5_000_000, 0),
            "upload" => (200, 1_000_000, 0),
            "fields" => (200, 0, 100),
            // Some servers say something.
            "missing" => (404, answer.len, 0),
            "parallel" => (200, answer.len.clamp(1000, 1099), 0),
            _ => (200, 0, 0),
        };
        assert_eq!(answer.status, status, "{answer:?}");
        assert_eq!(answer.len, len, "{answer:?}");
        assert_eq!(answer.fields, fields, "{answer:?}");
        if status == 200 {
            assert_eq!(answer.sha256, sha256(&pattern(len)), "{answer:?}");
        }
        assert_eq!(answer.group, group, "{answer:?}");
    }
    println!("{} cases, {group}", answers.len());
}

/// Runs a program to its end and returns its standard output.
async fn output(command: &mut Command) -> Vec<u8> {
    command.stdin(Stdio::null()).kill_on_drop(true);
    let limit = Duration::from_secs(60);
    let output = tokio::time::timeout(limit, command.output())
        .await
        .expect("hangs")
        .unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.success(),
        "{command:?}: {}: {errors}",
        output.status
    );
    output.stdout
}

/// Runs a judge that prints its answers.
async fn answers(command: &mut Command) -> Vec<Answer> {
    let output = String::from_utf8(output(command).await).unwrap();
    let lines = output.lines();
    lines
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}
