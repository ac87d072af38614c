//! The table of `evidence/h3spec.md`: all cases of h3spec, our tests of them, and those which the `h3` crate
//! fails where nobody stands in front of it.

use std::sync::Arc;

use quinn::crypto::rustls::QuicServerConfig;
use tokio_rustls::rustls;

use crate::{
    answer,
    cases::{CASES, Case},
    client,
    scripts::Script,
    support::Certificate,
};

const PAGE: &str = include_str!("../../../evidence/h3spec.md");
/// Tests of the 34 transport cases.
const TRANSPORT: &str = include_str!("../../../tests/conformance/h3spec.rs");

/// A line of one of the tables: the case of h3spec, the name of ours, and the third cell.
struct Line {
    ours: &'static str,
    alone: &'static str,
}

/// Returns the lines below a heading.
fn lines(heading: &str) -> Vec<Line> {
    let (_, rest) = PAGE.split_once(heading).unwrap();
    let section = rest.split("\n## ").next().unwrap();
    let rows = section.lines().filter(|line| line.starts_with("| MUST"));
    rows.map(|row| {
        let mut cells = row.trim_matches('|').split(" | ").map(str::trim);
        let [_, ours] = [cells.next().unwrap(), cells.next().unwrap()];
        let alone = cells.next().unwrap_or_default();
        Line { ours, alone }
    })
    .collect()
}

/// Returns the words of the transport cases, in their order.
fn transport_cases() -> Vec<&'static str> {
    let (_, list) = TRANSPORT.split_once("const CASES: [Case; 34] = [").unwrap();
    let list = list.split("\n];").next().unwrap();
    let rows = list.lines().filter(|line| line.starts_with("    (\""));
    rows.map(|row| row.split('"').nth(3).unwrap()).collect()
}

fn case(name: &str) -> &'static Case {
    let found = CASES.iter().find(|case| case.name == name);
    found.unwrap_or_else(|| panic!("no case {name}"))
}

#[test]
fn the_page_of_h3spec_names_a_test_for_each_case() {
    let transport = lines("## Transport");
    let ours: Vec<_> = transport.iter().map(|line| line.ours).collect();
    assert_eq!(ours, transport_cases());
    let http = lines("## HTTP/3 and QPACK");
    assert_eq!(http.len(), 16);
    for line in http {
        case(line.ours);
    }
}

/// Serves by the `h3` crate on quinn, with nothing between them.
async fn serve(endpoint: quinn::Endpoint) {
    while let Some(incoming) = endpoint.accept().await {
        tokio::spawn(async {
            let Ok(connection) = incoming.await else {
                return;
            };
            let connection = h3_quinn::Connection::new(connection);
            let built = h3::server::Connection::<_, bytes::Bytes>::new(connection).await;
            let Ok(mut connection) = built else {
                return;
            };
            while let Ok(Some(request)) = connection.accept().await {
                tokio::spawn(async {
                    let Ok((_, mut stream)) = request.resolve_request().await else {
                        return;
                    };
                    while let Ok(Some(_)) = stream.recv_data().await {}
                    let _ = stream.recv_trailers().await;
                    let _ = stream.send_response(http::Response::new(())).await;
                    let _ = stream.finish().await;
                });
            }
        });
    }
}

fn quinn_server() -> quinn::Endpoint {
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let tls = rustls::ServerConfig::builder_with_provider(provider);
    let tls = tls.with_protocol_versions(&[&rustls::version::TLS13]);
    let certificate = Certificate::shared();
    let mut tls = tls
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certificate.der()], certificate.key())
        .unwrap();
    tls.alpn_protocols = vec![hybriq_h3::ALPN.into()];
    let config = QuicServerConfig::try_from(tls).unwrap();
    let config = quinn::ServerConfig::with_crypto(Arc::new(config));
    quinn::Endpoint::server(config, "127.0.0.1:0".parse().unwrap()).unwrap()
}

#[tokio::test]
async fn the_page_of_h3spec_tells_what_h3_fails() {
    let server = quinn_server();
    let address = server.local_addr().unwrap();
    tokio::spawn(serve(server));
    let client = client(&Certificate::shared().der());
    let mut wrong = Vec::new();
    for line in lines("## HTTP/3 and QPACK") {
        let case = case(line.ours);
        let script = Script::from(case);
        let (answer, _) = answer(&client, address, &script).await;
        let is_right = answer == script.expected;
        if is_right != (line.alone == "right") {
            wrong.push(format!("{}: {answer:x?}, told: {}", line.ours, line.alone));
        }
    }
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}
