//! Tests that every example runs and does what its documentation promises.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use std::fs;
use std::net::UdpSocket;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

use common::Running;

const ECHO_SERVER: &str = env!("CARGO_BIN_EXE_echo_server");
const ECHO_CLIENT: &str = env!("CARGO_BIN_EXE_echo_client");
const PQ_SERVER: &str = env!("CARGO_BIN_EXE_post_quantum_server");
const PQ_CLIENT: &str = env!("CARGO_BIN_EXE_post_quantum_client");
const DATAGRAMS: &str = env!("CARGO_BIN_EXE_datagrams");
const CHANNEL_BINDING: &str = env!("CARGO_BIN_EXE_channel_binding");
const MASQUE: &str = env!("CARGO_BIN_EXE_masque");
const MIGRATING_CLIENT: &str = env!("CARGO_BIN_EXE_migrating_client");
const EARLY_SERVER: &str = env!("CARGO_BIN_EXE_early_data_server");
const EARLY_CLIENT: &str = env!("CARGO_BIN_EXE_early_data_client");
const FILE_TRANSFER: &str = env!("CARGO_BIN_EXE_file_transfer");
const QLOG_CLIENT: &str = env!("CARGO_BIN_EXE_qlog_client");

/// A running server example with a certificate of its own.
struct Server {
    running: Running,
    ca: PathBuf,
}

impl Server {
    /// Starts it on a free port with a new certificate. `name` separates the files of tests.
    fn start(program: &str, name: &str, args: &[&str]) -> Self {
        absent(&format!("{name}-ca.key"));
        Self::launch(program, absent(&format!("{name}-ca.pem")), args)
    }

    fn launch(program: &str, ca: PathBuf, args: &[&str]) -> Self {
        Self::launch_at("127.0.0.1:0", program, ca, args)
    }

    fn launch_at(address: &str, program: &str, ca: PathBuf, args: &[&str]) -> Self {
        let mut command = Command::new(program);
        command.args(["--listen", address, "--ca"]).arg(&ca);
        let running = Running::run(command.args(args));
        Self { running, ca }
    }

    fn address(&self) -> String {
        self.running.address.to_string()
    }

    fn client(&self, program: &str, args: &[&str]) -> Output {
        Command::new(program)
            .arg(self.address())
            .arg("--ca")
            .arg(&self.ca)
            .args(args)
            .output()
            .unwrap()
    }
}

fn file(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name)
}

/// Returns the path of a file that does not exist.
fn absent(name: &str) -> PathBuf {
    let path = file(name);
    let _ = fs::remove_file(&path);
    path
}

fn stdout(output: &Output) -> String {
    let (stdout, stderr) = (&output.stdout, &output.stderr);
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(stderr)
    );
    String::from_utf8(stdout.clone()).unwrap()
}

/// Returns the only line of a program that failed.
fn complaint(output: &Output) -> String {
    assert!(!output.status.success());
    let text = String::from_utf8(output.stderr.clone()).unwrap();
    let mut lines = text
        .lines()
        .filter(|line| !line.starts_with("NOT FOR PRODUCTION"));
    let line = lines.next().unwrap_or_default().to_owned();
    assert_eq!(lines.next(), None, "more than one line: {text}");
    line
}

#[test]
fn the_echo_comes_back_over_a_post_quantum_connection() {
    let server = Server::start(ECHO_SERVER, "echo", &[]);
    for _ in 0..2 {
        let said = stdout(&server.client(ECHO_CLIENT, &[]));
        assert_eq!(
            said,
            "connected with X25519MLKEM768\nhello, post-quantum world\n"
        );
    }
}

#[test]
fn a_connection_moves_to_another_address() {
    let server = Server::start(ECHO_SERVER, "migrating", &[]);
    let said = stdout(&server.client(MIGRATING_CLIENT, &[]));
    let lines: Vec<_> = said.lines().collect();
    assert!(lines[0].starts_with("first from "), "{said}");
    assert!(lines[1].starts_with("now from "), "{said}");
    assert_eq!(lines[2], "before and after");
    let port = |line: &str| line.rsplit(':').next().map(str::to_owned);
    assert_ne!(port(lines[0]), port(lines[1]));
}

#[test]
fn the_second_request_leaves_before_the_handshake() {
    let mut server = Server::start(EARLY_SERVER, "early", &[]);
    let said = stdout(&server.client(EARLY_CLIENT, &[]));
    assert_eq!(
        said,
        "no ticket yet: connected first\nhere you are\n0-RTT data: Accepted\nhere you are\n"
    );
    assert_eq!(server.running.line(), "GET (in time)");
    assert_eq!(server.running.line(), "GET early (early)");
}

