//! Reloads that keep sessions, and files that are watched.

use std::{
    fs,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use axum::Router;
use hybriq::{Identity, ServerConfig, Trust, tls::ClientAuth};
use hybriq_http::{Client, Http3 as UseHttp3};

use super::support::{Certificate, Http3, client_config, get, run, soon};

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
