//! `netbench link`: a UDP relay that emulates a network link, for any QUIC stack, without root.
//!
//! ```text
//!                     ┌──────────── relay: one thread ────────────┐
//!  client ◄─UDP─► listen ──► up:   direction ─► schedule ──► socket of ◄─UDP─► server
//!                        ◄── down: schedule ◄─ direction ◄── the client
//!                     └───────────────────────────────────────────┘
//! ```
//! The model of `hybriq-sim` decides about every datagram, without sockets or a clock; the relay
//! executes its decisions. ECN marks pass through.

mod args;
mod clients;
mod direction;
mod relay;
mod schedule;
mod server;
mod socket;
mod tally;

use std::io;
use std::net::SocketAddr;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::json;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::oneshot;

use crate::system::failure::Failure;
use crate::system::terminal::print;
use relay::{Plan, Relay};

pub(crate) use args::{LinkArgs, UNITS};

/// Checks that these arguments describe a link, apart from its addresses.
pub(crate) fn check(args: &str) -> Result<(), String> {
    #[derive(clap::Parser)]
    #[command(no_binary_name = true, disable_help_flag = true)]
    struct Alone {
        #[command(flatten)]
        link: LinkArgs,
    }
    let args = args.split_whitespace().chain(["--to", "127.0.0.1:1"]);
    let first_line = |error: clap::Error| {
        let text = error.to_string();
        let line = text.lines().next().unwrap_or_default();
        line.trim_start_matches("error: ").to_owned()
    };
    let alone = <Alone as clap::Parser>::try_parse_from(args).map_err(first_line)?;
    let settings = alone.link.settings().map_err(|error| error.to_string())?;
    drop(settings);
    Ok(())
}

/// Relays until a signal or the end of standard input, then prints a summary.
pub(crate) async fn run(link: LinkArgs) -> Result<ExitCode, Failure> {
    let [up, down] = link.settings()?;
    let to = link.to.address().await?;
    let plan = Plan {
        listen: link.listen,
        to,
        up,
        down,
        rebind: link.rebind,
        clients: link.clients as usize,
        seed: link.seed,
    };
    let relay =
        Relay::bind(plan).map_err(|error| format!("cannot listen on {}: {error}", link.listen))?;
    let (mut interrupt, mut terminate) = (
        signal(SignalKind::interrupt())?,
        signal(SignalKind::terminate())?,
    );
    announce(&link, to, &relay)?;

    let stop = Arc::new(AtomicBool::new(false));
    let (done, mut summary) = oneshot::channel();
    let told = Arc::clone(&stop);
    std::thread::spawn(move || done.send(relay.run(&told)).is_ok());
    let summary = tokio::select! {
        summary = &mut summary => summary,
        () = async {
            tokio::select! {
                _ = interrupt.recv() => {}
                _ = terminate.recv() => {}
                () = end_of_input(), if link.until_eof => {}
            }
        } => {
            stop.store(true, Ordering::Relaxed);
            summary.await
        }
    };
    let summary = summary??;
    print(|out| {
        use io::Write as _;
        if link.json {
            writeln!(out, "{}", json!(summary))
        } else {
            writeln!(out, "{summary}")
        }
    })?;
    Ok(ExitCode::SUCCESS)
}

fn announce(link: &LinkArgs, to: SocketAddr, relay: &Relay) -> Result<(), Failure> {
    let address = relay.address()?;
    print(|out| {
        use io::Write as _;
        if link.json {
            writeln!(out, "{}", json!({ "listening": address }))
        } else {
            writeln!(out, "listening on {address}, relaying to {to}")
        }
    })
}

/// Waits for the end of standard input on a separate thread: it may be a terminal, a pipe or a
/// file.
async fn end_of_input() {
    let (done, ended) = oneshot::channel();
    std::thread::spawn(move || {
        let _ = io::copy(&mut io::stdin(), &mut io::sink());
        let _ = done.send(());
    });
    let _ = ended.await;
}
