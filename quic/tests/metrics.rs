//! Metrics: a recorder sees what happened, and the page on metrics lists all of them.
#![cfg(feature = "metrics")]
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod endpoint_support;

use std::{
    collections::{BTreeMap, BTreeSet},
    env,
    fmt::Write as _,
    fs,
    path::Path,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use endpoint_support::{client_config, server_config, soon};
use hybriq::{
    ClientConfig, Connection, Endpoint, EndpointBuilder, Group, KeyExchange, ServerConfig,
    fleet::{CidGenerator, RandomCids},
    memory::{Continuity, ServerMemory},
};
use metrics::{
    Counter, Gauge, Histogram, HistogramFn, Key, KeyName, Metadata, Recorder, SharedString, Unit,
};

/// A value: name, and labels in order.
type Value = (String, Vec<(String, String)>);

/// A recorder that keeps everything.
#[derive(Default)]
struct Kept {
    described: Mutex<BTreeMap<String, (&'static str, &'static str, String)>>,
    counters: Mutex<BTreeMap<Value, Arc<AtomicU64>>>,
    gauges: Mutex<BTreeMap<Value, Arc<AtomicU64>>>,
    histograms: Mutex<BTreeMap<Value, Arc<Samples>>>,
}

#[derive(Default)]
struct Samples(Mutex<Vec<f64>>);

impl HistogramFn for Samples {
    fn record(&self, value: f64) {
        self.0.lock().unwrap().push(value);
    }
}

fn value(key: &Key) -> Value {
    let labels = key
        .labels()
        .map(|label| (label.key().to_owned(), label.value().to_owned()));
    (key.name().to_owned(), labels.collect())
}

fn register<T: Default>(values: &Mutex<BTreeMap<Value, Arc<T>>>, key: &Key) -> Arc<T> {
    values
        .lock()
        .unwrap()
        .entry(value(key))
        .or_default()
        .clone()
}

impl Kept {
    fn describe(&self, kind: &'static str, name: &KeyName, unit: Option<Unit>, text: &str) {
        let unit = unit.expect("every metric has a unit").as_str();
        let mut described = self.described.lock().unwrap();
        described.insert(name.as_str().to_owned(), (kind, unit, text.to_owned()));
    }

    /// Returns the sum of a counter over the values with these labels.
    fn count(&self, name: &str, labels: &[(&str, &str)]) -> u64 {
        sum(&self.counters, name, labels)
    }

    /// Returns the sum of a gauge over all values.
    fn gauge(&self, name: &str) -> f64 {
        let gauges = self.gauges.lock().unwrap();
        let values = gauges.iter().filter(|((found, _), _)| found == name);
        values
            .map(|(_, value)| f64::from_bits(value.load(Ordering::Relaxed)))
            .sum()
    }

    fn samples(&self, name: &str) -> Vec<f64> {
        let histograms = self.histograms.lock().unwrap();
        let values = histograms.iter().filter(|((found, _), _)| found == name);
        values
            .flat_map(|(_, samples)| samples.0.lock().unwrap().clone())
            .collect()
    }

    /// Returns the names of the labels of each metric.
    fn labels(&self) -> BTreeMap<String, BTreeSet<String>> {
        let mut all = BTreeMap::<String, BTreeSet<String>>::new();
        let mut add = |(name, labels): &Value| {
            let known = all.entry(name.clone()).or_default();
            known.extend(labels.iter().map(|(label, _)| label.clone()));
        };
        self.counters.lock().unwrap().keys().for_each(&mut add);
        self.gauges.lock().unwrap().keys().for_each(&mut add);
        self.histograms.lock().unwrap().keys().for_each(&mut add);
        all
    }
}

fn sum(
    values: &Mutex<BTreeMap<Value, Arc<AtomicU64>>>,
    name: &str,
    labels: &[(&str, &str)],
) -> u64 {
    let fits = |(found, has): &Value| {
        let has =
            |(key, value): &(&str, &str)| has.iter().any(|(label, is)| label == key && is == value);
        found == name && labels.iter().all(has)
    };
    let values = values.lock().unwrap();
    let fitting = values.iter().filter(|(value, _)| fits(value));
    fitting
        .map(|(_, count)| count.load(Ordering::Relaxed))
        .sum()
}

impl Recorder for Kept {
    fn describe_counter(&self, name: KeyName, unit: Option<Unit>, text: SharedString) {
        self.describe("counter", &name, unit, &text);
    }

    fn describe_gauge(&self, name: KeyName, unit: Option<Unit>, text: SharedString) {
        self.describe("gauge", &name, unit, &text);
    }

    fn describe_histogram(&self, name: KeyName, unit: Option<Unit>, text: SharedString) {
        self.describe("histogram", &name, unit, &text);
    }

    fn register_counter(&self, key: &Key, _: &Metadata<'_>) -> Counter {
        Counter::from_arc(register(&self.counters, key))
    }

    fn register_gauge(&self, key: &Key, _: &Metadata<'_>) -> Gauge {
        Gauge::from_arc(register(&self.gauges, key))
    }

    fn register_histogram(&self, key: &Key, _: &Metadata<'_>) -> Histogram {
        Histogram::from_arc(register(&self.histograms, key))
    }
}

/// Runs a scenario with a recorder of its own. All workers have ended and reported after it.
fn record(scenario: impl Future<Output = ()>) -> Kept {
    let kept = Kept::default();
    metrics::with_local_recorder(&kept, || {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build();
        runtime.unwrap().block_on(scenario);
    });
    kept
}

fn front(config: ServerConfig) -> EndpointBuilder {
    Endpoint::builder().server(config).name("front")
}

/// Connects, exchanges a message so that a ticket arrives, and closes.
async fn visit(client: &Endpoint, config: &ClientConfig, server: &Endpoint) {
    let connecting = client.connect_with(config.clone(), server.local_address(), "localhost");
    let accepting = async { server.accept().await.unwrap().accept().await.unwrap() };
    let (at_client, at_server) = soon(async { tokio::join!(connecting, accepting) }).await;
    talk(&at_client.unwrap(), &at_server).await;
}

async fn talk(client: &Connection, server: &Connection) {
    let mut send = server.open_uni().await.unwrap();
    send.write_all(b"welcome").await.unwrap();
    send.finish();
    let mut recv = soon(client.accept_uni()).await.unwrap().unwrap();
    assert_eq!(soon(recv.read_to_end(100)).await.unwrap(), b"welcome");
    client.close(3, b"seen");
    soon(server.closed()).await;
}

async fn end(endpoints: [Endpoint; 2]) {
    for endpoint in endpoints {
        endpoint.close(0, b"");
        soon(endpoint.idle()).await;
    }
}

fn groups(groups: &[Group]) -> ClientConfig {
    client_config().key_exchange(KeyExchange::Exactly(groups.to_vec()))
}

/// A post-quantum connection, a classical one, one with a HelloRetryRequest, one that is resumed, and
/// one with early data.
async fn handshakes() {
    let server = front(server_config().accept_early_data())
        .bind("127.0.0.1:0")
        .unwrap();
    let client = Endpoint::builder()
        .name("back")
        .bind("127.0.0.1:0")
        .unwrap();
    let modern = client_config();
    visit(&client, &modern, &server).await;
    visit(&client, &modern, &server).await;
    visit(&client, &groups(&[Group::X25519]), &server).await;
    visit(
        &client,
        &groups(&[Group::X25519, Group::X25519MLKEM768]),
        &server,
    )
    .await;
    let early = client_config().offer_early_data();
    visit(&client, &early, &server).await;
    let connecting = client.connect_with(early, server.local_address(), "localhost");
    let connecting = soon(connecting.early()).await.expect("there is a ticket");
    let accepting = async { server.accept().await.unwrap().accept().await.unwrap() };
    let (at_client, at_server) =
        soon(async { tokio::join!(connecting.established(), accepting) }).await;
    talk(&at_client.unwrap().0, &at_server).await;
    end([server, client]).await;
}

/// A server that is post-quantum, and then no longer is: a client reports it, another refuses it.
async fn downgrades() {
    let server = front(server_config()).bind("127.0.0.1:0").unwrap();
    let client = Endpoint::builder().name("back");
    let client = client.bind("127.0.0.1:0").unwrap();
    let report = client_config()
        .without_resumption()
        .server_memory(ServerMemory::new())
        .continuity(Continuity::Report);
    visit(&client, &report, &server).await;
    server
        .set_server_config(server_config().key_exchange(KeyExchange::OnlyClassical))
        .unwrap();
    visit(&client, &report, &server).await;
    let refuse = report.continuity(Continuity::Refuse);
    let connecting = client.connect_with(refuse, server.local_address(), "localhost");
    let accepting = async { server.accept().await.unwrap().accept().await };
    let (refused, _) = soon(async { tokio::join!(connecting, accepting) }).await;
    let refused = refused.unwrap_err();
    assert!(refused.to_string().contains("post-quantum"), "{refused}");
    end([server, client]).await;
}

#[test]
fn a_server_that_goes_back_is_counted_as_reported_or_refused() {
    let kept = record(downgrades());
    for outcome in ["reported", "refused"] {
        let labels = [
            ("what", "key_exchange"),
            ("outcome", outcome),
            ("endpoint", "back"),
        ];
        assert_eq!(kept.count("hybriq_downgrades_total", &labels), 1);
    }
    assert_eq!(kept.count("hybriq_downgrades_total", &[]), 2);
    let closed = [("role", "client"), ("reason", "downgrade")];
    assert_eq!(kept.count("hybriq_connections_closed_total", &closed), 1);
}

#[test]
fn handshakes_are_counted_by_group_kind_and_lineage() {
    let kept = record(handshakes());
    let count = |labels: &[(&str, &str)]| {
        let labels: Vec<_> = [("role", "server"), ("endpoint", "front")]
            .iter()
            .chain(labels)
            .copied()
            .collect();
        kept.count("hybriq_handshakes_total", &labels)
    };
    assert_eq!(count(&[]), 6);
    assert_eq!(
        count(&[("group", "X25519MLKEM768"), ("post_quantum", "true")]),
        5
    );
    assert_eq!(
        count(&[
            ("group", "X25519"),
            ("post_quantum", "false"),
            ("lineage", "classical")
        ]),
        1
    );
    assert_eq!(count(&[("lineage", "post_quantum")]), 5);
    assert_eq!(count(&[("kind", "full")]), 4);
    assert_eq!(count(&[("kind", "resumed"), ("hello_retry", "false")]), 1);
    assert_eq!(count(&[("kind", "0rtt")]), 1);
    assert_eq!(
        count(&[("hello_retry", "true"), ("group", "X25519MLKEM768")]),
        1
    );
    let client = [("role", "client"), ("endpoint", "back")];
    assert_eq!(kept.count("hybriq_handshakes_total", &client), 6);
    assert_eq!(
        kept.count("hybriq_early_data_total", &[("outcome", "accepted")]),
        2
    );
    assert_eq!(
        kept.count("hybriq_early_data_total", &[("outcome", "rejected")]),
        0
    );
    assert_eq!(kept.count("hybriq_connections_accepted_total", &[]), 6);
    assert_eq!(kept.count("hybriq_connections_initiated_total", &[]), 6);
    let closed = |by| {
        let labels = [
            ("by", by),
            ("reason", "application"),
            ("phase", "established"),
        ];
        kept.count("hybriq_connections_closed_total", &labels)
    };
    assert_eq!((closed("local"), closed("peer")), (6, 6));
    for name in [
        "hybriq_handshake_seconds",
        "hybriq_connection_seconds",
        "hybriq_connection_rtt_seconds",
    ] {
        let samples = kept.samples(name);
        assert_eq!(samples.len(), 12, "{name}");
        assert!(
            samples.iter().all(|&it| it > 0.0 && it < 20.0),
            "{name}: {samples:?}"
        );
    }
    assert!(kept.samples("hybriq_turn_seconds").len() > 24);
    assert!(!kept.samples("hybriq_yield_seconds").is_empty());
    assert!(
        kept.samples("hybriq_queue_depth")
            .iter()
            .all(|&it| it >= 1.0)
    );
    assert!(kept.count("hybriq_packets_sent_total", &[]) > 48);
    assert!(kept.gauge("hybriq_connections").abs() < 0.5, "all are gone");
}

#[test]
fn the_counters_are_those_of_the_endpoint() {
    let stats = Mutex::new(None);
    let kept = record(async {
        let server = front(server_config()).bind("127.0.0.1:0").unwrap();
        let client = Endpoint::builder().bind("127.0.0.1:0").unwrap();
        visit(&client, &client_config(), &server).await;
        client.close(0, b"");
        soon(client.idle()).await;
        soon(server.idle()).await;
        *stats.lock().unwrap() = Some(server.stats());
    });
    let stats = stats.into_inner().unwrap().unwrap();
    let front = [("endpoint", "front"), ("worker", "0")];
    for (name, expected) in [
        ("hybriq_datagrams_received_total", stats.datagrams_received),
        ("hybriq_datagrams_sent_total", stats.datagrams_sent),
        ("hybriq_received_bytes_total", stats.bytes_received),
        ("hybriq_sent_bytes_total", stats.bytes_sent),
        ("hybriq_receive_calls_total", stats.receive_calls),
        ("hybriq_send_calls_total", stats.send_calls),
    ] {
        assert!(expected > 0, "{name}");
        assert_eq!(kept.count(name, &front), expected, "{name}");
    }
}

#[test]
fn refusals_by_policy_and_by_limit_have_their_reasons() {
    let kept = record(async {
        let client = Endpoint::builder().bind("127.0.0.1:0").unwrap();
        let connect = |server: &Endpoint, config| {
            let connecting = client.connect_with(config, server.local_address(), "localhost");
            async { soon(connecting).await.expect_err("nobody gets in") }
        };
        let strict = server_config().key_exchange(KeyExchange::RequirePostQuantum);
        let strict = front(strict).bind("127.0.0.1:0").unwrap();
        let accepting = async { strict.accept().await.unwrap().accept().await.unwrap_err() };
        tokio::join!(connect(&strict, groups(&[Group::X25519])), accepting);
        let full = front(server_config()).max_connections(0);
        let full = full.bind("127.0.0.1:0").unwrap();
        connect(&full, client_config()).await;
        let open = front(server_config()).bind("127.0.0.1:0").unwrap();
        let refusing = async { open.accept().await.unwrap().refuse() };
        tokio::join!(connect(&open, client_config()), refusing);
        open.stop_accepting();
        connect(&open, client_config()).await;
        end([strict, full]).await;
        open.close(0, b"");
        soon(open.idle()).await;
        client.close(0, b"");
        soon(client.idle()).await;
    });
    let refused = |reason| kept.count("hybriq_clients_refused_total", &[("reason", reason)]);
    assert_eq!(refused("key_exchange"), 1);
    assert_eq!(refused("application"), 2);
    assert_eq!(refused("max_connections"), 1);
    assert_eq!(refused("max_rate_per_network"), 0);
    let closed = |reason, code| {
        let labels = [
            ("role", "client"),
            ("phase", "handshake"),
            ("reason", reason),
            ("code", code),
        ];
        kept.count("hybriq_connections_closed_total", &labels)
    };
    assert_eq!(closed("key_exchange", ""), 1);
    assert_eq!(closed("transport", "CONNECTION_REFUSED"), 3);
}

#[test]
fn memory_is_told_by_what_holds_it() {
    /// Data that nobody reads.
    const UNREAD: usize = 100_000;
    let (at_work, kept) = (Mutex::new(BTreeMap::new()), Kept::default());
    metrics::with_local_recorder(&kept, || {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build();
        runtime.unwrap().block_on(async {
            let server = front(server_config()).bind("127.0.0.1:0").unwrap();
            let client = Endpoint::builder().client(client_config());
            let client = client.bind("127.0.0.1:0").unwrap();
            let connecting = client.connect(server.local_address(), "localhost");
            let accepting = async { server.accept().await.unwrap().accept().await.unwrap() };
            let (at_client, at_server) = soon(async { tokio::join!(connecting, accepting) }).await;
            let at_client = at_client.unwrap();
            let mut send = at_client.open_uni().await.unwrap();
            send.write_all(&vec![7; UNREAD]).await.unwrap();
            send.finish();
            soon(send.acknowledged()).await.unwrap();
            // A worker that has news reports it without being asked.
            let memory = |of| {
                let labels = [("of", of), ("endpoint", "front")];
                f64::from_bits(sum(&kept.gauges, "hybriq_memory_bytes", &labels))
            };
            soon(async {
                while memory("received") < UNREAD as f64 {
                    tokio::time::sleep(Duration::from_millis(20)).await;
                }
            })
            .await;
            for of in ["connections", "received", "sent", "streams"] {
                at_work.lock().unwrap().insert(of, memory(of));
            }
            drop((at_client, at_server));
            end([server, client]).await;
        });
    });
    let at_work = at_work.into_inner().unwrap();
    assert!((at_work["received"] - UNREAD as f64).abs() < 0.5);
    assert!(at_work["sent"].abs() < 0.5, "all was acknowledged");
    assert!(at_work["connections"] > 1000.0 && at_work["streams"] > 100.0);
    assert!(
        kept.gauge("hybriq_memory_bytes").abs() < 0.5,
        "all are gone"
    );
}

#[test]
fn a_change_of_address_is_counted() {
    let kept = record(async {
        let server = front(server_config()).bind("127.0.0.1:0").unwrap();
        let client = Endpoint::builder()
            .client(client_config())
            .bind("127.0.0.1:0")
            .unwrap();
        let connecting = client.connect(server.local_address(), "localhost");
        let accepting = async { server.accept().await.unwrap().accept().await.unwrap() };
        let (at_client, at_server) = soon(async { tokio::join!(connecting, accepting) }).await;
        let at_client = at_client.unwrap();
        soon(at_client.migrate("127.0.0.1:0".parse().unwrap()))
            .await
            .unwrap();
        talk(&at_client, &at_server).await;
        end([server, client]).await;
    });
    let moved = |endpoint: &[(&'static str, &'static str)]| {
        let labels: Vec<_> = [("outcome", "done")]
            .iter()
            .chain(endpoint)
            .copied()
            .collect();
        kept.count("hybriq_migrations_total", &labels)
    };
    assert_eq!(moved(&[("endpoint", "front")]), 1);
    assert_eq!(moved(&[]), 2, "both ends know");
}

/// Ids whose generator fails once, when it is told to.
#[derive(Debug)]
struct Failing(Arc<AtomicBool>);

impl CidGenerator for Failing {
    fn len(&self) -> usize {
        8
    }

    fn generate(&self, worker: u8, cid: &mut [u8]) {
        let fails = self.0.swap(false, Ordering::Relaxed);
        assert!(!fails, "the generator was told to fail");
        RandomCids::default().generate(worker, cid);
    }

    fn worker(&self, cid: &[u8]) -> Option<u8> {
        RandomCids::default().worker(cid)
    }
}

#[test]
fn a_worker_that_fails_is_counted_with_its_connections() {
    let stats = Mutex::new(None);
    let kept = record(async {
        let fails = Arc::new(AtomicBool::new(false));
        let server = front(server_config()).cid_generator(Failing(fails.clone()));
        let server = server.bind("127.0.0.1:0").unwrap();
        let client = Endpoint::builder().client(client_config());
        let client = client.bind("127.0.0.1:0").unwrap();
        let connect = async || {
            let connecting = client.connect(server.local_address(), "localhost");
            let accepting = async { server.accept().await.unwrap().accept().await.unwrap() };
            soon(async { tokio::join!(connecting, accepting) }).await
        };
        let lost = connect().await;
        // Datagrams of nobody, which the core counts.
        let nobody = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
        for _ in 0..10 {
            nobody.send_to(&[0x41; 20], server.local_address()).unwrap();
        }
        soon(async {
            while server.stats().datagrams_dropped < 10 {
                tokio::task::yield_now().await;
            }
        })
        .await;
        let before = server.stats();
        fails.store(true, Ordering::Relaxed);
        let kept = connect().await;
        talk(&kept.0.unwrap(), &kept.1).await;
        drop(lost);
        let after = server.stats();
        assert!(after.datagrams_dropped >= before.datagrams_dropped);
        assert!(after.datagrams_received > before.datagrams_received);
        *stats.lock().unwrap() = Some(after);
        end([server, client]).await;
    });
    let labels = [("endpoint", "front"), ("worker", "0")];
    assert_eq!(kept.count("hybriq_worker_failures_total", &labels), 1);
    assert_eq!(kept.count("hybriq_connections_accepted_total", &[]), 2);
    let closed = [("role", "server"), ("code", "INTERNAL_ERROR")];
    assert_eq!(kept.count("hybriq_connections_closed_total", &closed), 1);
    let closed = [("role", "server"), ("reason", "application")];
    assert_eq!(kept.count("hybriq_connections_closed_total", &closed), 1);
    assert!(kept.gauge("hybriq_connections").abs() < 0.5);
    // The core of the worker began to count again; its metrics did not.
    let stats = stats.into_inner().unwrap().unwrap();
    let received = kept.count("hybriq_datagrams_received_total", &labels);
    assert!(received >= stats.datagrams_received);
    let dropped = kept.count("hybriq_datagrams_dropped_total", &labels);
    assert!((10..20).contains(&dropped), "{dropped}");
}

#[test]
fn endpoints_without_a_name_add_up() {
    let kept = record(async {
        let server = Endpoint::server("127.0.0.1:0", server_config()).unwrap();
        let client = Endpoint::builder().bind("127.0.0.1:0").unwrap();
        visit(&client, &client_config(), &server).await;
        end([server, client]).await;
    });
    assert!(
        !kept
            .labels()
            .values()
            .any(|labels| labels.contains("endpoint"))
    );
    assert_eq!(kept.count("hybriq_connections_closed_total", &[]), 2);
    assert!(kept.gauge("hybriq_connections").abs() < 0.5);
}

#[test]
fn the_page_lists_every_metric_with_its_labels() {
    let kept = record(async {
        handshakes().await;
        downgrades().await;
    });
    let mut labels = kept.labels();
    for labels in labels.values_mut() {
        assert!(labels.remove("endpoint"));
    }
    let described = kept.described.lock().unwrap();
    let names: BTreeSet<_> = described.keys().collect();
    assert_eq!(names, labels.keys().collect(), "described, and published");
    let mut table = String::from(HEAD);
    for (name, (kind, unit, meaning)) in &*described {
        let labels = labels[name].iter().map(|label| format!("`{label}`"));
        let labels = labels.collect::<Vec<_>>().join(", ");
        writeln!(
            table,
            "| `{name}` | {kind} | {unit} | {labels} | {meaning} |"
        )
        .unwrap();
    }
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/metrics.md");
    let page = fs::read_to_string(&path).unwrap();
    let right = with_table(&page, &table);
    if env::var_os("HYBRIQ_WRITE").is_some() {
        fs::write(path, right).unwrap();
        return;
    }
    let lines: BTreeSet<_> = page.lines().collect();
    let new = table.lines().find(|line| !lines.contains(line));
    assert!(
        page == right,
        "quic/docs/metrics.md is old, for example: {}\nWrite it: \
         HYBRIQ_WRITE=1 cargo test -p hybriq --features metrics --test metrics page",
        new.unwrap_or("it has lines too many")
    );
}

/// Head of the table of metrics.
const HEAD: &str = "| name | type | unit | labels | meaning |\n|---|---|---|---|---|\n";

/// Returns a page with another table of metrics.
fn with_table(page: &str, table: &str) -> String {
    let (before, rest) = page.split_once(HEAD).expect("the page has a table");
    let rows = rest.split_inclusive('\n');
    let old = rows.take_while(|row| row.starts_with('|')).map(str::len);
    let after = rest.get(old.sum()..).unwrap_or_default();
    format!("{before}{table}{after}")
}

#[test]
fn writing_the_table_leaves_the_rest_of_the_page() {
    let page = |rows: &str| format!("# Names\n\n{HEAD}{rows}\nAfter | it.\n");
    let table = format!("{HEAD}| a |\n| c |\n");
    assert_eq!(with_table(&page("| b |\n"), &table), page("| a |\n| c |\n"));
    assert_eq!(with_table(&page(""), &table), page("| a |\n| c |\n"));
    assert_eq!(with_table(HEAD, &table), table);
}
