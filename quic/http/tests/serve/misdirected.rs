//! Requests for another host than the one that their connection was made for.

use axum::Router;
use http::{StatusCode, Version};
use hybriq::{KeyExchange, ServerConfig};
use hybriq_http::{Limits, Misdirected, Server};

use crate::{
    ask_early,
    messages::VERSIONS,
    support::{Certificate, Http3, Running, ask_over_tcp, get, run_with},
};

/// Asks for a page of a host, on a connection for `localhost`.
async fn status(version: Version, server: &Running, host: &str) -> StatusCode {
    let mut request = get("/");
    *request.uri_mut() = format!("https://{host}/").parse().unwrap();
    let response = match version {
        Version::HTTP_3 => Http3::connect(server.address())
            .await
            .ask(request)
            .await
            .unwrap(),
        Version::HTTP_2 => ask_over_tcp(server.address(), "h2", None, request)
            .await
            .unwrap(),
        _ => {
            // The usual form.
            *request.uri_mut() = "/".parse().unwrap();
            request.headers_mut().insert("host", host.parse().unwrap());
            ask_over_tcp(server.address(), "http/1.1", None, request)
                .await
                .unwrap()
        }
    };
    response.status()
}

fn one_certificate() -> ServerConfig {
    Certificate::shared().config()
}

fn two_certificates() -> ServerConfig {
    one_certificate().add_identity(Certificate::of("other.test").identity())
}

/// RFC 9110 §15.5.20, RFC 9114 §3.3.
#[tokio::test]
async fn a_request_for_a_host_with_another_certificate_or_policy_gets_421() {
    use Misdirected::{Elsewhere, Never, NotCovered};

    let strict =
        || one_certificate().key_exchange_for("secret.test", KeyExchange::RequirePostQuantum);
    let classical = || strict().key_exchange_for("localhost", KeyExchange::OnlyClassical);
    for (config, misdirected, host, expected) in [
        (two_certificates(), Elsewhere, "localhost", 200),
        (two_certificates(), Elsewhere, "LocalHost:1", 200),
        (two_certificates(), Elsewhere, "localhost.", 200),
        (two_certificates(), Elsewhere, "other.test", 421),
        (two_certificates(), Elsewhere, "OTHER.test:8443", 421),
        (two_certificates(), Elsewhere, "unknown.test", 200),
        (two_certificates(), Elsewhere, "127.0.0.1", 200),
        (two_certificates(), Never, "other.test", 200),
        (two_certificates(), NotCovered, "unknown.test", 421),
        (one_certificate(), Elsewhere, "other.test", 200),
        (one_certificate(), NotCovered, "other.test", 421),
        (one_certificate(), NotCovered, "localhost:1", 200),
        (one_certificate(), NotCovered, "127.0.0.1", 200),
        (one_certificate(), NotCovered, "[::1]", 200),
        (strict(), Elsewhere, "secret.test", 200),
        (classical(), Elsewhere, "secret.test", 421),
        (classical(), Elsewhere, "SECRET.test.:1", 421),
        (classical(), Elsewhere, "open.test", 200),
        (classical(), Never, "secret.test", 200),
    ] {
        let builder = Server::builder().misdirected(misdirected);
        let server = run_with(builder, config, Router::new());
        for version in VERSIONS {
            let status = status(version, &server, host).await;
            assert_eq!(status, expected, "{version:?} {misdirected:?} {host}");
        }
    }
}

/// The answer is kept for the last host alone, whichever comes next.
#[tokio::test]
async fn each_request_of_a_connection_is_judged_by_its_own_host() {
    let server = run_with(Server::builder(), two_certificates(), Router::new());
    let mut client = Http3::connect(server.address()).await;
    for (host, expected) in [
        ("other.test", 421),
        ("other.test", 421),
        ("unknown.test", 200),
        ("other.test", 421),
        ("localhost", 200),
        ("other.test", 421),
    ] {
        let mut request = get("/");
        *request.uri_mut() = format!("https://{host}/").parse().unwrap();
        assert_eq!(
            client.ask(request).await.unwrap().status(),
            expected,
            "{host}"
        );
    }
}

/// In 0-RTT packets the key exchange is not known yet, so the client asks again after the handshake.
#[tokio::test]
async fn a_misdirected_request_in_0_rtt_packets_gets_425() {
    for (host, expected) in [
        ("localhost", StatusCode::OK),
        ("other.test", StatusCode::TOO_EARLY),
    ] {
        let mut request = get("/");
        *request.uri_mut() = format!("https://{host}/").parse().unwrap();
        let (status, _) = ask_early(two_certificates(), Limits::default(), request).await;
        assert_eq!(status, expected, "{host}");
    }
}
