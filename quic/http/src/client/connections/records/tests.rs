use std::{collections::HashMap, sync::Mutex};

use super::*;
use crate::client::origin::Origin;

/// The name of a host in wire format.
fn wire(name: &str) -> Vec<u8> {
    let labels = name.split('.').filter(|label| !label.is_empty());
    let labels = labels.flat_map(|label| [&[label.len() as u8], label.as_bytes()].concat());
    labels.chain([0]).collect()
}

fn rdata(priority: u16, target: &str, params: &[(u16, &[u8])]) -> Vec<u8> {
    let mut rdata = [&priority.to_be_bytes()[..], &wire(target)].concat();
    for (key, value) in params {
        let len = value.len() as u16;
        rdata.extend([key.to_be_bytes(), len.to_be_bytes()].concat());
        rdata.extend_from_slice(value);
    }
    rdata
}

fn read(params: &[(u16, &[u8])]) -> Result<HttpsRecord, InvalidHttpsRecord> {
    HttpsRecord::from_rdata("Server.Test.", &rdata(1, "", params))
}

const H3: (u16, &[u8]) = (1, b"\x02h3");

#[test]
fn the_vectors_of_the_rfc_are_read() {
    // RFC 9460 appendix D: alias, the root, a port, an unknown key, two hints, mandatory keys.
    let record = |bytes: &[u8]| HttpsRecord::from_rdata("example.com", bytes).expect("a record");
    let alias = record(&rdata(0, "foo.example.com", &[]));
    assert_eq!((alias.priority, &*alias.target), (0, "foo.example.com"));
    let root = record(b"\x00\x01\x00");
    assert_eq!((root.priority, &*root.target), (1, ""));
    assert!(root.params.tcp && !root.params.http3);
    let port = record(&rdata(16, "foo.example.com", &[(3, &[0, 0x35])]));
    assert_eq!(port.params.port, Some(53));
    let unknown = record(&rdata(1, "foo.example.com", &[(0x029b, b"hello")]));
    assert!(!unknown.params.is_incompatible);
    let hint = [0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1];
    let hints = record(&rdata(
        1,
        "foo.example.com",
        &[(4, &[192, 0, 2, 1]), (6, &hint)],
    ));
    let expected =
        ["192.0.2.1", "2001:db8::1"].map(|ip| ip.parse::<std::net::IpAddr>().expect("an address"));
    assert_eq!(hints.params.hints, expected);
    let params: [(u16, &[u8]); 4] = [
        (0, &[0, 1, 0, 4]),
        (1, b"\x02h2\x05h3-19"),
        (4, &[192, 0, 2, 1]),
        (0xff00, b""),
    ];
    let mandatory = record(&rdata(16, "foo.example.org", &params)).params;
    assert!(mandatory.tcp && !mandatory.http3 && !mandatory.is_incompatible);
}

#[test]
fn malformed_records_are_told_apart() {
    use InvalidHttpsRecord::{Order, Target, Truncated, Value};
    let whole = rdata(1, "svc.test", &[H3]);
    for (bytes, expected) in [
        (vec![], Truncated),
        (vec![0], Truncated),
        (vec![0, 1], Truncated),
        (whole[..whole.len() - 1].to_vec(), Truncated),
        // A compressed name, an overlong one, and one that is not a host.
        (vec![0, 1, 0xc0, 12], Target),
        (rdata(1, &"a.".repeat(200), &[]), Target),
        (rdata(1, "a b.test", &[]), Target),
        (b"\x00\x01\x03a.b\x00".to_vec(), Target),
        (rdata(1, "", &[H3, H3]), Order(1)),
        (rdata(1, "", &[(3, &[0, 1]), H3]), Order(1)),
    ] {
        let read = HttpsRecord::from_rdata("server.test", &bytes);
        assert_eq!(read, Err(expected), "{bytes:?}");
    }
    let values: [(u16, &[u8]); 19] = [
        (0, b""),
        (0, &[0]),
        (0, &[0, 0]),
        (0, &[0, 3, 0, 1]),
        (0, &[0, 1, 0, 1]),
        (1, b""),
        (1, b"\x03h3"),
        (1, b"\x00"),
        (2, b"x"),
        (3, b"1"),
        (3, b"123"),
        (4, b""),
        (4, b"12345"),
        (5, b""),
        (5, &[0, 0]),
        (5, &[0, 4, 0xfe, 0x0d, 0, 1]),
        (6, &[1; 15]),
        (9, b""),
        (9, b"1"),
    ];
    for (key, value) in values {
        assert_eq!(read(&[(key, value)]), Err(Value(key)), "{value:?}");
        // In an alias they are ignored.
        let alias = rdata(0, "svc.test", &[(key, value)]);
        assert!(HttpsRecord::from_rdata("server.test", &alias).is_ok());
    }
}

/// However it is broken.
#[test]
fn a_broken_record_is_refused_quietly() {
    let hint = [7; 16];
    let params: [(u16, &[u8]); 6] = [
        (0, &[0, 3]),
        H3,
        (3, &[1, 1]),
        (5, &[0, 4, 0xfe, 0x0d, 0, 0]),
        (6, &hint),
        (9, &[0x11, 0xec]),
    ];
    let whole = rdata(1, "svc.test", &params);
    for at in 0..whole.len() {
        for bits in [1, 0x80, 0xff] {
            let mut broken = whole.clone();
            broken[at] ^= bits;
            let _ = HttpsRecord::from_rdata("server.test", &broken);
            let _ = HttpsRecord::from_rdata("server.test", &broken[..at]);
        }
    }
}

