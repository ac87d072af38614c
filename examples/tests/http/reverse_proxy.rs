//! The reverse proxy, judged by the bytes at its upstream.

use std::{collections::BTreeSet, fs, net::SocketAddr, path::Path, sync::Arc};

use bytes::Bytes;
use futures_util::stream;
use http::{HeaderMap, Method, Request, StatusCode, Version, header::TRAILER};
use http_body_util::{BodyExt as _, StreamBody};
use hybriq::{ClientConfig, Endpoint, Trust};
use hybriq_http::{Body, Client, Http3, masque::ProxyClient};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio_rustls::rustls::pki_types::{
    CertificateDer, PrivateKeyDer, ServerName, pem::PemObject as _,
};
use tokio_rustls::{TlsAcceptor, TlsConnector, client::TlsStream, rustls};

use crate::{Server, certify, client, folder, serving};

const ANSWER: &[u8] = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\ntrailer: x-sum\r\nconnection: x-hop\r\n\
    x-hop: 1\r\nkeep-alive: timeout=5\r\nalt-svc: h3=\":1\"\r\nx-kept: 1\r\n\r\n5\r\nhello\r\n0\r\nx-sum: 7\r\n\r\n";

/// An upstream of HTTP/1.1 that tells the bytes of each request. It is silent, or talks nonsense, if asked to.
async fn upstream(cert: &Path, key: &Path) -> (SocketAddr, mpsc::UnboundedReceiver<String>) {
    let chain = vec![CertificateDer::from_pem_file(cert).unwrap()];
    let key = PrivateKeyDer::from_pem_file(key).unwrap();
    let provider = rustls::crypto::aws_lc_rs::default_provider();
    let config = rustls::ServerConfig::builder_with_provider(provider.into());
    let config = config.with_safe_default_protocol_versions().unwrap();
    let config = config.with_no_client_auth().with_single_cert(chain, key);
    let acceptor = TlsAcceptor::from(Arc::new(config.unwrap()));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (tell, told) = mpsc::unbounded_channel();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let mut stream = acceptor.accept(stream).await.unwrap();
            let tell = tell.clone();
            tokio::spawn(async move {
                let mut request = Vec::new();
                while let Ok(byte) = stream.read_u8().await {
                    request.push(byte);
                    let text = String::from_utf8_lossy(&request);
                    let is_whole = text.ends_with("\r\n\r\n")
                        && (!text.contains("chunked") || text.contains("\r\n0\r\n"));
                    if is_whole {
                        if text.contains("upgrade: websocket\r\n") {
                            return echo(text.into_owned(), stream, tell).await;
                        }
                        let answer = match text.split(' ').nth(1) {
                            Some("/silent") => &b""[..],
                            Some("/nonsense") => b"SSH-2.0\r\n\r\n",
                            _ => ANSWER,
                        };
                        tell.send(text.into_owned()).unwrap();
                        request.clear();
                        stream.write_all(answer).await.unwrap();
                        stream.flush().await.unwrap();
                    }
                }
            });
        }
    });
    (address, told)
}

/// Agrees to a WebSocket, and sends back what comes.
async fn echo<S: AsyncRead + AsyncWrite>(
    request: String,
    stream: S,
    tell: mpsc::UnboundedSender<String>,
) {
    tell.send(request).unwrap();
    let (mut reader, mut writer) = tokio::io::split(stream);
    let agreed = "HTTP/1.1 101 Yes\r\nupgrade: websocket\r\nconnection: upgrade\r\nsec-websocket-accept: x\r\n\r\n";
    writer.write_all(agreed.as_bytes()).await.unwrap();
    tokio::io::copy(&mut reader, &mut writer).await.unwrap();
    writer.shutdown().await.unwrap();
}

/// Returns the names of the fields of a request of HTTP/1.1.
fn names(request: &str) -> BTreeSet<&str> {
    let lines = request.lines().skip(1).take_while(|line| !line.is_empty());
    lines.map(|line| line.split_once(':').unwrap().0).collect()
}

