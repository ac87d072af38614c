//! Spans of connections: a subscriber sees each connection by its id, with its events in it.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod endpoint_support;

use std::{
    collections::BTreeMap,
    fmt,
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, Ordering},
    },
};

use endpoint_support::{client_config, server_config, soon};
use hybriq::{Connection, Endpoint, Group, KeyExchange, memory::Continuity};
use tracing::{
    Event, Instrument as _, Level, Metadata, Subscriber,
    field::{Field, Visit},
    span,
    subscriber::Interest,
};

/// A span or an event: its name, its fields, and the span that it belongs to.
#[derive(Clone, Debug, Default)]
struct Record {
    name: String,
    fields: BTreeMap<String, String>,
    parent: Option<u64>,
}

impl Visit for Record {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        let text = format!("{value:?}");
        if field.name() == "message" {
            self.name = text;
        } else {
            self.fields.insert(field.name().to_owned(), text);
        }
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.fields
            .insert(field.name().to_owned(), value.to_owned());
    }
}

/// A subscriber that keeps what has the target `hybriq`, or comes from this file.
#[derive(Clone)]
struct Kept(Arc<Inner>);

struct Inner {
    most: Level,
    next: AtomicU64,
    spans: Mutex<BTreeMap<u64, Record>>,
    events: Mutex<Vec<Record>>,
    entered: Mutex<Vec<u64>>,
    open: Mutex<BTreeMap<u64, usize>>,
}

impl Kept {
    fn new(most: Level) -> Self {
        Self(Arc::new(Inner {
            most,
            next: AtomicU64::new(1),
            spans: Mutex::default(),
            events: Mutex::default(),
            entered: Mutex::default(),
            open: Mutex::default(),
        }))
    }

    /// Returns the spans of one end, with their keys.
    fn spans(&self, role: &str) -> Vec<(u64, Record)> {
        let spans = self.0.spans.lock().unwrap();
        let fitting = spans.iter().filter(|(_, span)| span.fields["role"] == role);
        fitting.map(|(key, span)| (*key, span.clone())).collect()
    }

    /// Returns the events in a span.
    fn events(&self, span: u64) -> Vec<Record> {
        let events = self.0.events.lock().unwrap();
        let inside = events.iter().filter(|event| event.parent == Some(span));
        inside.cloned().collect()
    }
}

impl Subscriber for Kept {
    fn register_callsite(&self, _: &'static Metadata<'static>) -> Interest {
        // Asked each time: other tests of this process have subscribers too.
        Interest::sometimes()
    }

    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        let ours = ["hybriq", module_path!()].contains(&metadata.target());
        ours && *metadata.level() <= self.0.most
    }

    fn new_span(&self, attributes: &span::Attributes<'_>) -> span::Id {
        let mut record = Record::default();
        attributes.record(&mut record);
        attributes.metadata().name().clone_into(&mut record.name);
        record.parent = attributes.parent().map(span::Id::into_u64);
        let key = self.0.next.fetch_add(1, Ordering::Relaxed);
        self.0.spans.lock().unwrap().insert(key, record);
        self.0.open.lock().unwrap().insert(key, 1);
        span::Id::from_u64(key)
    }

    fn record(&self, _: &span::Id, _: &span::Record<'_>) {}

    fn record_follows_from(&self, _: &span::Id, _: &span::Id) {}

    fn event(&self, event: &Event<'_>) {
        let mut record = Record::default();
        event.record(&mut record);
        let around = self.0.entered.lock().unwrap().last().copied();
        record.parent = event.parent().map(span::Id::into_u64).or(around);
        self.0.events.lock().unwrap().push(record);
    }

    fn enter(&self, span: &span::Id) {
        self.0.entered.lock().unwrap().push(span.into_u64());
    }

    fn exit(&self, _: &span::Id) {
        self.0.entered.lock().unwrap().pop();
    }

    fn clone_span(&self, span: &span::Id) -> span::Id {
        *self
            .0
            .open
            .lock()
            .unwrap()
            .get_mut(&span.into_u64())
            .unwrap() += 1;
        span.clone()
    }

    fn try_close(&self, span: span::Id) -> bool {
        let mut open = self.0.open.lock().unwrap();
        let count = open.get_mut(&span.into_u64()).unwrap();
        *count -= 1;
        *count == 0
    }
}

