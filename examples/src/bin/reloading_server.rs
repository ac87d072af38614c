//! A server for production. It has a worker for each core, and obeys these signals:
//!
//! - SIGHUP reads the certificate and the key again, for new connections. If the pair is bad, the old
//!   one stays.
//! - SIGTERM or SIGINT refuses new clients, asks the others to finish, and ends after the last
//!   connection or at the deadline. A second one closes all connections at once.
//! - SIGUSR2, with `--restart`, starts the program again. The new process takes over; this one ends
//!   after its last connection.
//!
//! Its sockets come from systemd where there are any; systemd is told when it is ready. The
//! service is an echo; a unidirectional stream with `goaway` asks clients to open no more streams.

use std::{io, net::SocketAddr};

use clap::Parser;
use hybriq::{Connection, ConnectionError, Endpoint, Incoming, RecvStream, SendStream};
use hybriq::{
    ServerConfig,
    fleet::{FleetKeys, ListenFds, Placement, Tickets},
};
use hybriq_examples::health::{self, Health};
use hybriq_examples::restart::{Restart, Successor};
use hybriq_examples::{Failure, Service, fleet::Fleet};
use sd_notify::NotifyState;
use tokio::signal::unix::{Signal, SignalKind, signal};

/// Application error code of connections that were not done at the deadline.
const CUT_OFF: u64 = 1;

/// Echoes what clients send; reads its certificate again on SIGHUP, and drains on SIGTERM.
#[derive(Debug, clap::Parser)]
struct Args {
    #[command(flatten)]
    service: Service,
    /// TCP address for health checks over HTTP: /live and /ready.
    #[arg(long)]
    health: Option<SocketAddr>,
    #[command(flatten)]
    fleet: Fleet,
    #[command(flatten)]
    restart: Restart,
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Failure> {
    let args = Args::parse();
    let keys = args.fleet.keys()?;
    // Clients resume their sessions whatever the certificate, and at any server of the fleet.
    let tickets = keys.as_ref().map_or_else(Tickets::new, FleetKeys::tickets);
    // Before anything else: a signal that comes early must not kill the process.
    let mut hangup = signal(SignalKind::hangup())?;
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut restart = signal(SignalKind::user_defined2())?;

    let server = bind(&args, config(&args, &tickets)?, keys.as_ref()).await?;
    args.restart.wait(&server);
    println!("listening on {}", server.local_address());
    let mut ready = None;
    if let Some(address) = args.health {
        let (address, switch) = health::answer(args.restart.listen(address)?)?;
        println!("health checks on {address}");
        ready = Some(switch);
    }
    sd_notify::notify(&[NotifyState::Ready])?;

    let successor = Successor::default();
    let server_is_succeeded = loop {
        tokio::select! {
            incoming = server.accept() => match incoming {
                Some(incoming) => { incoming.spawn(accept); }
                None => break true,
            },
            _ = hangup.recv() => reload(&args, &tickets, &server),
            _ = restart.recv() => args.restart.start(&server, &successor),
            () = any(&mut terminate, &mut interrupt) => break false,
        }
    };
    if server_is_succeeded {
        // Its clients are asked to finish as well, and may come back to the new process.
        drop(ready.take());
        args.restart.on_succeeded(&successor)?;
        tokio::select! {
            left = server.drain(args.restart.linger(), CUT_OFF, b"the server ends") => {
                println!("drained: {left} connections were cut off");
                return Ok(());
            }
            () = any(&mut terminate, &mut interrupt) => {}
        }
    }
    println!("draining for at most {} s", args.service.drain);
    sd_notify::notify(&[NotifyState::Stopping])?;
    if let Some(ready) = &ready {
        ready.send_replace(Health::Draining);
    }
    tokio::select! {
        left = server.drain(args.service.drain(), CUT_OFF, b"the server ends") => {
            println!("drained: {left} connections were cut off");
        }
        () = any(&mut terminate, &mut interrupt) => {
            server.close(CUT_OFF, b"the server ends");
            server.idle().await;
            println!("ended early");
        }
    }
    Ok(())
}

/// Waits for either signal.
async fn any(first: &mut Signal, second: &mut Signal) {
    tokio::select! {
        _ = first.recv() => {}
        _ = second.recv() => {}
    }
}

/// Reads certificate and key, and checks that they can serve.
fn config(args: &Args, tickets: &Tickets) -> Result<ServerConfig, Failure> {
    let config = ServerConfig::new(args.service.identity()?)
        .alpn(["echo"])
        .tickets(tickets.clone());
    config.check()?;
    Ok(config)
}

fn reload(args: &Args, tickets: &Tickets, server: &Endpoint) {
    let set = |config| Ok(server.set_server_config(config)?);
    match config(args, tickets).and_then(set) {
        Ok(()) => println!("reloaded"),
        Err(error) => println!("not reloaded, the old certificate stays: {error:?}"),
    }
}

async fn bind(
    args: &Args,
    config: ServerConfig,
    keys: Option<&FleetKeys>,
) -> Result<Endpoint, Failure> {
    let builder = Endpoint::builder()
        .server(config)
        .placement(Placement::PinnedThreads);
    let builder = args.fleet.apply(builder, keys)?;
    let given = ListenFds::take()?.udp()?;
    if given.is_empty() {
        return Ok(args.restart.bind(builder, args.service.listen).await?);
    }
    // The unit says by the number of its sockets how many workers there are.
    Ok(builder.workers(given.workers()).bind_sockets(given)?)
}

/// Serves a client on the thread of its worker. `Endpoint::stats` counts those that fail.
async fn accept(incoming: Incoming) {
    if let Ok(connection) = incoming.accept().await {
        connection.clone().spawn(serve(connection));
    }
}

/// Answers until the client closes the connection, as it does once it was asked to go.
async fn serve(connection: Connection) -> Result<(), ConnectionError> {
    connection.spawn(ask_to_go(connection.clone()));
    while let Some((send, recv)) = connection.accept_bidi().await? {
        connection.spawn(echo(send, recv));
    }
    Ok(())
}

/// Asks the client to finish as soon as the server drains. Requests that cross the message are
/// answered.
async fn ask_to_go(connection: Connection) -> io::Result<()> {
    tokio::select! {
        () = connection.draining() => {
            let mut send = connection.open_uni().await?;
            send.write_all(b"goaway").await?;
            send.finish();
        }
        _ = connection.closed() => {}
    }
    Ok(())
}

async fn echo(mut send: SendStream, mut recv: RecvStream) {
    // A stream that fails is dropped unfinished, which resets it: no truncated echo.
    if tokio::io::copy(&mut recv, &mut send).await.is_ok() {
        send.finish();
    }
}