#[test]
fn a_second_server_leaves_the_clients_of_the_first_their_trust() {
    let server = Server::start(ECHO_SERVER, "shared", &[]);
    let second = Server::launch(PQ_SERVER, server.ca.clone(), &[]);
    assert!(stdout(&server.client(ECHO_CLIENT, &[])).contains("hello"));
    let said = stdout(&second.client(PQ_CLIENT, &[]));
    assert!(said.contains("with --key-log FILE"), "{said}");
}

#[test]
fn a_server_overwrites_no_file_it_did_not_make() {
    let (notes, other_notes) = (file("notes.pem"), file("no-cert.key"));
    let (no_key, no_cert, both) = (
        absent("notes.key"),
        absent("no-cert.pem"),
        absent("both.key"),
    );
    fs::write(&notes, "my notes").unwrap();
    fs::write(&other_notes, "my other notes").unwrap();
    for ca in [&notes, &no_cert, &both] {
        let output = Command::new(ECHO_SERVER)
            .args(["--listen", "127.0.0.1:0", "--ca"])
            .arg(ca)
            .output()
            .unwrap();
        let line = complaint(&output);
        assert!(line.contains("is not overwritten"), "{line}");
        assert!(line.contains(ca.to_str().unwrap()), "{line}");
    }
    assert_eq!(fs::read_to_string(&notes).unwrap(), "my notes");
    assert_eq!(fs::read_to_string(&other_notes).unwrap(), "my other notes");
    for made in [no_key, no_cert, both] {
        assert!(!made.exists(), "{}", made.display());
    }
}

#[test]
fn a_client_that_does_not_trust_the_server_says_so() {
    let server = Server::start(ECHO_SERVER, "stranger", &[]);
    let other = Server::start(ECHO_SERVER, "other", &[]);
    let output = Command::new(ECHO_CLIENT)
        .arg(server.address())
        .arg("--ca")
        .arg(&other.ca)
        .output()
        .unwrap();
    assert!(!complaint(&output).is_empty());
}

#[test]
fn a_qlog_has_a_header_and_every_event_of_a_transfer() {
    let server = Server::start(ECHO_SERVER, "qlog", &[]);
    let directory = file("qlogs");
    let _ = fs::remove_dir_all(&directory);
    let said = stdout(&server.client(QLOG_CLIENT, &["--qlog", directory.to_str().unwrap()]));
    assert!(said.contains("1048576 bytes came back"), "{said}");
    let (_, path) = said.trim_end().split_once("see ").unwrap();
    let text = fs::read_to_string(path).unwrap();
    // RFC 7464: every text between a record separator and a line feed.
    let records: Vec<serde_json::Value> = text
        .strip_prefix('\u{1e}')
        .unwrap()
        .split('\u{1e}')
        .map(|text| serde_json::from_str(text.strip_suffix('\n').unwrap()).unwrap())
        .collect();
    let (header, events) = records.split_first().unwrap();
    assert_eq!(header["trace"]["vantage_point"]["type"], "client");
    assert_eq!(events[0]["name"], "connectivity:connection_started");
    for name in [
        "connectivity:connection_state_updated",
        "connectivity:connection_closed",
        "transport:packet_sent",
        "transport:packet_received",
        "security:key_exchange",
        "recovery:metrics_updated",
        "recovery:loss_timer_updated",
    ] {
        assert!(events.iter().any(|event| event["name"] == name), "{name}");
    }
    let times: Vec<_> = events.iter().map(|event| event["time"].as_f64()).collect();
    assert!(times.is_sorted() && times[0] == Some(0.0));
    let stream = |event: &serde_json::Value| {
        let frames = event["data"]["frames"].as_array().unwrap();
        frames.iter().any(|frame| frame["frame_type"] == "stream")
    };
    let sent = |event: &&serde_json::Value| event["name"] == "transport:packet_sent";
    assert!(
        events
            .iter()
            .filter(sent)
            .filter(|event| stream(event))
            .count()
            > 700
    );
}

#[test]
fn datagrams_arrive_without_being_sent_again() {
    absent("datagrams-ca.key");
    let output = Command::new(DATAGRAMS)
        .args(["--listen", "127.0.0.1:0", "--ca"])
        .arg(absent("datagrams-ca.pem"))
        .output()
        .unwrap();
    let said = stdout(&output);
    assert!(said.contains("the last position seen is Some("), "{said}");
}