/// Reads a response that was passed on.
async fn expect_answer(response: http::Response<Body>) {
    assert_eq!(response.status(), StatusCode::OK);
    let fields = response.headers();
    assert_eq!(fields["x-kept"], "1");
    for name in ["x-hop", "keep-alive", "transfer-encoding", "connection"] {
        assert!(!fields.contains_key(name), "{name}");
    }
    assert!(
        fields
            .get("alt-svc")
            .is_none_or(|offer| offer != "h3=\":1\"")
    );
    let body = response.into_body().collect().await.unwrap();
    assert_eq!(body.trailers().unwrap()["x-sum"], "7");
    assert_eq!(body.to_bytes(), "hello");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_reverse_proxy_passes_on_what_belongs_to_the_request() {
    let folder = folder("reverse-proxy");
    let (cert, key) = (folder.join("cert.pem"), folder.join("key.pem"));
    certify(&cert, &key);
    let (address, mut told) = upstream(&cert, &key).await;
    let mut command = serving(env!("CARGO_BIN_EXE_reverse_proxy"), &cert, &key);
    command.arg(format!("localhost:{}", address.port()));
    command
        .args(["--patience", "3000"])
        .env("SSL_CERT_FILE", &cert);
    let server = Server::run(&mut command);
    let host = format!("localhost:{}", server.address.port());
    let uri = |path: &str| format!("https://{host}{path}");
    for (http3, version) in [
        (Http3::Only, Version::HTTP_3),
        (Http3::Off, Version::HTTP_2),
    ] {
        let client: Client = client(&server, &cert, http3);
        for method in [Method::GET, Method::OPTIONS] {
            let request = Request::builder().method(&method).uri(uri("/page?x=1"));
            // The end of this body comes after the fields.
            let nothing = stream::empty::<Result<http_body::Frame<Bytes>, std::io::Error>>();
            let request = request.header("te", "trailers");
            let request = request.body(StreamBody::new(nothing)).unwrap();
            let response = client.request(request).await.unwrap();
            assert_eq!(response.version(), version);
            expect_answer(response).await;
            let request = told.recv().await.unwrap();
            let line = format!("{method} /page?x=1 HTTP/1.1\r\n");
            assert!(request.starts_with(&line), "{request}");
            assert!(
                request.contains(&format!("\r\nhost: {host}\r\n")),
                "{request}"
            );
            assert!(
                request.contains("\r\nforwarded: for=\"127.0.0.1:"),
                "{request}"
            );
            assert_eq!(names(&request), ["forwarded", "host", "via"].into());
        }

        let mut trailers = HeaderMap::new();
        trailers.insert("x-t", "1".parse().unwrap());
        let frames = [
            http_body::Frame::data(Bytes::from_static(b"abc")),
            http_body::Frame::trailers(trailers),
        ];
        let body = StreamBody::new(stream::iter(frames.map(Ok::<_, std::io::Error>)));
        let request = Request::post(uri("/form")).header(TRAILER, "x-t");
        let response = client.request(request.body(body).unwrap()).await.unwrap();
        expect_answer(response).await;
        let request = told.recv().await.unwrap();
        let expected = ["forwarded", "host", "trailer", "transfer-encoding", "via"];
        assert_eq!(names(&request), expected.into());
        let body = request.split_once("\r\n\r\n").unwrap().1;
        assert_eq!(body, "3\r\nabc\r\n0\r\nx-t: 1\r\n\r\n");

        let response = client.get(uri("/nonsense")).await.unwrap();
        assert_eq!(response.status(), StatusCode::BAD_GATEWAY);
        told.recv().await.unwrap();
    }
    let client = client(&server, &cert, Http3::Only);
    let response = client.get(uri("/silent")).await.unwrap();
    assert_eq!(response.status(), StatusCode::GATEWAY_TIMEOUT);
    told.recv().await.unwrap();

    // Only HTTP/1.1 has fields of its connections.
    let mut stream = over_http1(server.address, &cert).await;
    let request = format!(
        "GET / HTTP/1.1\r\nhost: {host}\r\nconnection: x-hop, close\r\nconnection: host, x-other\r\nx-hop: 1\r\nx-other: 1\r\n\
         keep-alive: 1\r\nproxy-connection: close\r\nte: gzip\r\nx-kept: 1\r\n\r\n"
    );
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
    let request = told.recv().await.unwrap();
    assert_eq!(
        names(&request),
        ["forwarded", "host", "via", "x-kept"].into()
    );

    // The test of quic/http has WebSockets over HTTP/2 and HTTP/3.
    let mut stream = over_http1(server.address, &cert).await;
    let request = format!(
        "GET /socket HTTP/1.1\r\nhost: {host}\r\nconnection: upgrade, forwarded\r\nupgrade: websocket\r\nsec-websocket-key: x\r\n\r\nping"
    );
    stream.write_all(request.as_bytes()).await.unwrap();
    let request = told.recv().await.unwrap();
    let expected = [
        "connection",
        "forwarded",
        "host",
        "sec-websocket-key",
        "upgrade",
        "via",
    ];
    assert_eq!(names(&request), expected.into());
    stream.shutdown().await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 101 "), "{answer}");
    assert!(
        answer.contains("\r\nsec-websocket-accept: x\r\n"),
        "{answer}"
    );
    assert!(answer.ends_with("\r\n\r\nping"), "{answer}");

    expect_no_tunnels(&host, &cert).await;
}

/// The settings of HTTP/3 promise extended CONNECT, which is for WebSocket alone.
async fn expect_no_tunnels(host: &str, cert: &Path) {
    let config = ClientConfig::new().trust(Trust::roots_pem_file(cert).unwrap());
    let endpoint = Endpoint::client(config.alpn(["h3"])).unwrap();
    let template = format!("https://{host}/{{target_host}}/{{target_port}}/");
    let tunnels = ProxyClient::connect(&endpoint, template.parse().unwrap())
        .await
        .unwrap();
    let refused = tunnels.connect_udp(&"127.0.0.1:1".parse().unwrap()).await;
    let refused = refused.map(drop).unwrap_err().to_string();
    assert!(refused.contains("501"), "{refused}");
}

async fn over_http1(address: SocketAddr, cert: &Path) -> TlsStream<TcpStream> {
    let mut roots = rustls::RootCertStore::empty();
    let certificate = CertificateDer::from_pem_slice(&fs::read(cert).unwrap());
    roots.add(certificate.unwrap()).unwrap();
    let provider = rustls::crypto::aws_lc_rs::default_provider();
    let config = rustls::ClientConfig::builder_with_provider(provider.into());
    let config = config.with_safe_default_protocol_versions().unwrap();
    let mut config = config.with_root_certificates(roots).with_no_client_auth();
    config.alpn_protocols = vec!["http/1.1".into()];
    let stream = TcpStream::connect(address).await.unwrap();
    let name = ServerName::try_from("localhost").unwrap();
    let connector = TlsConnector::from(Arc::new(config));
    connector.connect(name, stream).await.unwrap()
}
