//! Versions of HTTP, and what the handshakes agreed on.

use axum::Router;
use futures_util::FutureExt as _;
use http::{Method, StatusCode, Uri, Version};
use hybriq::{Connection, Endpoint, Identity, KeyExchange, Trust, tls::ClientAuth};
use hybriq_http::{Client, ClientError, Http3, Server};

use crate::{
    common::{
        bytes, client, client_with, config, get, offering, peer, post, request, until_http3, uri,
    },
    support::{Certificate, client_config, run, run_with, soon},
};

/// Over each version, the bodies of one connection's requests come back, and the facts are known.
#[tokio::test]
async fn each_version_is_spoken_on_one_connection() {
    let server = run(Router::new());
    for (http3, version) in [
        (Http3::Only, Version::HTTP_3),
        (Http3::First, Version::HTTP_3),
        (Http3::Off, Version::HTTP_2),
    ] {
        let client = client(http3);
        let mut ports = Vec::new();
        for len in [0, 5, 100_000] {
            let body = vec![7; len];
            let response = post(&client, server.address(), body.clone()).await.unwrap();
            assert_eq!(response.status(), StatusCode::OK);
            assert_eq!(response.version(), version);
            let peer = peer(&response);
            assert_eq!(peer.address, server.address());
            assert_eq!(peer.version, version);
            let group = peer.tls.group.unwrap().to_string();
            assert_eq!(group, "X25519MLKEM768");
            assert_eq!(peer.tls.server_certificates, [Certificate::shared().der()]);
            assert_eq!(peer.tls.server_name.as_deref(), Some("localhost"));
            assert!(!peer.early && !peer.tls.resumed);
            assert_eq!(
                response.headers()["x-peer"],
                peer.local_address.to_string().replace("[::]", "127.0.0.1")
            );
            ports.push(response.headers()["x-peer"].clone());
            assert!(bytes(response).await == body, "{len} bytes");
        }
        ports.dedup();
        assert_eq!(ports.len(), 1, "{http3:?}");
    }
}

/// The first answer over HTTP/2 offers HTTP/3, which later requests use.
#[tokio::test]
async fn an_offer_of_http3_is_taken() {
    let server = run(Router::new());
    let client = client(Http3::Discover);
    let first = get(&client, server.address()).await;
    assert_eq!(first.version(), Version::HTTP_2);
    until_http3(&client, server.address()).await;
    let later = get(&client, server.address()).await;
    assert_eq!(later.version(), Version::HTTP_3);
    // A server that offers none is not asked.
    let server = run(offering("clear"));
    for _ in 0..10 {
        let response = get(&client, server.address()).await;
        assert_eq!(response.version(), Version::HTTP_2);
    }
}

/// The choice for one server overrides that for all.
#[tokio::test]
async fn servers_have_their_own_choice() {
    let [first, second] = [run(Router::new()), run(Router::new())];
    let port = first.address().port();
    let builder = Client::builder().http3(Http3::Off);
    let builder = builder.http3_for("LOCALHOST", port, Http3::First);
    let client = client_with(builder, config());
    let response = get(&client, first.address()).await;
    assert_eq!(response.version(), Version::HTTP_3);
    let response = get(&client, second.address()).await;
    assert_eq!(response.version(), Version::HTTP_2);
}

/// The policy of key exchange holds over TCP as over QUIC, and the error says why there is no connection.
#[tokio::test]
async fn a_classical_server_is_refused_where_post_quantum_is_required() {
    let classical = Certificate::shared().config();
    let classical = classical.key_exchange(KeyExchange::OnlyClassical);
    let classical = run_with(Server::builder(), classical, Router::new());
    let server = run(Router::new());
    for http3 in [Http3::Only, Http3::First, Http3::Off] {
        let config = config().key_exchange(KeyExchange::RequirePostQuantum);
        let client = client_with(Client::builder().http3(http3), config);
        assert_eq!(
            get(&client, server.address()).await.status(),
            StatusCode::OK
        );
        let refused = soon(client.get(uri(classical.address(), "/")))
            .await
            .unwrap_err();
        let ClientError::Connect { server, quic, tcp } = &refused else {
            panic!("{refused}");
        };
        assert_eq!(*server, format!("localhost:{}", classical.address().port()));
        assert_eq!(quic.is_some(), http3 != Http3::Off, "{refused}");
        assert_eq!(tcp.is_some(), http3 != Http3::Only, "{refused}");
        let anyone = client_with(Client::builder().http3(http3), crate::common::config());
        let response = get(&anyone, classical.address()).await;
        assert_eq!(peer(&response).tls.group.unwrap().to_string(), "X25519");
    }
}

#[tokio::test]
async fn an_unknown_certificate_is_refused() {
    let server = run(Router::new());
    let other = Certificate::new();
    for http3 in [Http3::Only, Http3::First, Http3::Off] {
        let config = config().trust(Trust::roots_der([other.der()]));
        let client = client_with(Client::builder().http3(http3), config);
        let refused = soon(client.get(uri(server.address(), "/"))).await;
        assert!(matches!(refused, Err(ClientError::Connect { .. })));
    }
}

