//! A chat over WebTransport, with its page: open <https://localhost:4433/> in Chromium, and continue past the
//! warning about the certificate.
//!
//! A name and its welcome are a bidirectional stream, each message is a unidirectional one, and who is
//! typing comes in datagrams.

use std::{
    net::SocketAddr,
    path::PathBuf,
    time::{Duration, SystemTime},
};

use aws_lc_rs::digest::{SHA256, digest};
use axum::{
    Extension, Router,
    http::{HeaderMap, HeaderValue, StatusCode, Uri, header::ORIGIN},
    response::Html,
    routing::{any, get},
};
use clap::Parser;
use hybriq::{
    Identity, ServerConfig,
    error::Printable,
    tls::{CertificateDer, PrivateKeyDer},
};
use hybriq_examples::Failure;
use hybriq_http::webtransport::{Limits, Session, StreamError, WebTransport};
use hybriq_http::{Peer, Server};
use tokio::sync::broadcast;

/// A chat server.
#[derive(Parser)]
struct Options {
    /// Address to listen on, by TCP and UDP.
    #[arg(long, default_value = "127.0.0.1:4433")]
    listen: SocketAddr,
    /// PEM file with the certificate chain. Default: a new one for ten days.
    #[arg(long, requires = "key")]
    cert: Option<PathBuf>,
    /// PEM file with the private key.
    #[arg(long, requires = "cert")]
    key: Option<PathBuf>,
}

/// News for everybody in the room.
#[derive(Clone)]
enum Note {
    Said(String),
    Typing(String),
    /// The room closes.
    Closing,
}

type Room = broadcast::Sender<Note>;

#[tokio::main]
async fn main() -> Result<(), Failure> {
    let options = Options::parse();
    let (identity, hash) = match (&options.cert, &options.key) {
        (Some(cert), Some(key)) => (Identity::from_pem_files(cert, key)?, Vec::new()),
        _ => short_lived()?,
    };
    let page = include_str!("page.html").replace("HASH", &format!("{hash:?}"));
    let room = Room::new(256);
    let router = Router::new()
        .route("/", get(async || Html(page)))
        .route("/chat", any(enter))
        .layer(Extension(room.clone()));
    let server = Server::builder().webtransport(Limits::default());
    let server = server.bind(options.listen, ServerConfig::new(identity))?;
    println!("listening on {}", server.local_address());
    let handle = server.handle();
    tokio::spawn(async move {
        if tokio::signal::ctrl_c().await.is_ok() {
            // Nobody may be in.
            let _ = room.send(Note::Closing);
            handle.shutdown(Duration::from_secs(5)).await;
        }
    });
    server.serve(router).await?;
    Ok(())
}

/// Makes a certificate that browsers take by its hash: for at most two weeks, with a key of ECDSA.
fn short_lived() -> Result<(Identity, Vec<u8>), Failure> {
    let (now, day) = (SystemTime::now(), Duration::from_hours(24));
    let mut params = rcgen::CertificateParams::new(["localhost".to_owned()])?;
    params.not_before = (now - day).into();
    params.not_after = (now + 10 * day).into();
    let key = rcgen::KeyPair::generate()?;
    let cert = CertificateDer::from(params.self_signed(&key)?);
    let hash = digest(&SHA256, &cert).as_ref().to_vec();
    let key = PrivateKeyDer::try_from(key.serialize_der())?;
    Ok((Identity::from_der(vec![cert], key), hash))
}

/// Lets a visitor in whose page is ours: a browser asks for any page that its user has open.
async fn enter(
    Extension(room): Extension<Room>,
    Extension(peer): Extension<Peer>,
    request: Option<Extension<WebTransport>>,
    uri: Uri,
    fields: HeaderMap,
) -> StatusCode {
    let ours = format!(
        "https://{}",
        uri.authority().map_or("", |host| host.as_str())
    );
    let origin = fields.get(ORIGIN).map(HeaderValue::as_bytes);
    match request {
        None => StatusCode::BAD_REQUEST,
        Some(_) if origin.is_some_and(|origin| origin != ours.as_bytes()) => StatusCode::FORBIDDEN,
        Some(Extension(request)) => {
            request.accept(
                async move |session| match visit(&session, &room, &peer).await {
                    Ok(()) => println!("{} left", peer.address),
                    Err(error) => println!("{} left: {error}", peer.address),
                },
            )
        }
    }
}

async fn visit(session: &Session, room: &Room, peer: &Peer) -> Result<(), StreamError> {
    let Some((mut send, mut recv)) = session.accept_bidi().await? else {
        return Ok(());
    };
    // What a visitor writes must neither steer this terminal nor begin another visitor's line.
    let name = recv.read_to_end(64).await?;
    let name = Printable(String::from_utf8_lossy(&name)).to_string();
    println!("{name} joined from {} with {}", peer.address, peer.tls);
    let mut notes = room.subscribe();
    let here = room.receiver_count();
    let welcome = format!("{here} here, encrypted with {}", peer.tls);
    send.write_all(welcome.as_bytes()).await?;
    send.finish();
    loop {
        tokio::select! {
            message = session.accept_uni() => {
                let Some(mut message) = message? else { return Ok(()) };
                let text = message.read_to_end(4096).await?;
                let text = Printable(String::from_utf8_lossy(&text)).to_string();
                // There is a receiver: this visitor.
                let _ = room.send(Note::Said(format!("{name}: {text}")));
            }
            typing = session.recv_datagram() => {
                if typing?.is_none() {
                    return Ok(());
                }
                let _ = room.send(Note::Typing(name.clone()));
            }
            note = notes.recv() => match note {
                Ok(Note::Said(text)) => {
                    let mut send = session.open_uni().await?;
                    send.write_all(text.as_bytes()).await?;
                    send.finish();
                }
                Ok(Note::Typing(who)) => session.send_datagram(who.into())?,
                Ok(Note::Closing) => session.close(0, "the server shuts down"),
                // A visitor who reads too slowly misses notes.
                Err(_) => {}
            },
        }
    }
}
