//! Stacks with a client of ours for scripts: they ask for all cases over one connection.

use std::path::Path;

use tokio::process::Command;

use super::{
    Files, POST_QUANTUM, answers, check, installed,
    tables::{self, By},
};

/// Program for both Python stacks.
pub(super) const PEER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/judges/peer.py");

async fn python(stack: &str, group: &str) {
    let Some(python) = installed("venv/bin/python") else {
        return;
    };
    let files = Files::new(Path::new("/"), stack);
    let server = files.serve();
    let port = server.address().port().to_string();
    let mut command = Command::new(python);
    let command = command
        .args([PEER, stack, "client", &port])
        .arg(files.path("cert.pem"));
    check(&answers(command).await, group);
    tables::used(server.address(), By::Both).await;
}

/// aioquic knows no post-quantum group.
#[tokio::test]
async fn aioquic_is_served() {
    python("aioquic", "X25519").await;
}

#[tokio::test]
async fn qh3_is_served() {
    python("qh3", POST_QUANTUM).await;
}

#[tokio::test]
async fn quic_go_is_served() {
    let Some(program) = installed("quicgo") else {
        return;
    };
    let files = Files::new(Path::new("/"), "quicgo");
    let server = files.serve();
    let url = format!("https://localhost:{}", server.address().port());
    let mut command = Command::new(program);
    let command = command.args(["client", &url]).arg(files.path("cert.pem"));
    check(&answers(command).await, POST_QUANTUM);
}
