//! ML-DSA certificates of servers and of clients, with chains, against quic-go on Go 1.27, whose
//! `crypto/tls` knows them.

use std::path::{Path, PathBuf};

use hybriq::{ClientConfig, ServerConfig, tls::ClientAuth};
use hybriq_http::Server;
use tokio::process::Command;

use super::{
    Answer, Files, POST_QUANTUM, answers, cases, check, installed,
    ml_dsa::{CHAINS, KINDS, backends, hierarchy, identity, trust},
    servers::{Asking, start},
    support,
};

/// Returns the judge that was built with Go 1.27.
fn program() -> Option<PathBuf> {
    installed("quicgo-mldsa")
}

fn made(kind: &'static rcgen::SignatureAlgorithm, name: &str) -> Files {
    let files = Files::new(Path::new("/"), name);
    hierarchy(&files, kind);
    files
}

/// Returns the chains that quic-go has room for: its CRYPTO streams end at 16 KiB, and a handshake with
/// two certificates of ML-DSA-87 is longer (RFC 9000 §7.5 asks for 4 KiB).
fn chains(signature: &str) -> &'static [(&'static str, usize)] {
    let [leaf, _] = &CHAINS;
    if signature == "mldsa87" {
        std::slice::from_ref(leaf)
    } else {
        &CHAINS
    }
}

/// Returns the files with a certificate chain and its key.
fn shown(files: &Files, shape: &str, name: &str) -> [PathBuf; 2] {
    [format!("{shape}-{name}.pem"), format!("{name}-key.pem")].map(|file| files.path(&file))
}

/// Client quic-go, server with either library: each verifies the chain of the other.
#[tokio::test]
async fn quic_go_is_served_with_ml_dsa_certificates_at_both_ends() {
    let Some(program) = program() else { return };
    for (kind, signature, _) in KINDS {
        let files = made(kind, &format!("{signature}-go"));
        for backend in backends() {
            for (shape, _) in chains(signature) {
                let config = ServerConfig::new(identity(&files, shape, "server")).tls(backend);
                let config = config.client_auth(ClientAuth::Required(trust(&files)));
                let builder = Server::builder().without_tcp();
                let server = support::run_with(builder, config, cases());
                let url = format!("https://localhost:{}", server.address().port());
                let mut command = Command::new(&program);
                let command = command.args(["client", &url]).arg(files.path("root.pem"));
                let command = command.args(shown(&files, shape, "client"));
                check(&answers(command).await, POST_QUANTUM);
            }
        }
    }
}

/// Client with either library, server quic-go.
#[tokio::test]
async fn quic_go_serves_with_ml_dsa_certificates_at_both_ends() {
    let Some(program) = program() else { return };
    for (kind, signature, _) in KINDS {
        let files = made(kind, &format!("{signature}-go-server"));
        for (shape, _) in chains(signature) {
            let mut command = Command::new(&program);
            let command = command.arg("server").args(shown(&files, shape, "server"));
            let command = command.arg(files.path("root.pem"));
            let (_child, address) = start(command).await;
            for backend in backends() {
                let config = ClientConfig::new().tls(backend).trust(trust(&files));
                let config = config.identity(identity(&files, shape, "client"));
                let answers: Vec<Answer> = Asking::with(address, config).all().await;
                check(&answers, POST_QUANTUM);
            }
        }
    }
}

/// A program that does not know the root gets nothing, and says why.
#[tokio::test]
async fn quic_go_refuses_a_root_of_ml_dsa_that_it_does_not_know() {
    let Some(program) = program() else { return };
    let (kind, ..) = KINDS[1];
    let (files, other) = (made(kind, "go-known"), made(kind, "go-other"));
    let config = ServerConfig::new(identity(&files, "chain", "server"));
    let server = support::run_with(Server::builder().without_tcp(), config, cases());
    let url = format!("https://localhost:{}", server.address().port());
    let mut command = Command::new(&program);
    let command = command.args(["client", &url]).arg(other.path("root.pem"));
    let told = command.kill_on_drop(true).output();
    let told = support::soon(told).await.unwrap();
    let errors = String::from_utf8_lossy(&told.stderr);
    assert!(!told.status.success(), "{told:?}");
    assert!(errors.contains("unknown authority"), "{errors}");
}