/// A client shows its certificate over every version.
#[tokio::test]
async fn the_client_has_a_certificate() {
    let own = Certificate::new();
    let show = async |axum::Extension(peer): axum::Extension<hybriq_http::Peer>| {
        peer.tls.client_certificates.len().to_string()
    };
    let config = Certificate::shared().config();
    let config = config.client_auth(ClientAuth::Required(Trust::roots_der([own.der()])));
    let router = Router::new().route("/", axum::routing::get(show));
    let server = run_with(Server::builder(), config, router);
    for http3 in [Http3::Only, Http3::Off] {
        let identity = Identity::from_der(vec![own.der()], own.key());
        let config = crate::common::config().identity(identity);
        let client = client_with(Client::builder().http3(http3), config);
        assert_eq!(bytes(get(&client, server.address()).await).await, "1");
    }
}

#[tokio::test]
async fn requests_that_cannot_be_sent_are_refused_at_once() {
    let client = client(Http3::Discover);
    for uri in ["http://localhost/", "/path", "https://user@localhost/"] {
        let refused = soon(client.get(uri)).await.unwrap_err();
        assert!(matches!(refused, ClientError::Uri(_)), "{refused}");
        assert!(refused.to_string().contains("https://example.com"));
    }
    let refused = soon(client.get("no uri")).await.unwrap_err();
    assert!(matches!(refused, ClientError::InvalidUri(_)), "{refused}");
    let refused = client.request(request(Method::CONNECT, "https://localhost/", ""));
    let refused = soon(refused).await.unwrap_err();
    assert!(matches!(refused, ClientError::Method(_)), "{refused}");
    assert_eq!("https://localhost/".parse::<Uri>().unwrap().port(), None);
}

/// Any service of tower, such as one with layers, can be put around the client.
#[tokio::test]
async fn the_client_is_a_service() {
    use tower_service::Service as _;

    let server = run(Router::new());
    let mut client = client(Http3::First);
    soon(std::future::poll_fn(|cx| {
        tower_service::Service::<http::Request<String>>::poll_ready(&mut client, cx)
    }))
    .await
    .unwrap();
    let request = http::Request::post(uri(server.address(), "/"));
    let request = request.body("hello".to_owned()).unwrap();
    let response = soon(client.call(request)).await.unwrap();
    assert_eq!(bytes(response).await, "hello");
}

/// Reads the starts of the unidirectional streams that the peer has opened, and returns whether a setting, a frame and
/// a stream among them are reserved.
async fn reserved(connection: &Connection) -> [bool; 3] {
    let is_reserved = |start: &[u8]| {
        let bytes = <[u8; 4]>::try_from(&start[..4]).unwrap();
        assert_eq!(bytes[0] >> 6, 2, "an integer of four bytes: {start:x?}");
        (u32::from_be_bytes(bytes) & 0x3fff_ffff) % 0x1f == 0x21 % 0x1f
    };
    let (mut streams, mut found, mut bytes) = (Vec::new(), [false; 3], 0);
    while let Some(stream) = connection.accept_uni().now_or_never() {
        let mut stream = stream.unwrap().unwrap();
        let start = soon(stream.read_chunk(1_000)).await.unwrap().unwrap();
        streams.push(stream);
        match &start[..] {
            [0, 4, len, rest @ ..] => {
                let (settings, frame) = rest.split_at(usize::from(*len));
                // SETTINGS_MAX_FIELD_SECTION_SIZE, and those of QPACK.
                let own = &settings[..settings.len().min(3 + 5 + 2)];
                let others = &settings[own.len()..];
                found[0] = !others.is_empty() && is_reserved(others);
                found[1] = !frame.is_empty() && is_reserved(frame) && frame[4..] == [0];
                bytes += others.len() + frame.len();
            }
            [2 | 3, ..] => {}
            other => {
                found[2] = is_reserved(other);
                bytes += other.len();
            }
        }
    }
    assert!(bytes <= 20, "{bytes}");
    found
}

/// RFC 9114 §6.2.3, §7.2.4.1 and §7.2.8, in both roles.
#[tokio::test]
async fn reserved_values_are_sent_unless_they_are_switched_off() {
    let config = Certificate::shared().config().alpn([hybriq_h3::ALPN]);
    let endpoint = Endpoint::server("127.0.0.1:0", config).unwrap();
    for is_on in [true, false] {
        let (mut server, mut asking) = (Server::builder(), Client::builder().http3(Http3::Only));
        if !is_on {
            (server, asking) = (server.without_grease(), asking.without_grease());
        }
        let server = run_with(server, Certificate::shared().config(), Router::new());
        let raw = Endpoint::client(client_config(&Certificate::shared())).unwrap();
        let connection = soon(raw.connect(server.address(), "localhost"))
            .await
            .unwrap();
        let (mut send, mut recv) = soon(connection.open_bidi()).await.unwrap();
        // A request without a head, whose refusal comes behind the streams of the connection.
        send.finish();
        soon(recv.received_reset()).await.unwrap();
        assert_eq!(reserved(&connection).await, [is_on; 3], "a server");

        let asking = client_with(asking, crate::common::config());
        let asks = asking.get(uri(endpoint.local_address(), "/"));
        let looks = async {
            let incoming = endpoint.accept().await.unwrap();
            let connection = incoming.accept().await.unwrap();
            connection.accept_bidi().await.unwrap();
            reserved(&connection).await
        };
        let found = tokio::select! {
            found = soon(looks) => found,
            _ = asks => unreachable!("nobody answers"),
        };
        assert_eq!(found, [is_on; 3], "a client");
    }
}
