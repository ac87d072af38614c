//! Tests that the page for Prometheus tells what happened, and that the dashboard asks for metrics
//! that exist.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::{BTreeMap, BTreeSet};
use std::{
    fs,
    io::{BufRead, BufReader, Read, Write},
    net::{SocketAddr, TcpStream},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use hybriq::{ClientConfig, Endpoint};
use hybriq::{Group, KeyExchange, Trust};
use serde_json::Value;

/// The running example, killed when dropped.
struct Server {
    process: Child,
    address: SocketAddr,
    page: SocketAddr,
    ca: PathBuf,
}

impl Server {
    fn start(name: &str, args: &[&str]) -> Self {
        let ca = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}-ca.pem"));
        for file in [ca.clone(), ca.with_extension("key")] {
            let _ = fs::remove_file(file);
        }
        let mut process = Command::new(env!("CARGO_BIN_EXE_prometheus_server"))
            .args([
                "--listen",
                "127.0.0.1:0",
                "--metrics",
                "127.0.0.1:0",
                "--ca",
            ])
            .arg(&ca)
            .args(args)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(process.stdout.take().unwrap()).lines();
        let address = lines.next().unwrap().unwrap();
        let page = lines.next().unwrap().unwrap();
        let page = page.strip_prefix("metrics on http://").unwrap();
        Self {
            address: address
                .strip_prefix("listening on ")
                .unwrap()
                .parse()
                .unwrap(),
            page: page.strip_suffix("/metrics").unwrap().parse().unwrap(),
            process,
            ca,
        }
    }

    fn config(&self) -> ClientConfig {
        let trust = Trust::roots_pem_file(&self.ca).unwrap();
        ClientConfig::new().alpn(["echo"]).trust(trust)
    }

    /// Scrapes the page by curl, or by a socket where there is no curl.
    fn scrape(&self) -> Scrape {
        let url = format!("http://{}/metrics", self.page);
        let text = match Command::new("curl").args(["-sS", "--fail", &url]).output() {
            Ok(output) => {
                let complaint = String::from_utf8_lossy(&output.stderr);
                assert!(output.status.success(), "{complaint}");
                String::from_utf8(output.stdout).unwrap()
            }
            Err(_) => self
                .get("/metrics")
                .split_once("\r\n\r\n")
                .unwrap()
                .1
                .to_owned(),
        };
        Scrape::parse(&text)
    }

    fn get(&self, path: &str) -> String {
        let mut stream = TcpStream::connect(self.page).unwrap();
        write!(stream, "GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    }

    /// Scrapes until a value is there: workers report once a second.
    fn scrape_until(&self, enough: impl Fn(&Scrape) -> bool) -> Scrape {
        let start = Instant::now();
        loop {
            let scrape = self.scrape();
            if enough(&scrape) {
                return scrape;
            }
            assert!(start.elapsed() < Duration::from_secs(20), "{:#?}", scrape.0);
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// The values of a page: name, labels, value.
struct Scrape(Vec<(String, BTreeMap<String, String>, f64)>);

impl Scrape {
    fn parse(text: &str) -> Self {
        let lines = text
            .lines()
            .filter(|line| !line.is_empty() && !line.starts_with('#'));
        Self(lines.map(parse_line).collect())
    }

    /// Returns the sum over the values that have these labels.
    fn sum(&self, name: &str, labels: &[(&str, &str)]) -> f64 {
        let fits = |has: &BTreeMap<String, String>| {
            labels
                .iter()
                .all(|(key, value)| has.get(*key).is_some_and(|is| is == value))
        };
        let values = self
            .0
            .iter()
            .filter(|(found, has, _)| found == name && fits(has));
        values.map(|(.., value)| value).sum()
    }

    fn count(&self, name: &str, labels: &[(&str, &str)]) -> u64 {
        self.sum(name, labels).round() as u64
    }
}

fn parse_line(line: &str) -> (String, BTreeMap<String, String>, f64) {
    let (series, value) = line.rsplit_once(' ').unwrap();
    let (name, labels) = match series.split_once('{') {
        Some((name, labels)) => (name, labels.strip_suffix('}').unwrap()),
        None => (series, ""),
    };
    let labels = labels
        .split(',')
        .filter(|label| !label.is_empty())
        .map(|label| {
            let (key, value) = label.split_once('=').unwrap();
            (key.to_owned(), value.trim_matches('"').to_owned())
        });
    (name.to_owned(), labels.collect(), value.parse().unwrap())
}

/// Connects once for each configuration, sends a message and reads its echo. Returns true for each
/// session that was resumed.
fn visit(server: &Server, configs: &[ClientConfig]) -> Vec<bool> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    runtime.unwrap().block_on(async {
        let client = Endpoint::builder().bind("127.0.0.1:0").unwrap();
        let mut resumed = Vec::new();
        for config in configs {
            let connecting = client.connect_with(config.clone(), server.address, "localhost");
            let connection = connecting.await.unwrap();
            let (mut send, mut recv) = connection.open_bidi().await.unwrap();
            send.write_all(b"anybody there?").await.unwrap();
            send.finish();
            assert_eq!(recv.read_to_end(100).await.unwrap(), b"anybody there?");
            resumed.push(connection.handshake().resumed);
            connection.close(0, b"");
        }
        client.idle().await;
        resumed
    })
}

#[test]
fn the_page_tells_what_happened() {
    let server = Server::start("prometheus", &["--name", "front"]);
    let (modern, classical) = (
        server.config(),
        server
            .config()
            .key_exchange(KeyExchange::Exactly(vec![Group::X25519])),
    );
    let resumed = visit(&server, &[modern.clone(), modern, classical]);
    assert_eq!(resumed, [false, true, false]);

    let closed = "hybriq_connections_closed_total";
    let scrape = server.scrape_until(|scrape| scrape.count(closed, &[]) == 3);
    let handshakes = |labels: &[(&str, &str)]| {
        let mut all = vec![("role", "server"), ("endpoint", "front")];
        all.extend(labels);
        scrape.count("hybriq_handshakes_total", &all)
    };
    assert_eq!(handshakes(&[]), 3);
    assert_eq!(
        handshakes(&[("group", "X25519MLKEM768"), ("kind", "full")]),
        1
    );
    assert_eq!(
        handshakes(&[("group", "X25519MLKEM768"), ("kind", "resumed")]),
        1
    );
    assert_eq!(
        handshakes(&[("group", "X25519"), ("post_quantum", "false")]),
        1
    );
    assert_eq!(scrape.count("hybriq_connections_accepted_total", &[]), 3);
    assert_eq!(
        scrape.count(closed, &[("by", "peer"), ("reason", "application")]),
        3
    );
    assert_eq!(scrape.count("hybriq_connections", &[]), 0);
    assert_eq!(
        scrape.count("hybriq_handshake_seconds_count", &[("role", "server")]),
        3
    );
    assert_eq!(
        scrape.count("hybriq_connection_rtt_seconds_bucket", &[("le", "+Inf")]),
        3
    );
    assert!(scrape.sum("hybriq_turn_seconds_sum", &[]) > 0.0);
    assert!(scrape.count("hybriq_datagrams_received_total", &[]) > 9);
    assert!(scrape.sum("hybriq_received_bytes_total", &[]) > 3.0 * 1200.0);

    let table = table();
    for (name, labels, _) in &scrape.0 {
        let known = &table[base(name, &table)];
        for label in labels
            .keys()
            .filter(|label| *label != "endpoint" && *label != "le")
        {
            assert!(known.contains(label), "{name} has the label {label}");
        }
    }
    assert!(server.get("/").starts_with("HTTP/1.1 404 "));
}

#[test]
fn refusals_are_on_the_page() {
    let server = Server::start("prometheus-strict", &["--require"]);
    let classical = server.config().key_exchange(KeyExchange::OnlyClassical);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    runtime.unwrap().block_on(async {
        let client = Endpoint::client(classical).unwrap();
        client
            .connect(server.address, "localhost")
            .await
            .unwrap_err();
    });
    let labels = [("reason", "key_exchange"), ("endpoint", "echo")];
    server.scrape_until(|scrape| scrape.count("hybriq_clients_refused_total", &labels) == 1);
}

/// Returns the labels of each metric in `quic/docs/metrics.md`.
fn table() -> BTreeMap<String, BTreeSet<String>> {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../quic/docs/metrics.md");
    let page = fs::read_to_string(page).unwrap();
    let rows = page.lines().filter(|line| line.starts_with("| `hybriq_"));
    let rows = rows.map(|line| {
        let cells: Vec<_> = line.split('|').map(str::trim).collect();
        let names = cells[4]
            .split(',')
            .map(|label| label.trim().trim_matches('`').to_owned());
        (cells[1].trim_matches('`').to_owned(), names.collect())
    });
    rows.collect()
}

/// Returns the metric of a series: those of a histogram have endings of their own.
fn base<'a>(name: &'a str, table: &BTreeMap<String, BTreeSet<String>>) -> &'a str {
    let ending = ["_bucket", "_sum", "_count"]
        .iter()
        .find_map(|it| name.strip_suffix(it));
    let base = ending
        .filter(|base| table.contains_key(*base))
        .unwrap_or(name);
    assert!(
        table.contains_key(base),
        "quic/docs/metrics.md has no {base}"
    );
    base
}

/// Returns all expressions of a dashboard, those of its variables included.
fn expressions(value: &Value) -> Vec<String> {
    match value {
        Value::Object(fields) => {
            let own = ["expr", "definition"]
                .iter()
                .filter_map(|key| fields.get(*key));
            let own = own.filter_map(Value::as_str).map(str::to_owned);
            own.chain(fields.values().flat_map(expressions)).collect()
        }
        Value::Array(values) => values.iter().flat_map(expressions).collect(),
        _ => Vec::new(),
    }
}

/// Returns the words of an expression, and the character after each.
fn words(expression: &str) -> Vec<(&str, Option<char>)> {
    let is_part = |it: char| it.is_ascii_alphanumeric() || it == '_';
    let starts = expression.match_indices(is_part).map(|(at, _)| at);
    let starts = starts.filter(|&at| at == 0 || !expression[..at].ends_with(is_part));
    let words = starts.map(|at| {
        let rest = &expression[at..];
        let end = rest.find(|it| !is_part(it)).unwrap_or(rest.len());
        (&rest[..end], rest[end..].chars().next())
    });
    words.collect()
}

#[test]
fn the_pages_name_metrics_that_exist() {
    let (table, mut named) = (table(), 0);
    for page in ["metrics.md", "production.md"] {
        let path = Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("../quic/docs")
            .join(page);
        let text = fs::read_to_string(path).unwrap();
        let names = words(&text).into_iter().map(|(word, _)| word);
        let crates = [
            "hybriq_examples",
            "hybriq_http",
            "hybriq_proto",
            "hybriq_tls",
        ];
        for name in names.filter(|it| it.starts_with("hybriq_") && !crates.contains(it)) {
            base(name, &table);
            named += 1;
        }
    }
    assert!(named > 50, "{named}");
}

#[test]
fn the_dashboard_asks_for_metrics_that_exist() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("dashboards/hybriq.json");
    let dashboard: Value = serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap();
    let table = table();
    let expressions = expressions(&dashboard);
    assert!(expressions.len() > 30, "{}", expressions.len());
    let mut used = BTreeSet::new();
    for expression in &expressions {
        let mut labels = BTreeSet::from(["endpoint", "instance", "le"].map(str::to_owned));
        let names = words(expression)
            .into_iter()
            .filter(|(word, _)| word.starts_with("hybriq_"));
        let names: Vec<_> = names.map(|(name, _)| base(name, &table)).collect();
        assert!(!names.is_empty(), "{expression}");
        labels.extend(names.iter().flat_map(|name| table[*name].clone()));
        used.extend(names.into_iter().map(str::to_owned));
        // Labels stand before an operator, or in the list of `by`.
        let lists = expression
            .split(" by (")
            .skip(1)
            .map(|rest| rest.split(')').next().unwrap());
        let grouped = lists.flat_map(|list| list.split(", "));
        let compared = words(expression).into_iter();
        let compared = compared.filter(|(_, next)| matches!(next, Some('=' | '!')));
        for label in grouped.chain(compared.map(|(word, _)| word)) {
            assert!(labels.contains(label), "no label {label}: {expression}");
        }
        assert_eq!(
            expression.matches('(').count(),
            expression.matches(')').count()
        );
    }
    let unused: Vec<_> = table.keys().filter(|name| !used.contains(*name)).collect();
    assert!(unused.len() < 7, "the dashboard leaves out {unused:?}");
}
