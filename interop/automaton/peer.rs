//! The implementation that `learn.py` learns: `automaton_peer serve PEER` or
//! `automaton_peer connect PEER`.
//!
//! Both print their certificate and its key as PEM, then one line: `ready ADDRESS` for a server,
//! `ready` for a client. A client then reads a port from each line of its input and opens a new
//! connection to that port of the loopback interface, in place of the one before. Ends with its
//! input.

use std::{io::Write, net::SocketAddr, process::ExitCode};

use hybriq_interop::{Bulk, Certificate, Failure, Groups, Peer, Setup, peers};
use tokio::{
    io::{AsyncBufReadExt, BufReader, Lines, Stdin},
    task::JoinHandle,
};

#[tokio::main]
async fn main() -> ExitCode {
    let arguments: Vec<_> = std::env::args().skip(1).collect();
    let arguments: Vec<_> = arguments.iter().map(String::as_str).collect();
    let ([role, name], []) = arguments.split_at(arguments.len().min(2)) else {
        return usage();
    };
    let Some(peer) = peers::all().into_iter().find(|peer| peer.name() == *name) else {
        return usage();
    };
    let done = match *role {
        "serve" => serve(&*peer).await,
        "connect" => connect(&*peer).await,
        _ => return usage(),
    };
    if let Err(error) = done {
        eprintln!("{}", hybriq::error::Printable(error));
        return ExitCode::FAILURE;
    }
    ExitCode::SUCCESS
}

fn usage() -> ExitCode {
    let names: Vec<_> = peers::all().iter().map(|peer| peer.name()).collect();
    eprintln!(
        "usage: automaton_peer serve|connect PEER\nPEER: {}",
        names.join(", ")
    );
    ExitCode::FAILURE
}

/// Makes the setup of both roles. aioquic has no post-quantum groups.
fn setup() -> Result<Setup, Failure> {
    let certificate = Certificate::generate().map_err(Failure::set_up)?;
    print!("{}{}", certificate.pem(), certificate.key_pem());
    Ok(Setup::new(certificate, Groups::OnlyClassical))
}

fn say(line: &str) -> Result<(), Failure> {
    println!("{line}");
    std::io::stdout().flush().map_err(Failure::other)
}

fn input() -> Lines<BufReader<Stdin>> {
    BufReader::new(tokio::io::stdin()).lines()
}

async fn serve(peer: &dyn Peer) -> Result<(), Failure> {
    let mut server = peer.serve(&setup()?)?;
    say(&format!("ready {}", server.address()))?;
    let mut input = input();
    loop {
        tokio::select! {
            // The reports are read so that they do not pile up.
            _ = server.handshake() => {}
            line = input.next_line() => {
                if line.map_err(Failure::other)?.is_none() {
                    return Ok(());
                }
            }
        }
    }
}

async fn connect(peer: &dyn Peer) -> Result<(), Failure> {
    let setup = setup()?;
    say("ready")?;
    let mut input = input();
    let mut task: Option<JoinHandle<()>> = None;
    while let Some(line) = input.next_line().await.map_err(Failure::other)? {
        let port: u16 = line.trim().parse().map_err(Failure::other)?;
        if let Some(task) = task.take() {
            task.abort();
        }
        // A new client has neither tickets nor tokens.
        let client = peer.client(&setup)?;
        task = Some(tokio::spawn(async move {
            let server = SocketAddr::from(([127, 0, 0, 1], port));
            let Ok(connection) = client.connect(server).await else {
                return;
            };
            let _ = Bulk { bytes: 8, seed: 1 }.exchange(&*connection).await;
            std::future::pending::<()>().await;
        }));
    }
    Ok(())
}
