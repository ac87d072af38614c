//! HTTP/3 and WebTransport, by hybriq-http.

use std::{
    convert::Infallible,
    future::{Ready, ready},
    net::{Ipv6Addr, SocketAddr},
    path::Path,
    sync::Arc,
    task::{Context, Poll},
};

use bytes::Bytes;
use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt as _, Empty};
use hybriq::{ClientConfig, Endpoint, EndpointBuilder, ServerConfig, error::Printable};
use hybriq_http::{
    Client, Http3, Server,
    webtransport::{self, Limits, Session, WebTransport},
};
use tokio::{fs::File, io::AsyncWriteExt as _, task::JoinSet};
use tower_http::services::ServeDir;
use tower_service::Service;

use super::{Download, END, Failure, HANDSHAKE_TIME, TestCase, hq};

/// Serves a folder until `stopped`.
pub(super) async fn serve(
    case: TestCase,
    endpoint: EndpointBuilder,
    listen: SocketAddr,
    config: ServerConfig,
    www: &Path,
    stopped: impl Future<Output = ()>,
) -> Result<(), Failure> {
    let mut server = Server::builder().without_tcp().endpoint(endpoint);
    if case == TestCase::WebTransport {
        server = server.webtransport(Limits::default());
    }
    let server = server.bind(listen, config)?;
    println!("listening on {}", server.local_address());
    let handle = server.handle();
    let served = async {
        if case == TestCase::WebTransport {
            server.serve(Sessions(www.into())).await
        } else {
            server.serve(ServeDir::new(www)).await
        }
    };
    tokio::select! {
        served = served => served?,
        () = stopped => handle.shutdown(END).await,
    }
    Ok(())
}

/// A service that accepts all sessions, and serves a folder on their streams.
#[derive(Clone, Debug)]
struct Sessions(Arc<Path>);

impl<B> Service<Request<B>> for Sessions {
    type Response = Response<Empty<Bytes>>;
    type Error = Infallible;
    type Future = Ready<Result<Self::Response, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, mut request: Request<B>) -> Self::Future {
        let session = request.extensions_mut().remove::<WebTransport>();
        let www = self.0.clone();
        let accept = |session: WebTransport| session.accept(|session| answer(session, www));
        let mut response = Response::new(Empty::new());
        *response.status_mut() = session.map_or(StatusCode::NOT_FOUND, accept);
        ready(Ok(response))
    }
}

/// Answers the requests of a session.
async fn answer(session: Session, www: Arc<Path>) {
    while let Ok(Some((mut send, recv))) = session.accept_bidi().await {
        let www = www.clone();
        tokio::spawn(async move {
            if let Err(error) = hq::answer(&www, &mut send, recv).await {
                send.reset(1);
                eprintln!("a request failed: {}", Printable(error));
            }
        });
    }
}

/// Downloads files over the streams of one session.
async fn over_session(config: ClientConfig, downloads: Vec<Download>) -> Result<(), Failure> {
    let first = downloads.first().ok_or("nothing to download")?;
    let server = first.uri.authority().ok_or("a URL has no host")?;
    let request = Request::get(format!("https://{server}/webtransport"));
    let endpoint = Endpoint::builder().without_gso().client(config);
    let endpoint = endpoint.bind((Ipv6Addr::UNSPECIFIED, 0))?;
    let session = webtransport::connect(&endpoint, request.body(())?).await?;
    let mut tasks = JoinSet::new();
    for download in downloads {
        let (mut send, recv) = session.open_bidi().await?;
        hq::ask(&mut send, download.uri.path()).await?;
        tasks.spawn(async move { hq::save(recv, &download.to).await });
    }
    while let Some(saved) = tasks.join_next().await {
        saved??;
    }
    session.close(0, "");
    drop(session);
    // The server may be gone.
    let _ = tokio::time::timeout(END, endpoint.idle()).await;
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
        TestCase::WebTransport => over_session(config, downloads).await,
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
