//! Connections over loopback write logs that the drafts of qlog describe.
#![cfg(feature = "qlog")]
#![allow(
    clippy::unwrap_used,
    reason = "a failure of what the tests share is a failed test"
)]

mod cddl;
#[path = "../endpoint_support/mod.rs"]
mod endpoint_support;
mod reader;

use std::{
    fs,
    io::{self, Write},
    net::SocketAddr,
    path::{Path, PathBuf},
    sync::{Arc, Condvar, Mutex},
};

use endpoint_support::{Pair, client_config, server_config, soon};
use hybriq::{
    ClientConfig, Endpoint, Group, KeyExchange, TransportConfig,
    memory::Continuity,
    qlog::{Qlog, QlogBuilder, Schema},
    tls::Side,
};

use reader::Log;

/// An empty directory for one test.
fn directory(name: &str) -> PathBuf {
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("qlog-{name}"));
    let _ = fs::remove_dir_all(&path);
    path
}

fn client(qlog: &Qlog) -> Endpoint {
    let builder = Endpoint::builder().client(client_config()).qlog(qlog);
    builder.bind("127.0.0.1:0").unwrap()
}

fn server(qlog: &Qlog) -> Endpoint {
    let builder = Endpoint::builder().server(server_config()).qlog(qlog);
    builder.bind("127.0.0.1:0").unwrap()
}

fn plain_server() -> Endpoint {
    endpoint_support::server("127.0.0.1:0")
}

/// Closes a connection at both ends and waits until nothing is left of it.
async fn end(pair: Pair) {
    pair.client.close(7, b"\"done\"\n");
    soon(pair.server.closed()).await;
    let Pair {
        client_endpoint,
        server_endpoint,
        ..
    } = pair;
    soon(client_endpoint.idle()).await;
    soon(server_endpoint.idle()).await;
}