#[test]
fn incompatible_records_are_known() {
    for (params, expected) in [
        (&[(0, &[0, 1][..]), H3][..], false),
        // Encrypted Client Hello, an unknown key, and one that is not there.
        (&[(0, &[0, 5]), H3, (5, &[0, 4, 0xfe, 0x0d, 0, 0])], true),
        (&[(0, &[0xff, 0]), H3, (0xff00, b"")], true),
        (&[(0, &[0, 3]), H3], true),
        (&[(2, b"")], true),
        (&[H3, (2, b"")], false),
        (&[H3, (0xff00, b"?")], false),
    ] {
        let record = read(params).expect("a record");
        assert_eq!(record.params.is_incompatible, expected, "{params:?}");
    }
}

/// A zone, and the names that were asked for.
#[derive(Default)]
struct Zone(HashMap<String, Vec<Vec<u8>>>, Mutex<Vec<String>>);

impl HttpsResolver for Zone {
    fn lookup(
        &self,
        name: String,
    ) -> Pin<Box<dyn Future<Output = io::Result<Vec<HttpsRecord>>> + Send>> {
        let records = self.0.get(&name).into_iter().flatten();
        let records = records.map(|rdata| HttpsRecord::from_rdata(&name, rdata));
        let records: Result<Vec<_>, _> = records.collect();
        self.1.lock().expect("names").push(name);
        Box::pin(async move { records.map_err(io::Error::other) })
    }
}

fn zone<const N: usize>(records: [(&str, Vec<u8>); N]) -> Zone {
    let mut zone = Zone::default();
    for (name, rdata) in records {
        zone.0.entry(name.to_owned()).or_default().push(rdata);
    }
    zone
}

/// The places that the records of a server lead to, each with its protocols.
async fn found(zone: &Zone, origin: &Origin) -> Vec<String> {
    let services = services(zone, origin).await.expect("services").into_iter();
    let shown = services.map(|service| {
        let protocols = [(service.http3, " h3"), (service.tcp, " tcp")];
        let protocols = protocols.into_iter().filter(|(has, _)| *has);
        let protocols: String = protocols.map(|(_, name)| name).collect();
        format!("{}{protocols}", service.place)
    });
    shown.collect()
}

#[tokio::test]
async fn services_are_ordered_and_what_is_incompatible_is_left_out() {
    let alone: [(u16, &[u8]); 2] = [H3, (2, b"")];
    let zone = zone([
        ("server.test", rdata(3, "third.test", &[])),
        ("server.test", rdata(1, "", &[H3, (3, &[0x20, 0xfb])])),
        ("server.test", rdata(2, "second.test", &alone)),
        (
            "server.test",
            rdata(4, "other.test", &[(0, &[0xff, 0]), (0xff00, b"")]),
        ),
        // Ports of other services are not for the web (RFC 7838 has the same problem).
        ("server.test", rdata(5, "", &[H3, (3, &[0, 53])])),
        ("server.test", rdata(6, "", &[(1, b"\x03dot"), (2, b"")])),
    ]);
    let origin = Origin::new("server.test", 443);
    let expected = [
        "server.test:8443 h3 tcp",
        "second.test:443 h3",
        "third.test:443 tcp",
    ];
    assert_eq!(found(&zone, &origin).await, expected);
    // Another port has another name, and the prefix is not that of its addresses.
    let other = Origin::new("server.test", 8443);
    assert!(found(&zone, &other).await.is_empty());
    let asked = zone.1.lock().expect("names").pop();
    assert_eq!(asked.as_deref(), Some("_8443._https.server.test"));
}

#[tokio::test]
async fn aliases_are_followed_and_bounded() {
    let zone = zone([
        ("_444._https.server.test", rdata(0, "a.test", &[])),
        // A service beside an alias is ignored (RFC 9460 §2.4.1).
        ("_444._https.server.test", rdata(1, "never.test", &[H3])),
        ("a.test", rdata(0, "b.test", &[])),
        ("b.test", rdata(1, "", &[H3])),
        ("plain.test", rdata(0, "end.test", &[])),
        ("gone.test", rdata(0, "", &[])),
        ("loop.test", rdata(0, "pool.test", &[])),
        ("pool.test", rdata(0, "loop.test", &[])),
    ]);
    let at = |host, port| Origin::new(host, port);
    assert_eq!(
        found(&zone, &at("server.test", 444)).await,
        ["b.test:444 h3 tcp"]
    );
    assert_eq!(
        found(&zone, &at("plain.test", 443)).await,
        ["end.test:443 tcp"]
    );
    assert!(found(&zone, &at("gone.test", 443)).await.is_empty());
    zone.1.lock().expect("names").clear();
    let looped = services(&zone, &at("loop.test", 443)).await;
    let error = looped.expect_err("a loop").to_string();
    assert_eq!(error, "more than 8 aliases in a row");
    assert_eq!(zone.1.lock().expect("names").len(), 9);
}

#[test]
fn only_names_of_other_machines_are_asked_for() {
    for (host, expected) in [
        ("example.com", true),
        ("localhost", false),
        ("a.localhost", false),
        ("192.0.2.1", false),
        ("[2001:db8::1]", false),
    ] {
        assert_eq!(is_asked_for(&Origin::new(host, 443)), expected, "{host}");
    }
}