#[test]
fn an_answer_that_is_bound_to_a_connection_is_worth_nothing_on_another() {
    absent("binding-ca.key");
    let output = Command::new(CHANNEL_BINDING)
        .args(["--listen", "127.0.0.1:0", "--ca"])
        .arg(absent("binding-ca.pem"))
        .output()
        .unwrap();
    let said = stdout(&output);
    assert!(
        said.contains("the client's answer is right: true"),
        "{said}"
    );
    assert!(
        said.contains("passed on to another connection: false"),
        "{said}"
    );
}

#[test]
fn a_connection_runs_inside_of_another() {
    absent("masque-ca.key");
    let output = Command::new(MASQUE)
        .args(["--listen", "127.0.0.1:0", "--ca"])
        .arg(absent("masque-ca.pem"))
        .output()
        .unwrap();
    let said = stdout(&output);
    for line in [
        "outside: X25519MLKEM768",
        "inside: X25519MLKEM768",
        "received: hello through the tunnel",
        "the target sees the proxy: true",
    ] {
        assert!(said.contains(line), "{said}");
    }
}

#[test]
fn both_ends_tell_the_negotiated_group() {
    let mut server = Server::start(PQ_SERVER, "pq", &[]);
    let said = stdout(&server.client(PQ_CLIENT, &[]));
    assert!(
        said.contains("group          X25519MLKEM768 (0x11ec, Hybrid)\n"),
        "{said}"
    );
    assert!(said.contains("hello retry    no\n"), "{said}");
    assert!(said.contains("client share   1216 B\n"), "{said}");
    assert!(said.contains("server share   1120 B\n"), "{said}");
    let line = server.running.line();
    assert!(line.contains("X25519MLKEM768 (0x11ec, Hybrid)"), "{line}");
}

#[test]
fn a_classical_share_first_is_answered_by_a_hello_retry_request() {
    let mut server = Server::start(PQ_SERVER, "retry", &[]);
    let said = stdout(&server.client(PQ_CLIENT, &["--groups", "X25519,X25519MLKEM768"]));
    assert!(said.contains("group          X25519MLKEM768"), "{said}");
    assert!(said.contains("hello retry    yes\n"), "{said}");
    assert!(
        server
            .running
            .line()
            .ends_with(", after a HelloRetryRequest")
    );
}

#[test]
fn a_server_that_requires_post_quantum_refuses_a_classical_client() {
    let mut server = Server::start(PQ_SERVER, "require", &["--require"]);
    let output = server.client(PQ_CLIENT, &["--groups", "X25519"]);
    assert!(complaint(&output).contains("key exchange"), "{output:?}");
    assert!(server.running.line().contains("key exchange"));
    assert!(stdout(&server.client(PQ_CLIENT, &[])).contains("X25519MLKEM768"));
}

#[test]
fn a_server_that_goes_back_is_refused_by_later_runs_of_a_client_that_remembers() {
    let server = Server::start(PQ_SERVER, "servers", &[]);
    let known = absent("servers.bin");
    let remember = ["--servers", known.to_str().unwrap()];
    for _ in 0..2 {
        assert!(stdout(&server.client(PQ_CLIENT, &remember)).contains("X25519MLKEM768"));
    }
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        let mode = fs::metadata(&known).unwrap().permissions().mode();
        assert_eq!(mode & 0o077, 0, "nobody else may read it");
    }
    // A server is known by its name and port.
    let (address, ca) = (server.address(), server.ca.clone());
    drop(server);
    let server = Server::launch_at(&address, PQ_SERVER, ca, &["--groups", "X25519"]);
    let before = fs::read(&known).unwrap();
    let line = complaint(&server.client(PQ_CLIENT, &remember));
    assert!(
        line.contains("post-quantum") && line.contains("X25519"),
        "{line}"
    );
    assert_eq!(fs::read(&known).unwrap(), before);
    // Who does not remember does not notice.
    assert!(stdout(&server.client(PQ_CLIENT, &[])).contains("group          X25519 "));
    fs::write(&known, "no servers").unwrap();
    let line = complaint(&server.client(PQ_CLIENT, &remember));
    assert!(line.contains("servers.bin"), "{line}");
}

