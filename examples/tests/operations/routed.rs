//! Two servers behind the example of a router.

use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Stdio};

use crate::authority::Authority;
use crate::clients::{ask, connect, endpoint, soon};
use crate::server::Server;

/// A process that is killed when dropped.
struct Router(Child);

impl Drop for Router {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Clients that move are routed to their servers by connection ids, wherever a hash of their address leads.
#[tokio::test(flavor = "multi_thread")]
async fn a_moving_client_stays_with_its_server() {
    let authority = Authority::new("routed");
    let secret = std::path::PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("routed-secret");
    std::fs::write(&secret, "4f".repeat(32)).unwrap();
    let servers = ["1", "2"].map(|id| {
        let secret = secret.to_str().unwrap();
        let fleet = [
            "--server-id",
            id,
            "--server-id-length",
            "1",
            "--fleet-secret",
            secret,
        ];
        Server::start(&authority, &fleet)
    });
    let mut command = Command::new(env!("CARGO_BIN_EXE_quic_lb_router"));
    command.args(["--listen", "127.0.0.1:0"]);
    command.args(servers.iter().map(|server| server.address.to_string()));
    let mut router = Router(command.stdout(Stdio::piped()).spawn().unwrap());
    let mut line = String::new();
    let mut lines = BufReader::new(router.0.stdout.take().unwrap());
    lines.read_line(&mut line).unwrap();
    let public = line
        .trim()
        .strip_prefix("listening on ")
        .unwrap()
        .parse()
        .unwrap();

    let client = endpoint(authority.trust());
    let connection = connect(&client, public).await.unwrap();
    for number in 0..8 {
        ask(&connection, number).await.unwrap();
        client.rebind("127.0.0.1:0").unwrap();
    }
    ask(&connection, 8).await.unwrap();
    connection.close(0, b"done");
    soon(client.idle()).await;
}
