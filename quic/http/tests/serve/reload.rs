//! Reloads that keep sessions, and files that are watched.

use std::{
    fs,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use axum::Router;
use hybriq::{
    EndpointError, Identity, KeyExchange, ServerConfig, Trust,
    tls::{ClientAuth, PeerChain},
};
use hybriq_http::{Client, Http3 as UseHttp3, Server};

use super::support::{Certificate, Http3, client_config, get, run, run_with, soon};

#[tokio::test]
async fn sessions_over_quic_survive_a_reload() {
    let server = run(Router::new());
    let quic = client_config(&Certificate::shared());
    let over_quic = async || {
        let mut client = Http3::with(server.address(), quic.clone()).await;
        let response = client.ask(get("/")).await.unwrap();
        let group = response.headers()["x-group"].to_str().unwrap().to_owned();
        group.contains("resumed")
    };
    let reload = |config| server.handle.reload(config).unwrap();
    let config = || Certificate::shared().config();

    assert!(!over_quic().await);
    reload(config());
    assert!(over_quic().await);

    // Clients that are asked for certificates are verified anew.
    let trust = || Trust::roots_der([Certificate::shared().der()]);
    let asks = || config().client_auth(ClientAuth::Optional(trust()));
    reload(asks());
    assert!(!over_quic().await);
    reload(asks());
    assert!(!over_quic().await);
}

/// Unless the policy is another one, or clients are asked for certificates.
#[tokio::test]
async fn sessions_over_tcp_survive_a_reload() {
    let server = run(Router::new());
    let address = server.address();
    let client = Client::builder()
        .http3(UseHttp3::Off)
        .resolve("localhost", [address]);
    let client = client.build(client_config(&Certificate::shared())).unwrap();
    let resumes = async || {
        client.close_idle();
        let uri = format!("https://localhost:{}/", address.port());
        let response = soon(client.get(uri)).await.unwrap();
        let group = response.headers()["x-group"].to_str().unwrap().to_owned();
        // The connection is idle then.
        response.into_body().bytes(1 << 10).await.unwrap();
        group.contains("resumed")
    };
    let reload = |config| server.handle.reload(config).unwrap();
    let config = || Certificate::shared().config();

    assert!(!resumes().await);
    assert!(resumes().await);
    reload(config());
    assert!(resumes().await);
    reload(config().key_exchange(KeyExchange::RequirePostQuantum));
    assert!(!resumes().await);
    assert!(resumes().await);

    let trust = || Trust::roots_der([Certificate::shared().der()]);
    let asks = || config().client_auth(ClientAuth::Optional(trust()));
    reload(asks());
    assert!(!resumes().await);
    reload(asks());
    assert!(!resumes().await);
}

/// One DER item.
fn item(tag: u8, content: &[&[u8]]) -> Vec<u8> {
    let content = content.concat();
    let len = u16::try_from(content.len()).unwrap().to_be_bytes();
    [&[tag, 0x82], &len[..], &content].concat()
}

/// An OCSP response in DER, which nobody signed: the certificate with this serial number is good.
fn ocsp_response(serial: u8) -> Vec<u8> {
    let id = [
        item(0x30, &[]),
        item(4, &[]),
        item(4, &[]),
        item(2, &[&[serial]]),
    ];
    let time = item(0x18, &[b"20260101000000Z"]);
    let answer = item(0x30, &[&item(0x30, &[&id.concat()]), &[0x80, 0], &time]);
    let data = [item(0xa2, &[]), time, item(0x30, &[&answer])];
    let basic = item(0x30, &[&item(0x30, &[&data.concat()])]);
    let kind = item(
        6,
        &[&[0x2b, 0x06, 0x01, 0x05, 0x05, 0x07, 0x30, 0x01, 0x01]],
    );
    let bytes = item(0x30, &[&kind, &item(4, &[&basic])]);
    item(0x30, &[&[0x0a, 1, 0], &item(0xa0, &[&bytes])])
}

/// Over QUIC and over TCP. What cannot be used is told in one line, and leaves the pair and the response as they are.
#[tokio::test]
async fn a_reload_changes_the_stapled_response_or_nothing() {
    let mut params = rcgen::CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
    params.serial_number = Some(7_u64.into());
    let key = rcgen::KeyPair::generate().unwrap();
    let made = params.self_signed(&key).unwrap();
    let identity = |key: &rcgen::KeyPair| {
        Identity::from_pem(made.pem().as_bytes(), key.serialize_pem().as_bytes())
    };
    let own = || identity(&key).unwrap();
    let server = run_with(Server::builder(), ServerConfig::new(own()), Router::new());
    let address = server.address();
    let asks = async |http3| {
        let seen = Arc::new(Mutex::new(None));
        let notes = seen.clone();
        let trust = Trust::roots_der([made.der().clone()]).also(move |peer: &PeerChain<'_>| {
            *notes.lock().unwrap() = Some(peer.ocsp_response.to_vec());
            Ok(())
        });
        let client = Client::builder()
            .http3(http3)
            .resolve("localhost", [address]);
        let client = client.build(hybriq::ClientConfig::new().trust(trust));
        let uri = format!("https://localhost:{}/", address.port());
        soon(client.unwrap().get(uri)).await.unwrap();
        seen.lock().unwrap().take().unwrap()
    };
    let stapled = |response| own().with_ocsp_response(response).map(ServerConfig::new);
    let response = ocsp_response(7);
    let other = rcgen::KeyPair::generate().unwrap();
    for (config, expected, problem) in [
        (Ok(ServerConfig::new(own())), &[][..], None),
        (stapled(response.clone()), &response, None),
        (
            stapled(b"garbage".to_vec()),
            &response,
            Some("no OCSP response"),
        ),
        (
            stapled(ocsp_response(8)),
            &response,
            Some("another certificate"),
        ),
        (
            identity(&other).map(ServerConfig::new),
            &response,
            Some("the key is not"),
        ),
        (
            Identity::from_pem(b"-----BEGIN", b"").map(ServerConfig::new),
            &response,
            Some("no certificate in the PEM"),
        ),
    ] {
        let reloaded = config
            .map_err(EndpointError::from)
            .and_then(|config| server.handle.reload(config));
        let told = reloaded.err().map(|error| error.to_string());
        assert_eq!(told.is_some(), problem.is_some(), "{told:?}");
        if let (Some(told), Some(problem)) = (told, problem) {
            assert!(told.contains(problem) && told.contains("; "), "{told}");
            assert_eq!(told.lines().count(), 1, "{told}");
        }
        for http3 in [UseHttp3::Only, UseHttp3::Off] {
            assert_eq!(asks(http3).await, expected, "{problem:?}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn watched_files_replace_the_certificate_once_they_are_whole() {
    let folder = std::env::temp_dir().join(format!("hybriq-http-watch-{}", std::process::id()));
    fs::create_dir_all(&folder).unwrap();
    let (chain, key) = (folder.join("cert.pem"), folder.join("key.pem"));
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let server = run(Router::new());
    let address = server.address();
    let refused = Arc::new(AtomicUsize::new(0));
    let watching = tokio::spawn({
        let (files, refused) = ([chain.clone(), key.clone()], refused.clone());
        let handle = server.handle.clone();
        async move {
            let [chain, key] = &files;
            let config = || {
                let identity = Identity::from_pem_files(chain, key);
                refused.fetch_add(usize::from(identity.is_err()), Ordering::Relaxed);
                Ok(ServerConfig::new(identity?))
            };
            handle.watch(files.clone(), Duration::ZERO, config).await;
        }
    });
    // Files that stay as they are change nothing.
    let same = Arc::new(AtomicUsize::new(0));
    tokio::spawn({
        let (handle, same) = (server.handle.clone(), same.clone());
        async move {
            let config = || {
                same.fetch_add(1, Ordering::Relaxed);
                Ok(Certificate::shared().config())
            };
            handle.watch(["Cargo.toml"], Duration::ZERO, config).await;
        }
    });
    let asks = async |root, http3| {
        let trust = Trust::roots_der([root]);
        let client = Client::builder()
            .http3(http3)
            .resolve("localhost", [address]);
        let client = client
            .build(hybriq::ClientConfig::new().trust(trust))
            .unwrap();
        let uri = format!("https://localhost:{}/", address.port());
        soon(client.get(uri)).await.is_ok()
    };
    // Half of it is not used. It is written again and again: the watch begins at some time.
    soon(async {
        let mut pem = made.cert.pem();
        while refused.load(Ordering::Relaxed) == 0 {
            fs::write(&chain, &pem).unwrap();
            pem.push('\n');
            tokio::task::yield_now().await;
        }
    })
    .await;
    let (old, new) = (Certificate::shared().der(), made.cert.der().clone());
    for http3 in [UseHttp3::Only, UseHttp3::Off] {
        assert!(asks(old.clone(), http3).await);
    }
    fs::write(&key, made.signing_key.serialize_pem()).unwrap();
    for http3 in [UseHttp3::Only, UseHttp3::Off] {
        soon(async { while !asks(new.clone(), http3).await {} }).await;
        assert!(!asks(old.clone(), http3).await);
    }
    server.handle.shutdown(Duration::ZERO).await;
    soon(watching).await.unwrap();
    assert_eq!(same.load(Ordering::Relaxed), 0);
    fs::remove_dir_all(&folder).unwrap();
}

/// A file that is another one at each look, and a watch without any pause.
#[tokio::test(start_paused = true)]
async fn watched_files_are_looked_at_a_hundred_times_a_second_at_most() {
    let file = std::env::temp_dir().join(format!("hybriq-http-looks-{}", std::process::id()));
    let server = Server::bind("127.0.0.1:0", Certificate::shared().config()).unwrap();
    let (handle, looks) = (server.handle(), AtomicUsize::new(0));
    let change = || {
        let look = looks.fetch_add(1, Ordering::Relaxed);
        assert!(look < 1_000, "without any pause");
        fs::write(&file, look.to_string()).unwrap();
    };
    let config = || {
        change();
        Ok(Certificate::shared().config())
    };
    let begin = async {
        tokio::time::sleep(Duration::from_millis(5)).await;
        change();
        tokio::time::sleep(Duration::from_secs(1)).await;
    };
    tokio::select! {
        () = handle.watch([&file], Duration::ZERO, config) => unreachable!("the server runs"),
        () = begin => {}
    }
    let looks = looks.into_inner();
    assert!((50..=102).contains(&looks), "{looks}");
    fs::remove_file(&file).unwrap();
}
