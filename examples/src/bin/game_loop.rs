//! A game over WebTransport, both ends in one program: the client sends what its player does, the server sends the world
//! twenty times a second. Both are datagrams that are dropped when they are too old to matter, instead of late.

use std::time::Duration;

use axum::{Extension, Router, http::StatusCode, routing::any};
use bytes::Bytes;
use clap::Parser;
use http::Request;
use hybriq::{ClientConfig, Endpoint, ServerConfig};
use hybriq_examples::Failure;
use hybriq_http::webtransport::{self, Limits, Session, SessionError, WebTransport};
use tokio::time::{MissedTickBehavior, interval};

/// Time between two states of the world. What waited for longer is worth nothing.
const TICK: Duration = Duration::from_millis(50);

/// Steps that the player goes.
const GOAL: u32 = 10;

#[tokio::main]
async fn main() -> Result<(), Failure> {
    let args = hybriq_examples::Server::parse();
    let config = ServerConfig::new(args.identity()?);
    let server = hybriq_http::Server::builder().webtransport(Limits::default());
    let server = server.bind(args.listen, config)?;
    println!("listening on {}", server.local_address());
    let (address, handle) = (server.local_address(), server.handle());
    let serving = tokio::spawn(server.serve(Router::new().route("/game", any(enter))));
    let client = Endpoint::client(ClientConfig::new().alpn(["h3"]).trust(args.trust()?))?;
    let request = Request::get(format!("https://localhost:{}/game", address.port()));
    let session = webtransport::connect(&client, request.body(())?).await?;
    println!("the player arrived at {}", play(&session).await?);
    session.close(0, "won");
    handle.shutdown(TICK).await;
    serving.await??;
    client.idle().await;
    Ok(())
}

async fn enter(game: Option<Extension<WebTransport>>) -> StatusCode {
    let Some(Extension(game)) = game else {
        return StatusCode::BAD_REQUEST;
    };
    game.accept(async |session| match simulate(&session).await {
        Ok(()) => {}
        Err(error) => eprintln!("a player left: {error}"),
    })
}

/// Simulates the world of one player until the session ends.
async fn simulate(session: &Session) -> Result<(), SessionError> {
    let mut ticks = interval(TICK);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
    let mut position = 0;
    loop {
        tokio::select! {
            input = session.recv_datagram() => match input?.as_deref() {
                Some(step) => position += u32::from(step == b"step"),
                None => return Ok(()),
            },
            _ = ticks.tick() => {
                session.send_datagram_for(Bytes::from_owner(position.to_be_bytes()), TICK)?;
            }
        }
    }
}

/// Goes a step whenever the world has changed, until the goal.
async fn play(session: &Session) -> Result<u32, Failure> {
    loop {
        let state = session.recv_datagram().await?.ok_or("the server is gone")?;
        let position = state.as_ref().try_into().map_or(0, u32::from_be_bytes);
        if position >= GOAL {
            return Ok(position);
        }
        session.send_datagram_for(Bytes::from_static(b"step"), TICK)?;
    }
}