/// Runs a scenario under a subscriber of its own, on one thread.
fn watch(most: Level, scenario: impl Future<Output = ()>) -> Kept {
    let kept = Kept::new(most);
    tracing::subscriber::with_default(kept.clone(), || {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build();
        runtime.unwrap().block_on(scenario);
    });
    kept
}

async fn connect(client: &Endpoint, server: &Endpoint) -> [Connection; 2] {
    let connecting = client.connect(server.local_address(), "localhost");
    let accepting = async { server.accept().await.unwrap().accept().await.unwrap() };
    let (client, server) = soon(async { tokio::join!(connecting, accepting) }).await;
    [client.unwrap(), server]
}

async fn end(endpoints: [Endpoint; 2]) {
    for endpoint in endpoints {
        endpoint.close(0, b"");
        soon(endpoint.idle()).await;
    }
}

#[test]
fn the_life_of_a_connection_is_told_in_its_span() {
    let ids = Mutex::new(Vec::new());
    let kept = watch(Level::DEBUG, async {
        let server = Endpoint::builder().server(server_config()).name("front");
        let server = server.bind("127.0.0.1:0").unwrap();
        let groups = vec![Group::X25519, Group::X25519MLKEM768];
        let config = client_config().key_exchange(KeyExchange::Exactly(groups));
        let client = Endpoint::builder()
            .client(config)
            .bind("127.0.0.1:0")
            .unwrap();
        let [at_client, at_server] = connect(&client, &server).await;
        ids.lock()
            .unwrap()
            .push((at_client.id(), client.local_address()));
        soon(at_client.migrate("127.0.0.1:0".parse().unwrap()))
            .await
            .unwrap();
        // The server follows once the new path has proved itself.
        let mut send = at_client.open_uni().await.unwrap();
        send.finish();
        soon(at_server.accept_uni()).await.unwrap().unwrap();
        at_client.close(7, b"enough");
        soon(at_server.closed()).await;
        end([server, client]).await;
    });
    let (id, from) = ids.into_inner().unwrap()[0];
    for role in ["client", "server"] {
        let spans = kept.spans(role);
        let [(key, span)] = &spans[..] else {
            panic!("{spans:?}");
        };
        assert_eq!(span.name, "hybriq.connection");
        assert_eq!(span.fields["id"], id.to_string());
        assert_eq!(span.fields["worker"], "0");
        assert_eq!(span.parent, None);
        let events = kept.events(*key);
        let names: Vec<_> = events.iter().map(|event| event.name.as_str()).collect();
        assert_eq!(
            names,
            ["handshake complete", "migrated", "closed"],
            "{role}"
        );
        assert_eq!(events[0].fields["group"], "X25519MLKEM768");
        assert_eq!(events[0].fields["hello_retry"], "true");
        assert_eq!(events[0].fields["resumed"], "false");
        assert_eq!(events[0].fields["lineage"], "PostQuantum");
        let error = &events[2].fields["error"];
        assert!(error.contains("code 7 (enough)"), "{error}");
    }
    let (_, server) = kept.spans("server").remove(0);
    assert_eq!(server.fields["endpoint"], "front");
    assert_eq!(server.fields["peer"], from.to_string());
    let (_, client) = kept.spans("client").remove(0);
    assert!(!client.fields.contains_key("endpoint"), "it has no name");
    let open = kept.0.open.lock().unwrap().clone();
    assert!(
        open.values().all(|&count| count == 0),
        "spans that never close: {open:?}"
    );
}

