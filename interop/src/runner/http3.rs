//! HTTP/3, by hybriq-http.

use std::{net::SocketAddr, path::Path};

use http_body_util::BodyExt as _;
use hybriq::{ClientConfig, EndpointBuilder, ServerConfig};
use hybriq_http::{Client, Http3, Server};
use tokio::{fs::File, io::AsyncWriteExt as _, task::JoinSet};
use tower_http::services::ServeDir;

use super::{Download, END, Failure, HANDSHAKE_TIME, TestCase};

/// Serves a folder until `stopped`.
pub(super) async fn serve(
    endpoint: EndpointBuilder,
    listen: SocketAddr,
    config: ServerConfig,
    www: &Path,
    stopped: impl Future<Output = ()>,
) -> Result<(), Failure> {
    let server = Server::builder().without_tcp().endpoint(endpoint);
    let server = server.bind(listen, config)?;
    println!("listening on {}", server.local_address());
    let handle = server.handle();
    let files = ServeDir::new(www);
    tokio::select! {
        served = server.serve(files) => served?,
        () = stopped => handle.shutdown(END).await,
    }
    Ok(())
}

/// Downloads files over the connections of the case.
pub(super) async fn download(
    case: TestCase,
    config: ClientConfig,
    downloads: Vec<Download>,
) -> Result<(), Failure> {
    let client = |config| {
        Client::builder()
            .http3(Http3::Only)
            .connect_timeout(HANDSHAKE_TIME)
            .build(config)
    };
    match case {
        TestCase::MultiConnect => {
            for download in downloads {
                get_all(&client(config.clone())?, vec![download]).await?;
            }
            Ok(())
        }
        TestCase::Resumption | TestCase::ZeroRtt => {
            let client = client(config)?;
            let mut first = downloads;
            let rest = first.split_off(1.min(first.len()));
            get_all(&client, first).await?;
            get_all(&client, rest).await
        }
        TestCase::Qpack => {
            let client = client(config)?;
            for download in downloads {
                save(&client, &download).await?;
            }
            client.close_idle();
            Ok(())
        }
        _ => get_all(&client(config)?, downloads).await,
    }
}

/// Downloads files over one connection, which ends with them.
async fn get_all(client: &Client, downloads: Vec<Download>) -> Result<(), Failure> {
    let mut tasks = JoinSet::new();
    for download in downloads {
        let client = client.clone();
        tasks.spawn(async move {
            let saved = save(&client, &download).await;
            saved.map_err(|error| format!("{}: {}", download.uri, super::with_causes(&*error)))
        });
    }
    while let Some(saved) = tasks.join_next().await {
        saved??;
    }
    client.close_idle();
    Ok(())
}

async fn save(client: &Client, download: &Download) -> Result<(), Failure> {
    let response = client.get(download.uri.clone()).await?;
    if !response.status().is_success() {
        return Err(response.status().to_string().into());
    }
    let mut file = File::create(&download.to).await?;
    let mut body = response.into_body();
    while let Some(frame) = body.frame().await {
        if let Ok(data) = frame?.into_data() {
            file.write_all(&data).await?;
        }
    }
    file.flush().await?;
    Ok(())
}
