//! HTTPS records (RFC 9460): from a resolver of the test, and from a name server by hickory-resolver.

use std::{
    collections::HashMap,
    io,
    net::SocketAddr,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use axum::Router;
use http::{Response, Version};
use hybriq::{ClientConfig, Group, KeyExchange, Trust};
use hybriq_http::{
    Body, Client, Http3, HttpsRecord, HttpsResolver, InvalidHttpsRecord, Server, SystemRecords,
};
use tokio::{net::UdpSocket, sync::Semaphore};

use crate::support::{Certificate, Running, run_with, soon};

type Looked = Pin<Box<dyn Future<Output = io::Result<Vec<HttpsRecord>>> + Send>>;

/// The RDATA of a record.
pub(crate) fn rdata(priority: u16, target: &str, params: &[(u16, &[u8])]) -> Vec<u8> {
    let mut rdata = priority.to_be_bytes().to_vec();
    for label in target.split('.').filter(|label| !label.is_empty()) {
        rdata.push(label.len() as u8);
        rdata.extend_from_slice(label.as_bytes());
    }
    rdata.push(0);
    for (key, value) in params {
        let len = value.len() as u16;
        rdata.extend([key.to_be_bytes(), len.to_be_bytes()].concat());
        rdata.extend_from_slice(value);
    }
    rdata
}

pub(crate) const H3: (u16, &[u8]) = (1, b"\x02h3");
const NO_DEFAULT_ALPN: (u16, &[u8]) = (2, b"");
const HINT: (u16, &[u8]) = (4, &[127, 0, 0, 1]);

/// Records by their names.
#[derive(Clone, Default)]
pub(crate) struct Zone(HashMap<String, Vec<Vec<u8>>>);

impl Zone {
    pub(crate) fn with(mut self, name: &str, rdata: Vec<u8>) -> Self {
        self.0.entry(name.to_owned()).or_default().push(rdata);
        self
    }
}

impl HttpsResolver for Zone {
    fn lookup(&self, name: String) -> Looked {
        let records = self.0.get(&name).into_iter().flatten();
        let records = records.map(|rdata| HttpsRecord::from_rdata(&name, rdata));
        let records: Result<Vec<_>, InvalidHttpsRecord> = records.collect();
        Box::pin(async move { records.map_err(io::Error::other) })
    }
}

/// A resolver that never answers.
struct Silent;

impl HttpsResolver for Silent {
    fn lookup(&self, _: String) -> Looked {
        Box::pin(std::future::pending())
    }
}

struct Host {
    server: Running,
    certificate: Certificate,
}

/// A server of `server.test`.
fn host(groups: impl IntoIterator<Item = Group>) -> Host {
    let certificate = Certificate::of("server.test");
    let groups: Vec<_> = groups.into_iter().collect();
    let config = if groups.is_empty() {
        certificate.config()
    } else {
        certificate
            .config()
            .key_exchange(KeyExchange::Exactly(groups))
    };
    Host {
        server: run_with(Server::builder(), config, Router::new()),
        certificate,
    }
}

impl Host {
    fn port(&self) -> u16 {
        self.server.address().port()
    }

    /// Asks the server at a port, with a new client. Only `server.test` has an address; it is told once `known` is
    /// open.
    async fn ask(
        &self,
        http3: Http3,
        records: impl HttpsResolver,
        port: u16,
        known: &Arc<Semaphore>,
    ) -> Response<Body> {
        let known = known.clone();
        let builder = Client::builder().http3(http3).https_records(records);
        let builder = builder.resolver(move |host, port| {
            let known = known.clone();
            async move {
                let _open = known.acquire().await;
                match &*host {
                    "server.test" => Ok(vec![SocketAddr::from(([127, 0, 0, 1], port))]),
                    _ => Err(io::Error::new(io::ErrorKind::NotFound, "no such name")),
                }
            }
        });
        let trust = Trust::roots_der([self.certificate.der()]);
        let client = builder.build(ClientConfig::new().trust(trust)).unwrap();
        soon(client.get(format!("https://server.test:{port}/")))
            .await
            .unwrap()
    }
}

fn open() -> Arc<Semaphore> {
    Arc::new(Semaphore::new(1))
}

/// The address of the server's name is never known, and another port is in the URI.
#[tokio::test]
async fn a_record_leads_to_another_port_at_its_hint_without_alt_svc() {
    let host = host([]);
    let port = host.port().to_be_bytes();
    let other = host.port() ^ 1;
    let record = rdata(1, "", &[H3, (3, &port), HINT]);
    let zone = Zone::default().with(&format!("_{other}._https.server.test"), record);
    for (http3, version) in [
        (Http3::Discover, Version::HTTP_3),
        (Http3::Only, Version::HTTP_3),
        (Http3::Off, Version::HTTP_2),
    ] {
        let never = Arc::new(Semaphore::new(0));
        let response = host.ask(http3, zone.clone(), other, &never).await;
        assert_eq!(response.version(), version, "{http3:?}");
        assert!(response.headers()["x-name"] == "server.test");
    }
}

/// Records without use change nothing, and one that leads nowhere is passed by.
#[tokio::test]
async fn the_servers_own_addresses_are_used_where_records_lead_nowhere() {
    let host = host([]);
    let name = format!("_{}._https.server.test", host.port());
    let at = |rdata| Zone::default().with(&name, rdata);
    let unknown: [(u16, &[u8]); 3] = [(0, &[0xff, 0]), H3, (0xff00, b"?")];
    for (zone, version) in [
        (Zone::default(), Version::HTTP_2),
        (
            at(rdata(1, "nowhere.test", &[H3, NO_DEFAULT_ALPN])),
            Version::HTTP_3,
        ),
        (at(rdata(0, "nowhere.test", &[])), Version::HTTP_2),
        (at(rdata(1, "", &unknown)), Version::HTTP_2),
        // Malformed.
        (at(rdata(1, "", &[(1, b"\x09h3")])), Version::HTTP_2),
        (
            at(rdata(0, "a.test", &[])).with("a.test", rdata(0, "a.test", &[])),
            Version::HTTP_2,
        ),
        (
            at(rdata(0, "a.test", &[])).with("a.test", rdata(1, "server.test", &[H3])),
            Version::HTTP_3,
        ),
    ] {
        let shown = format!("{:?}", zone.0);
        let response = host.ask(Http3::Discover, zone, host.port(), &open()).await;
        assert_eq!(response.version(), version, "{shown}");
    }
    let response = host
        .ask(Http3::Discover, Silent, host.port(), &open())
        .await;
    assert_eq!(response.version(), Version::HTTP_2);
}

/// The first key share is of the group that the record names, so that there is no second flight of the client.
#[tokio::test]
async fn the_groups_of_a_record_save_a_round_trip() {
    let host = host([Group::SECP384R1MLKEM1024]);
    let name = format!("_{}._https.server.test", host.port());
    let groups = Group::SECP384R1MLKEM1024.0.to_be_bytes();
    let plain: [(u16, &[u8]); 1] = [H3];
    let named: [(u16, &[u8]); 2] = [H3, (9, &groups)];
    for (params, retried) in [(&plain[..], true), (&named, false)] {
        let zone = Zone::default().with(&name, rdata(1, "", params));
        let response = host.ask(Http3::Discover, zone, host.port(), &open()).await;
        assert_eq!(response.version(), Version::HTTP_3);
        let group = response.headers()["x-group"].to_str().unwrap();
        assert_eq!(group.contains("retried"), retried, "{group}");
    }
}

/// How a name server answers a query for HTTPS records.
#[derive(Clone)]
enum Answer {
    /// With this RDATA for every name, behind a CNAME if there is a name.
    Records(Vec<Vec<u8>>, Option<&'static str>),
    /// With this RCODE.
    Failure(u8),
    /// The answer is truncated, and nothing listens on TCP.
    Truncated,
    /// With these bytes behind the id of the query.
    Bytes(&'static [u8]),
}

/// A record behind the question.
fn record(name: &[u8], kind: u16, rdata: &[u8]) -> Vec<u8> {
    let len = (rdata.len() as u16).to_be_bytes();
    [name, &kind.to_be_bytes(), &[0, 1, 0, 0, 0, 60], &len, rdata].concat()
}

impl Answer {
    fn to(&self, query: &[u8]) -> Vec<u8> {
        // The name ends with a zero; type and class follow.
        let end = 12 + query[12..].iter().position(|byte| *byte == 0).unwrap() + 5;
        let (id, question) = (&query[..2], &query[12..end]);
        let message = |flags: [u8; 2], answers: &[Vec<u8>]| {
            let counts = [0, 1, 0, answers.len() as u8, 0, 0, 0, 0];
            [id, &flags, &counts, question, &answers.concat()].concat()
        };
        match self {
            Self::Records(records, alias) => {
                let mut answers = Vec::new();
                let mut owner = vec![0xc0, 12];
                if let Some(alias) = alias {
                    // The name within RDATA, without the priority in front.
                    let name = rdata(0, alias, &[])[2..].to_vec();
                    answers.push(record(&owner, 5, &name));
                    owner = name;
                }
                answers.extend(records.iter().map(|rdata| record(&owner, 65, rdata)));
                message([0x81, 0x80], &answers)
            }
            Self::Failure(code) => message([0x81, 0x80 | code], &[]),
            Self::Truncated => message([0x83, 0x80], &[]),
            Self::Bytes(bytes) => [id, bytes].concat(),
        }
    }
}

/// Runs a name server, and counts its queries.
async fn name_server(answer: Answer) -> (SocketAddr, Arc<AtomicUsize>) {
    let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    let address = socket.local_addr().unwrap();
    let queries = Arc::new(AtomicUsize::new(0));
    let counted = queries.clone();
    tokio::spawn(async move {
        let mut query = [0; 1500];
        while let Ok((len, from)) = socket.recv_from(&mut query).await {
            counted.fetch_add(1, Ordering::Relaxed);
            // The client may be gone.
            let _ = socket.send_to(&answer.to(&query[..len]), from).await;
        }
    });
    (address, queries)
}

/// Opens the semaphore once the first lookup is done, so that no test depends on the time that it takes.
struct Then(SystemRecords, Arc<Semaphore>);

impl HttpsResolver for Then {
    fn lookup(&self, name: String) -> Looked {
        let (looked, done) = (self.0.lookup(name), self.1.clone());
        Box::pin(async move {
            let looked = looked.await;
            done.add_permits(1);
            looked
        })
    }
}

#[tokio::test]
async fn a_name_server_leads_to_http3_and_its_nonsense_to_http2() {
    let host = host([]);
    let port = host.port();
    let (h2, h3) = (Version::HTTP_2, Version::HTTP_3);
    let records = |records: Vec<Vec<u8>>| Answer::Records(records, None);
    let named = port.to_be_bytes();
    let good = rdata(1, "server.test", &[H3]);
    let of_owner = rdata(1, "", &[H3, (3, &named)]);
    let ech: (u16, &[u8]) = (5, &[0, 4, 0xfe, 0x0d, 0, 0]);
    for (answer, version) in [
        (records(vec![good.clone()]), h3),
        (Answer::Records(vec![of_owner], Some("server.test")), h3),
        (records(vec![rdata(1, "server.test", &[H3, ech])]), h3),
        (records(vec![]), h2),
        (Answer::Failure(2), h2),
        (Answer::Failure(3), h2),
        (Answer::Failure(5), h2),
        (Answer::Truncated, h2),
        (Answer::Bytes(b""), h2),
        (Answer::Bytes(&[0xff; 300]), h2),
        // One that is malformed spoils the others (RFC 9460 §2.2).
        (records(vec![good.clone(), vec![0, 1]]), h2),
        (records(vec![good, rdata(1, "", &[(3, b"1")])]), h2),
        // An alias to itself, whatever its name is.
        (records(vec![rdata(0, "loop.test", &[])]), h2),
    ] {
        let (address, queries) = name_server(answer.clone()).await;
        let known = Arc::new(Semaphore::new(0));
        let records = SystemRecords::with_servers([address]).unwrap();
        // Some nonsense is ignored until the time is over: the addresses do not wait for that.
        if let Answer::Bytes(_) | Answer::Truncated = answer {
            known.add_permits(1);
        }
        let records = Then(records, known.clone());
        let response = host.ask(Http3::Discover, records, port, &known).await;
        assert_eq!(response.version(), version);
        let queries = queries.load(Ordering::Relaxed);
        assert!((1..=18).contains(&queries), "{queries}");
    }
}

/// What a name server says, as those see it who look records up themselves.
#[tokio::test]
async fn lookups_tell_no_records_from_a_failure() {
    let good = rdata(1, "", &[H3]);
    for (answer, expected) in [
        (Answer::Records(vec![good.clone()], None), Some(1)),
        (Answer::Records(Vec::new(), None), Some(0)),
        (Answer::Failure(3), Some(0)),
        (Answer::Failure(2), None),
        (Answer::Records(vec![good, vec![0]], None), None),
    ] {
        let (address, _) = name_server(answer).await;
        let records = SystemRecords::with_servers([address]).unwrap();
        let looked = soon(records.lookup("server.test".to_owned())).await;
        let found = looked.as_ref().ok().map(Vec::len);
        assert_eq!(found, expected, "{looked:?}");
    }
    assert!(SystemRecords::with_servers([]).is_err());
}