#[test]
fn tasks_of_the_application_enter_the_span() {
    let kept = watch(Level::INFO, async {
        let server = Endpoint::server("127.0.0.1:0", server_config()).unwrap();
        let client = Endpoint::builder()
            .client(client_config())
            .bind("127.0.0.1:0")
            .unwrap();
        let [at_client, at_server] = connect(&client, &server).await;
        let span = at_server.span().clone();
        let task = async { tracing::info!("a client") };
        soon(at_server.spawn(task.instrument(span))).await.unwrap();
        drop((at_client, at_server));
        end([server, client]).await;
    });
    let (key, _) = kept.spans("server").remove(0);
    let names: Vec<_> = kept
        .events(key)
        .into_iter()
        .map(|event| event.name)
        .collect();
    assert_eq!(names, ["a client"], "the others are below this level");
}

#[test]
fn a_handshake_that_fails_is_told_too() {
    let kept = watch(Level::DEBUG, async {
        let strict = server_config().key_exchange(KeyExchange::RequirePostQuantum);
        let server = Endpoint::server("127.0.0.1:0", strict).unwrap();
        let classical = client_config().key_exchange(KeyExchange::OnlyClassical);
        let client = Endpoint::builder()
            .client(classical)
            .bind("127.0.0.1:0")
            .unwrap();
        let connecting = client.connect(server.local_address(), "localhost");
        let accepting = async { server.accept().await.unwrap().accept().await.unwrap_err() };
        soon(async { tokio::join!(connecting, accepting) })
            .await
            .0
            .unwrap_err();
        end([server, client]).await;
    });
    let (key, _) = kept.spans("client").remove(0);
    let events = kept.events(key);
    assert_eq!(events.len(), 1);
    assert!(
        events[0].fields["error"].contains("refused the key exchange"),
        "{events:?}"
    );
}

/// A server that was post-quantum and no longer is: a warning if the client reports it, and the
/// reason of the end if it refuses.
#[test]
fn a_downgrade_is_told_as_a_warning_or_as_the_end() {
    // The other events of a connection are below this level.
    let kept = watch(Level::INFO, async {
        downgrade(Continuity::Report).await;
    });
    let told: Vec<_> = kept
        .spans("client")
        .iter()
        .map(|(key, _)| kept.events(*key))
        .collect();
    let [before, after] = &told[..] else {
        panic!("{told:?}");
    };
    assert!(before.is_empty(), "{before:?}");
    let [warning] = &after[..] else {
        panic!("{after:?}");
    };
    assert_eq!(
        warning.name,
        "the server was post-quantum before and no longer is"
    );
    let what = &warning.fields["downgrade"];
    assert!(what.contains("X25519"), "{what}");

    let kept = watch(Level::DEBUG, async {
        downgrade(Continuity::Refuse).await;
    });
    let (refused, _) = kept.spans("client").remove(1);
    let events = kept.events(refused);
    let names: Vec<_> = events.iter().map(|event| event.name.as_str()).collect();
    assert_eq!(names, ["closed"]);
    let error = &events[0].fields["error"];
    assert!(error.contains("post-quantum"), "{error}");
}

/// Connects to a server twice, the second time when it has classical groups alone.
async fn downgrade(continuity: Continuity) {
    let server = Endpoint::server("127.0.0.1:0", server_config()).unwrap();
    let config = client_config().without_resumption().continuity(continuity);
    let client = Endpoint::builder().client(config);
    let client = client.bind("127.0.0.1:0").unwrap();
    connect(&client, &server).await;
    let classical = server_config().key_exchange(KeyExchange::OnlyClassical);
    server.set_server_config(classical).unwrap();
    let connecting = client.connect(server.local_address(), "localhost");
    let accepting = async { server.accept().await.unwrap().accept().await };
    let (second, _) = soon(async { tokio::join!(connecting, accepting) }).await;
    assert_eq!(second.is_ok(), continuity == Continuity::Report);
    drop(second);
    end([server, client]).await;
}

#[test]
fn without_a_subscriber_the_span_is_disabled() {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    runtime.unwrap().block_on(async {
        let server = Endpoint::server("127.0.0.1:0", server_config()).unwrap();
        let client = Endpoint::builder()
            .client(client_config())
            .bind("127.0.0.1:0")
            .unwrap();
        let [at_client, at_server] = connect(&client, &server).await;
        assert!(at_client.span().is_disabled() && at_server.span().is_disabled());
    });
}