#[test]
fn the_key_log_has_the_secrets_of_both_directions() {
    let server = Server::start(PQ_SERVER, "keylog", &[]);
    let log = absent("keylog.txt");
    let said = stdout(&server.client(PQ_CLIENT, &["--key-log", log.to_str().unwrap()]));
    assert!(said.contains("tls.keylog_file"), "{said}");
    let text = fs::read_to_string(&log).unwrap();
    for label in ["CLIENT_HANDSHAKE_TRAFFIC_SECRET", "SERVER_TRAFFIC_SECRET_0"] {
        assert!(text.contains(label), "{text}");
    }
}

#[test]
fn bad_input_is_told_in_one_line() {
    let taken = UdpSocket::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    absent("bad-input-ca.key");
    let ca = absent("bad-input-ca.pem");
    let ca = ca.to_str().unwrap();
    let run = |program: &str, args: &[&str]| Command::new(program).args(args).output().unwrap();

    let line = complaint(&run(ECHO_SERVER, &["--listen", &address, "--ca", ca]));
    assert!(line.contains(&address) || line.contains("in use"), "{line}");

    let line = complaint(&run(
        ECHO_SERVER,
        &["--cert", "/no/such.pem", "--key", "/no/such.pem"],
    ));
    assert!(line.contains("cannot read /no/such.pem"), "{line}");

    let line = complaint(&run(ECHO_CLIENT, &["--ca", "/no/such.pem"]));
    assert!(line.contains("cannot read /no/such.pem"), "{line}");

    fs::write(ca, "no certificate in here").unwrap();
    let line = complaint(&run(ECHO_CLIENT, &["--ca", ca]));
    assert!(line.contains("BEGIN CERTIFICATE"), "{line}");

    Server::start(PQ_SERVER, "groups", &[]);
    let made = file("groups-ca.pem");
    let line = complaint(&run(
        PQ_CLIENT,
        &["--ca", made.to_str().unwrap(), "--groups", "X448"],
    ));
    assert!(
        line.contains("unknown group 'X448'; valid: X25519MLKEM768"),
        "{line}"
    );
}

/// Runs file_transfer with a folder of its own for keys.
fn transfer(keys: &str, args: &[&str]) -> Output {
    let mut command = Command::new(FILE_TRANSFER);
    command.arg("--config").arg(file(keys)).args(args);
    command.stdin(Stdio::null()).output().unwrap()
}

#[test]
fn a_folder_is_pushed_and_pulled_between_ends_that_know_each_other() {
    let place = file("transfer");
    let _ = fs::remove_dir_all(&place);
    fs::create_dir_all(place.join("source/in")).unwrap();
    fs::create_dir_all(place.join("served")).unwrap();
    fs::write(place.join("source/in/file"), "from end to end").unwrap();
    let at = |part: &str| place.join(part).to_str().unwrap().to_owned();

    let mut command = Command::new(FILE_TRANSFER);
    command.args(["--config", &at("server"), "serve", &at("served")]);
    command.args(["--listen", "127.0.0.1:0"]);
    let server = Running::run(&mut command);
    let remote = format!("{}/backup", server.address);

    let push = ["push", &at("source"), &remote, "--accept-new"];
    let refused = transfer("transfer/client", &push);
    assert_eq!(refused.status.code(), Some(4));
    let said = complaint(&refused);
    let (_, key) = said.split_once("file_transfer authorize ").unwrap();
    let identity = |keys| stdout(&transfer(keys, &["identity"]));
    assert_eq!(identity("transfer/client"), format!("{key}\n"));
    let other = identity("transfer/other");
    for key in [key, other.trim()] {
        stdout(&transfer("transfer/server", &["authorize", key, "laptop"]));
    }
    // Nobody can be asked about the server's key.
    let refused = transfer("transfer/other", &push[..3]);
    assert_eq!(refused.status.code(), Some(3));
    assert!(complaint(&refused).contains("--accept-new"));

    let said = stdout(&transfer("transfer/client", &push));
    assert!(said.starts_with("1 files written"), "{said}");
    let said = stdout(&transfer(
        "transfer/client",
        &["--quiet", "pull", &remote, &at("pulled")],
    ));
    assert_eq!(said, "");
    let pulled = fs::read_to_string(place.join("pulled/in/file")).unwrap();
    assert_eq!(pulled, "from end to end");

    // Another server took its place.
    let hosts = place.join("client/known_hosts");
    fs::write(&hosts, format!("{} {key}\n", server.address)).unwrap();
    let refused = transfer("transfer/client", &["pull", &remote, &at("pulled")]);
    assert_eq!(refused.status.code(), Some(3));
    let text = String::from_utf8(refused.stderr).unwrap();
    assert!(
        text.contains("HAS CHANGED") && text.contains("remove line 1 of"),
        "{text}"
    );
}