/// Returns the names of the files, sorted.
fn files(directory: &Path) -> Vec<String> {
    let entries = fs::read_dir(directory).unwrap();
    let mut names: Vec<_> = entries
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

fn read(directory: &Path, name: &str, schema: Schema) -> Log {
    Log::read(&fs::read_to_string(directory.join(name)).unwrap(), schema)
}

#[tokio::test]
async fn both_ends_write_a_file_that_the_drafts_describe() {
    for schema in [Schema::V03, Schema::Draft13] {
        let path = directory(&format!("both-{schema:?}"));
        let qlog = Qlog::directory(&path).schema(schema).start().unwrap();
        let pair = Pair::of(server(&qlog), client(&qlog)).await;
        let message = vec![7; 300_000];
        assert_eq!(pair.echo(&message).await, message);
        pair.client.send_datagram(vec![1; 100].into()).unwrap();
        let datagram = soon(pair.server.recv_datagram()).await.unwrap();
        assert_eq!(datagram.unwrap()[..], [1; 100]);
        let (id, sent) = (pair.client.id(), pair.client.stats().packets_sent);
        end(pair).await;
        qlog.flush();

        let expected = ["client", "server"].map(|role| format!("{id}_{role}.sqlog"));
        assert_eq!(files(&path), expected);
        for (side, name) in [Side::Client, Side::Server].into_iter().zip(expected) {
            let log = read(&path, &name, schema);
            check_connection(&log, side, sent);
            let point = &log.header["trace"]["vantage_point"]["type"];
            assert_eq!(point, &format!("{side:?}").to_lowercase());
            assert_eq!(
                log.header["trace"]["common_fields"]["group_id"],
                id.to_string()
            );
        }
        let stats = qlog.stats();
        assert_eq!((stats.connections, stats.events_dropped), (2, 0));
        assert_eq!((stats.not_sampled, stats.write_errors), (0, 0));
        fs::remove_dir_all(&path).unwrap();
    }
}

fn check_connection(log: &Log, side: Side, sent_by_client: u64) {
    let names = [
        "connection_started",
        "version_information",
        "alpn_information",
        "parameters_set",
        "packet_sent",
        "packet_received",
        "key_exchange",
        "key_updated",
        "key_discarded",
        "connection_state_updated",
        "connection_closed",
    ];
    for name in names {
        assert!(!log.data(name).is_empty(), "{side:?} has no {name}");
    }
    let metrics = log.data("metrics_updated").len() + log.data("recovery_metrics_updated").len();
    assert!(metrics > 0);
    let key_exchange = log.data("key_exchange")[0];
    assert_eq!(key_exchange["group"], "X25519MLKEM768");
    assert_eq!(key_exchange["group_id"], 0x11ec);
    assert_eq!(key_exchange["post_quantum"], true);
    assert_eq!(key_exchange["hello_retry_request"], false);
    let closed = log.data("connection_closed")[0];
    assert_eq!(closed["trigger"], "application");
    assert_eq!(closed["reason"], "\"done\"\n");
    let by = if side.is_client() { "local" } else { "remote" };
    assert!(closed["owner"] == by || closed["initiator"] == by);
    let sent = log.data("packet_sent");
    if side.is_client() {
        // And a few that close the connection.
        assert!((sent_by_client..sent_by_client + 5).contains(&(sent.len() as u64)));
    }
    let frames = sent
        .iter()
        .flat_map(|data| data["frames"].as_array().unwrap());
    let stream: Vec<_> = frames
        .filter(|frame| frame["frame_type"] == "stream")
        .collect();
    let bytes = |frame: &serde_json::Value| {
        let length = &frame["length"];
        let length = if length.is_null() {
            &frame["raw"]["payload_length"]
        } else {
            length
        };
        length.as_u64().unwrap()
    };
    let bytes: u64 = stream.iter().map(|frame| bytes(frame)).sum();
    assert!(bytes >= 300_000, "{bytes}");
    assert!(stream.iter().any(|frame| frame["fin"] == true));
    // The drafts name the secrets; the log has none.
    for updated in log.data("key_updated") {
        assert!(updated["new"].is_null() || updated["new"] == "");
    }
    assert!(!log.events.iter().any(|event| {
        let text = event.to_string();
        text.contains("stateless_reset_token")
    }));
}

#[tokio::test]
async fn a_hello_retry_and_a_classical_group_are_told() {
    let classical_first = [Group::X25519, Group::X25519MLKEM768];
    let cases = [
        (
            KeyExchange::Exactly(classical_first.into()),
            true,
            "X25519MLKEM768",
        ),
        (KeyExchange::OnlyClassical, false, "X25519"),
    ];
    for (policy, hello_retry, group) in cases {
        let path = directory(&format!("retry-{hello_retry}"));
        let qlog = Qlog::directory(&path).start().unwrap();
        let config = client_config().key_exchange(policy);
        let builder = Endpoint::builder().client(config).qlog(&qlog);
        let pair = Pair::of(server(&qlog), builder.bind("127.0.0.1:0").unwrap()).await;
        end(pair).await;
        qlog.flush();
        let names = files(&path);
        assert_eq!(names.len(), 2);
        for name in names {
            let log = read(&path, &name, Schema::V03);
            let told = log.data("key_exchange")[0];
            assert_eq!(told["hello_retry_request"], hello_retry);
            assert_eq!(told["group"], group);
            assert_eq!(told["post_quantum"], hello_retry);
        }
        fs::remove_dir_all(&path).unwrap();
    }
}

/// A server that was post-quantum and no longer is: what the client reports, and what it refuses, is
/// in its log, in both schemas.
#[tokio::test]
async fn a_downgrade_is_told() {
    for schema in [Schema::V03, Schema::Draft13] {
        let path = directory(&format!("downgrade-{schema:?}"));
        let qlog = Qlog::directory(&path).schema(schema).start().unwrap();
        let report = client_config()
            .without_resumption()
            .continuity(Continuity::Report);
        let client = |config: &ClientConfig| {
            let builder = Endpoint::builder().client(config.clone());
            builder.qlog(&qlog).bind("127.0.0.1:0").unwrap()
        };
        let address: SocketAddr = "127.0.0.1:0".parse().unwrap();
        let server = Endpoint::server(address, server_config()).unwrap();
        end(Pair::of(server.clone(), client(&report)).await).await;
        let classical = server_config().key_exchange(KeyExchange::OnlyClassical);
        server.set_server_config(classical).unwrap();
        end(Pair::of(server.clone(), client(&report)).await).await;
        let refuse = client(&report.continuity(Continuity::Refuse));
        let connecting = refuse.connect(server.local_address(), "localhost");
        let accepting = async { server.accept().await.unwrap().accept().await };
        let (refused, _) = soon(async { tokio::join!(connecting, accepting) }).await;
        refused.unwrap_err();
        soon(refuse.idle()).await;
        qlog.flush();

        let logs = files(&path);
        let logs = logs.iter().map(|name| read(&path, name, schema));
        let [mut honest, mut reported, mut refused] = [0; 3];
        for log in logs {
            let outcome = log.data("key_exchange").first().copied();
            let ended = log.data("connection_closed")[0];
            match outcome.map(|data| data["downgrade"].as_str()) {
                Some(None) => honest += 1,
                Some(Some(text)) => {
                    assert!(text.contains("X25519"), "{text}");
                    reported += 1;
                }
                None => {
                    let text = ended["reason"].as_str().unwrap();
                    assert!(text.contains("post-quantum"), "{ended}");
                    refused += 1;
                }
            }
        }
        assert_eq!([honest, reported, refused], [1, 1, 1]);
        fs::remove_dir_all(&path).unwrap();
    }
}

/// Opens and closes a connection for each of this many clients of one server.
async fn connect(qlog: &Qlog, clients: usize) {
    for _ in 0..clients {
        let pair = Pair::of(plain_server(), client(qlog)).await;
        end(pair).await;
    }
}

#[tokio::test]
async fn a_sample_is_logged_and_the_rest_is_counted() {
    let path = directory("sample");
    let qlog = Qlog::directory(&path).sample(1, 3).start().unwrap();
    connect(&qlog, 6).await;
    qlog.flush();
    assert_eq!(files(&path).len(), 2);
    assert_eq!((qlog.stats().connections, qlog.stats().not_sampled), (2, 4));

    let other = directory("sample-if");
    let qlog = Qlog::directory(&other)
        .sample_if(|candidate| candidate.side.is_server())
        .start()
        .unwrap();
    end(Pair::of(server(&qlog), client(&qlog)).await).await;
    qlog.flush();
    let names = files(&other);
    assert!(matches!(&names[..], [name] if name.ends_with("_server.sqlog")));
    fs::remove_dir_all(&path).unwrap();
    fs::remove_dir_all(&other).unwrap();
}

#[tokio::test]
async fn a_configuration_may_have_a_sampler_of_its_own() {
    let [path, other] = ["own", "endpoint"].map(directory);
    let own = Qlog::directory(&path).without_addresses().start().unwrap();
    let of_endpoint = Qlog::directory(&other).start().unwrap();
    let transport = TransportConfig::new().sampler(Arc::new(own.clone()));
    let config = client_config().transport(transport);
    let builder = Endpoint::builder().client(config).qlog(&of_endpoint);
    let client = builder.bind("127.0.0.1:0").unwrap();
    end(Pair::of(plain_server(), client).await).await;
    own.flush();
    assert_eq!(
        (own.stats().connections, of_endpoint.stats().connections),
        (1, 0)
    );
    let text = fs::read_to_string(path.join(&files(&path)[0])).unwrap();
    assert!(!text.contains("127.0.0.1"));
    Log::read(&text, Schema::V03);
    fs::remove_dir_all(&path).unwrap();
    fs::remove_dir_all(&other).unwrap();
}

#[tokio::test]
async fn a_log_ends_at_its_limit_and_says_what_is_missing() {
    const LIMIT: u64 = 64 * 1024;
    let path = directory("limit");
    let builder = Qlog::directory(&path).max_log_bytes(LIMIT);
    let qlog = builder.start().unwrap();
    let pair = Pair::of(plain_server(), client(&qlog)).await;
    pair.echo(&vec![7; 3 << 20]).await;
    end(pair).await;
    qlog.flush();
    let name = files(&path).remove(0);
    assert!(fs::metadata(path.join(&name)).unwrap().len() <= LIMIT);
    let log = read(&path, &name, Schema::V03);
    let stats = qlog.stats();
    assert!(stats.events_dropped > 100);
    assert_eq!(log.missing(), stats.events_dropped);
    assert_eq!(stats.events, count(&log) + stats.events_dropped);
    assert_eq!(log.data("connection_closed").len(), 1, "the end is told");
    fs::remove_dir_all(&path).unwrap();
}

/// Returns the number of events of the connection.
fn count(log: &Log) -> u64 {
    (log.events.len() - log.data("warning").len()) as u64
}

/// A stream that blocks until it is opened.
#[derive(Clone, Default)]
struct Gate(Arc<Shared>);

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    opened: Condvar,
}

