//! What both ends must agree on before there is a session of draft 15: settings, transport parameters, and protocols of
//! applications.

use std::sync::Arc;

use axum::{Extension, Router, routing::any};
use http::Request;
use hybriq::Endpoint;
use hybriq_h3::Code;
use hybriq_http::{
    Server,
    webtransport::{self, ConnectError, Limits, Protocols, Session, SessionError, WebTransport},
};
use tokio::sync::mpsc;
use tokio_rustls::rustls;

use crate::{
    draft15::{DRAFT15, Host, host},
    peer,
    support::{Certificate, client_config, run_with, soon},
};

impl Host {
    async fn connect(&self, protocols: &[&str]) -> Result<Session, ConnectError> {
        self.offer(Protocols::new(protocols.iter().copied())).await
    }

    async fn offer(&self, protocols: Protocols) -> Result<Session, ConnectError> {
        let endpoint = Endpoint::client(client_config(&Certificate::shared())).unwrap();
        let port = self.server.address().port();
        let request = Request::get(format!("https://localhost:{port}/chat"));
        let request = request.extension(protocols).body(()).unwrap();
        soon(webtransport::connect(&endpoint, request)).await
    }
}

/// Without flow control, a client of draft 15 has one session at a time.
#[tokio::test]
async fn without_flow_control_there_is_one_session() {
    let mut host = host();
    let client = host.raw_with(&[(0x33, 1), (0x2c7c_f000, 1)]).await;
    let _first = client.session().await;
    let _session = host.session().await;
    let mut second = client.ask().await;
    assert_eq!(second.data().await, Err(Code::H3_REQUEST_REJECTED));
    assert_eq!(client.connection.close_reason(), None);
}

/// A client of draft 15 must announce HTTP Datagrams.
#[tokio::test]
async fn a_client_without_what_sessions_need_is_refused() {
    let host = host();
    let client = host.raw_with(&[(0x2c7c_f000, 1)]).await;
    let mut request = client.ask().await;
    assert_eq!(request.data().await, Err(Code::H3_MESSAGE_ERROR));
}

/// A client of draft 15 must take RESET_STREAM_AT (draft-ietf-webtrans-http3 §3.1), which Quinn does not; one of an
/// earlier draft need not.
#[tokio::test]
async fn a_client_without_reset_stream_at_is_refused() {
    let mut host = host();
    let mut roots = rustls::RootCertStore::empty();
    roots.add(Certificate::shared().der()).unwrap();
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let tls = rustls::ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&rustls::version::TLS13])
        .unwrap();
    let mut tls = tls.with_root_certificates(roots).with_no_client_auth();
    tls.alpn_protocols = vec![b"h3".to_vec()];
    let tls = quinn::crypto::rustls::QuicClientConfig::try_from(tls).unwrap();
    let mut endpoint = quinn::Endpoint::client("127.0.0.1:0".parse().unwrap()).unwrap();
    endpoint.set_default_client_config(quinn::ClientConfig::new(Arc::new(tls)));
    for (settings, is_refused) in [(DRAFT15, true), (peer::DRAFT02, false)] {
        let connecting = endpoint.connect(host.server.address(), "localhost");
        let client = soon(connecting.unwrap()).await.unwrap();
        let settings = settings.iter().flat_map(|(id, value)| [*id, *value]);
        let settings: Vec<u8> = settings.flat_map(peer::integer).collect();
        let mut control = client.open_uni().await.unwrap();
        let frame = [&[0, 4, settings.len() as u8][..], &settings].concat();
        control.write_all(&frame).await.unwrap();
        let (mut send, mut recv) = client.open_bi().await.unwrap();
        let fields = [(":protocol", "webtransport")];
        let head = peer::head(0xcf, "/chat", &fields);
        send.write_all(&head).await.unwrap();
        let answer = soon(recv.read(&mut [0; 100])).await;
        if is_refused {
            let code = quinn::VarInt::from_u64(Code::H3_MESSAGE_ERROR.0).unwrap();
            assert_eq!(answer, Err(quinn::ReadError::Reset(code)));
        } else {
            assert!(matches!(answer, Ok(Some(1..))), "{answer:?}");
            drop(host.session().await);
        }
    }
}

/// The client offers protocols, and the service chooses.
#[tokio::test]
async fn protocols_are_negotiated() {
    let mut host = host();
    let client = host.connect(&["a", "b"]).await.unwrap();
    let server = host.session().await;
    assert_eq!(
        (client.protocol(), server.protocol()),
        (Some("b"), Some("b"))
    );
    let client = host.connect(&["a"]).await.unwrap();
    let server = host.session().await;
    assert_eq!((client.protocol(), server.protocol()), (None, None));
}

/// A client that requires a protocol opens no session without one, and ends that of the server.
#[tokio::test]
async fn a_required_protocol_must_be_chosen() {
    let mut host = host();
    let client = host.offer(Protocols::new(["a", "b"]).required()).await;
    assert_eq!(client.unwrap().protocol(), Some("b"));
    host.session().await;
    for names in [&["a"][..], &[]] {
        let names = Protocols::new(names.iter().copied());
        let refused = host.offer(names.required()).await.unwrap_err();
        assert!(matches!(refused, ConnectError::NoProtocol), "{refused}");
        // Cut off, or with its connection.
        let end = soon(host.session().await.closed()).await;
        assert!(!matches!(end, SessionError::Closed { .. }), "{end}");
    }
    // A malformed choice is none.
    let host = choosing("other");
    let refused = host.offer(Protocols::new(["other"]).required()).await;
    assert!(
        matches!(refused, Err(ConnectError::NoProtocol)),
        "{refused:?}"
    );
}

/// A server whose responses have this choice.
fn choosing(choice: &'static str) -> Host {
    let choose = async move |Extension(request): Extension<WebTransport>| {
        let status = request.accept(async |session| {
            session.closed().await;
        });
        (status, [("wt-protocol", choice)])
    };
    let router = Router::new().route("/chat", any(choose));
    let builder = Server::builder().webtransport(Limits::default());
    let server = run_with(builder, Certificate::shared().config(), router);
    let (_, sessions) = mpsc::unbounded_channel();
    Host { server, sessions }
}

/// A server that chooses what was not offered loses the session.
#[tokio::test]
async fn a_protocol_that_was_not_offered_is_an_error() {
    let host = choosing("\"other\"");
    let refused = host.connect(&["a"]).await.unwrap_err();
    assert!(
        matches!(&refused, ConnectError::Protocol(other) if other == "other"),
        "{refused}"
    );
    // A client that offers none takes no notice.
    assert_eq!(host.connect(&[]).await.unwrap().protocol(), None);
}
