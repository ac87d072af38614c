//! Stacks as servers of our client.

use std::{fs, net::SocketAddr, path::Path, process::Stdio};

use bytes::Bytes;
use http::{Method, Request, Version};
use http_body_util::Full;
use hybriq::{ClientConfig, Trust};
use hybriq_http::{Client, Http3, Peer};
use tokio::{
    io::{AsyncBufReadExt as _, BufReader},
    process::{Child, Command},
};

use super::{
    Answer, Files, POST_QUANTUM, check, clients::PEER, installed, listens, pattern, sha256,
    support::soon,
};

/// Our client, for one server.
pub(super) struct Asking {
    client: Client,
    server: SocketAddr,
}

impl Asking {
    fn new(server: SocketAddr, files: &Files) -> Self {
        let trust = Trust::roots_pem_file(files.path("cert.pem")).unwrap();
        Self::with(server, ClientConfig::new().trust(trust))
    }

    pub(super) fn with(server: SocketAddr, config: ClientConfig) -> Self {
        let builder = Client::builder().http3(Http3::Only);
        let builder = builder.resolve("localhost", [SocketAddr::new(server.ip(), 0)]);
        let client = builder.build(config).unwrap();
        Self { client, server }
    }

    async fn ask(&self, case: &str, method: Method, path: &str, body: Vec<u8>) -> Answer {
        let uri = format!("https://localhost:{}{path}", self.server.port());
        let request = Request::builder().method(method).uri(uri);
        let request = request.body(Full::new(Bytes::from(body))).unwrap();
        let response = soon(self.client.request(request)).await;
        let response = response.unwrap_or_else(|error| panic!("{case} {path}: {error}"));
        assert_eq!(response.version(), Version::HTTP_3);
        let peer = response.extensions().get::<Peer>().unwrap().clone();
        let status = response.status().as_u16();
        let names = response.headers().keys();
        let fields = names
            .filter(|name| name.as_str().starts_with("x-field-"))
            .count();
        let body = soon(response.into_body().bytes(10 << 20)).await.unwrap();
        Answer {
            case: case.to_owned(),
            status,
            len: body.len(),
            sha256: sha256(&body),
            group: peer.tls.to_string(),
            fields,
        }
    }

    /// Asks for all cases.
    pub(super) async fn all(&self) -> Vec<Answer> {
        let body = pattern(1_000_000);
        let mut answers = vec![
            self.ask("small", Method::GET, "/bytes/10", vec![]).await,
            self.ask("empty", Method::GET, "/bytes/0", vec![]).await,
            self.ask("large", Method::GET, "/bytes/5000000", vec![])
                .await,
            self.ask("upload", Method::POST, "/echo", body).await,
            self.ask("head", Method::HEAD, "/bytes/1000", vec![]).await,
            self.ask("fields", Method::GET, "/fields/100", vec![]).await,
            self.ask("missing", Method::GET, "/missing", vec![]).await,
        ];
        let paths: Vec<_> = (1000..1100).map(|len| format!("/bytes/{len}")).collect();
        let asked = paths
            .iter()
            .map(|path| self.ask("parallel", Method::GET, path, vec![]));
        answers.extend(futures_util::future::join_all(asked).await);
        answers
    }
}

/// Starts a server that prints its address.
pub(super) async fn start(command: &mut Command) -> (Child, SocketAddr) {
    let command = command.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.kill_on_drop(true).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let line = soon(lines.next_line())
        .await
        .unwrap()
        .expect("the server ended");
    (child, line.parse().unwrap())
}

async fn python(stack: &str, group: &str) {
    let Some(python) = installed("venv/bin/python") else {
        return;
    };
    let files = Files::new(Path::new("/"), &format!("{stack}-server"));
    let mut command = Command::new(python);
    let command = command.args([PEER, stack, "server"]);
    let command = command.args([files.path("cert.pem"), files.path("key.pem")]);
    let (_child, address) = start(command).await;
    check(&Asking::new(address, &files).all().await, group);
}

#[tokio::test]
async fn aioquic_serves() {
    python("aioquic", "X25519").await;
}

#[tokio::test]
async fn qh3_serves() {
    python("qh3", POST_QUANTUM).await;
}

#[tokio::test]
async fn quic_go_serves() {
    let Some(program) = installed("quicgo") else {
        return;
    };
    let files = Files::new(Path::new("/"), "quicgo-server");
    let mut command = Command::new(program);
    let command = command
        .arg("server")
        .args([files.path("cert.pem"), files.path("key.pem")]);
    let (_child, address) = start(command).await;
    check(&Asking::new(address, &files).all().await, POST_QUANTUM);
}

/// nginx serves files, and takes what is put by WebDAV.
#[tokio::test]
async fn nginx_serves() {
    let Some(chroot) = installed("chroot") else {
        return;
    };
    let files = Files::new(&chroot, "nginx");
    let content = files.path("bytes");
    fs::create_dir(&content).unwrap();
    for len in [0, 10, 1000, 5_000_000].into_iter().chain(1000..1100) {
        fs::write(content.join(len.to_string()), pattern(len)).unwrap();
    }
    // A free port, for a moment at least.
    let free = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    let server = free.local_addr().unwrap();
    drop(free);
    fs::write(files.path("nginx.conf"), configuration(&files, server)).unwrap();
    let mut command = Command::new("chroot");
    let command = command
        .arg(&chroot)
        .args(["nginx", "-c", &files.seen("nginx.conf")]);
    let Ok(_child) = command.kill_on_drop(true).spawn() else {
        test_summary::skip("a chroot needs root");
        return;
    };
    listens(server).await;
    let asking = Asking::new(server, &files);
    let mut answers = asking.all().await;
    // The server echoes nothing: the upload is read back.
    let put = asking
        .ask("put", Method::PUT, "/put/file", pattern(1_000_000))
        .await;
    assert_eq!(put.status, 201);
    let again = asking.ask("upload", Method::GET, "/put/file", vec![]).await;
    answers.retain(|answer| answer.case != "upload");
    answers.push(again);
    check(&answers, POST_QUANTUM);
}

fn configuration(files: &Files, server: SocketAddr) -> String {
    let folder = files.seen("") + "/";
    let field = |index| format!("add_header x-field-{index} \"v{}\";", "v".repeat(index));
    let fields = (0..100).map(field).collect::<Vec<_>>().join("\n");
    format!(
        "daemon off; master_process off; pid {folder}pid; error_log stderr crit; user root;
         events {{ worker_connections 512; }}
         http {{
             access_log off; client_max_body_size 10m; client_body_temp_path {folder}temp;
             server {{
                 listen {server} quic;
                 ssl_certificate {folder}cert.pem; ssl_certificate_key {folder}key.pem;
                 root {folder};
                 location /fields/ {{ {fields} return 200; }}
                 location /put/ {{ dav_methods PUT; create_full_put_path on; }}
             }}
         }}"
    )
}