#[derive(Default)]
struct State {
    is_open: bool,
    written: Vec<u8>,
}

impl Gate {
    fn open(&self) {
        self.0.state.lock().unwrap().is_open = true;
        self.0.opened.notify_all();
    }

    /// Returns what was written, and forgets it.
    fn text(&self) -> String {
        let written = std::mem::take(&mut self.0.state.lock().unwrap().written);
        String::from_utf8(written).unwrap()
    }
}

impl Write for Gate {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut state = self.0.state.lock().unwrap();
        while !state.is_open {
            state = self.0.opened.wait(state).unwrap();
        }
        state.written.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn gated(gate: &Gate) -> QlogBuilder {
    Qlog::writer(gate.clone())
}

#[tokio::test]
async fn a_writer_that_stands_still_loses_events_but_not_silently() {
    let gate = Gate::default();
    let qlog = gated(&gate).queue_bytes(100_000).start().unwrap();
    let pair = Pair::of(plain_server(), client(&qlog)).await;
    // The connection does not wait for the writer.
    pair.echo(&vec![7; 1 << 20]).await;
    end(pair).await;
    gate.open();
    qlog.flush();
    let log = Log::read(&gate.text(), Schema::V03);
    let stats = qlog.stats();
    assert!(stats.events_dropped > 100);
    assert_eq!(log.missing(), stats.events_dropped);
    assert_eq!(stats.events, count(&log) + stats.events_dropped);
}

#[tokio::test]
async fn a_stream_has_all_connections_and_one_header() {
    let gate = Gate::default();
    gate.open();
    for schema in [Schema::V03, Schema::Draft13] {
        let qlog = gated(&gate).schema(schema).start().unwrap();
        let mut ids = Vec::new();
        for _ in 0..3 {
            let pair = Pair::of(plain_server(), client(&qlog)).await;
            ids.push(pair.client.id().to_string());
            end(pair).await;
        }
        qlog.flush();
        let log = Log::read(&gate.text(), schema);
        for id in ids {
            let of_connection = log.events.iter().filter(|event| event["group_id"] == id);
            let names: Vec<_> = of_connection.map(|event| event["name"].clone()).collect();
            let ends =
                |name: &serde_json::Value, with: &str| name.as_str().unwrap().ends_with(with);
            assert!(ends(&names[0], ":connection_started"));
            assert!(ends(&names[names.len() - 1], ":connection_state_updated"));
        }
        assert_eq!(count(&log), qlog.stats().events);
    }
}

#[tokio::test]
async fn the_oldest_files_are_removed_and_others_are_left_alone() {
    let path = directory("files");
    fs::create_dir_all(&path).unwrap();
    let earlier = "00112233445566778899_server.sqlog";
    for name in [earlier, "notes.txt", "other.sqlog"] {
        fs::write(path.join(name), "earlier").unwrap();
    }
    let qlog = Qlog::directory(&path).max_files(2).start().unwrap();
    connect(&qlog, 3).await;
    qlog.flush();
    let names = files(&path);
    assert_eq!(names.len(), 4, "{names:?}");
    assert!(!names.contains(&earlier.to_owned()));
    assert!(names.contains(&"notes.txt".to_owned()) && names.contains(&"other.sqlog".to_owned()));
    assert_eq!(qlog.stats().files_removed, 2);
    fs::remove_dir_all(&path).unwrap();
}

#[tokio::test]
async fn connections_beyond_the_limit_are_not_logged() {
    let path = directory("connections");
    let qlog = Qlog::directory(&path).max_connections(1).start().unwrap();
    let first = Pair::of(plain_server(), client(&qlog)).await;
    let second = Pair::of(plain_server(), client(&qlog)).await;
    assert_eq!((qlog.stats().connections, qlog.stats().over_limit), (1, 1));
    end(first).await;
    end(second).await;
    connect(&qlog, 1).await;
    qlog.flush();
    assert_eq!((qlog.stats().connections, qlog.stats().over_limit), (2, 1));
    assert_eq!(files(&path).len(), 2);
    fs::remove_dir_all(&path).unwrap();
}

#[test]
fn a_log_says_that_its_connection_ended_without_a_close() {
    let path = directory("abandoned");
    let qlog = Qlog::directory(&path).start().unwrap();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let pair = runtime.block_on(async { Pair::of(plain_server(), client(&qlog)).await });
    drop(runtime);
    drop(pair);
    qlog.flush();
    let names = files(&path);
    assert_eq!(names.len(), 1);
    let text = fs::read_to_string(path.join(&names[0])).unwrap();
    let last = text.lines().last().unwrap();
    assert!(last.contains("warning"), "{last}");
    assert!(last.contains("the runtime ended"), "{last}");
    fs::remove_dir_all(&path).unwrap();
}

#[tokio::test]
async fn a_disk_that_cannot_be_written_hurts_no_connection() {
    let path = directory("broken");
    let qlog = Qlog::directory(&path).start().unwrap();
    fs::remove_dir_all(&path).unwrap();
    connect(&qlog, 1).await;
    qlog.flush();
    let stats = qlog.stats();
    assert!(stats.write_errors >= 1);
    assert_eq!((stats.events, stats.bytes), (stats.events_dropped, 0));
}
