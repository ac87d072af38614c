//! Copies folders over post-quantum QUIC, as `scp` does over TCP, and resumes interrupted transfers. Both ends
//! know each other by ML-DSA keys that they trust on first use, as with SSH. See `README.md` next to this file.

mod checksum;
mod client;
mod endpoint;
mod error;
mod fingerprint;
mod folder;
mod keys;
mod manifest;
mod message;
mod options;
mod part;
mod path;
mod plan;
mod progress;
mod receiver;
mod remote;
mod room;
mod root;
mod scan;
mod sender;
mod server;
mod store;
#[cfg(test)]
mod tests;

use std::process::ExitCode;

use clap::Parser as _;

use crate::client::{Client, Done};
use crate::error::Error;
use crate::folder::Folder;
use crate::options::{Command, NewKey, Options, Serve};
use crate::progress::Show;
use crate::server::{Pushes, Server, Settings, summary};

#[tokio::main]
async fn main() -> ExitCode {
    match run(Options::parse()).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            error.exit_code()
        }
    }
}

async fn run(options: Options) -> Result<(), Error> {
    let folder = Folder::open(options.config.clone())?;
    let client = |new_key: NewKey| Client {
        folder: folder.clone(),
        congestion: options.congestion(),
        streams: options.streams,
        show: options.show(),
        new_key,
    };
    let Done { report, skipped } = match &options.command {
        Command::Identity => {
            println!("{}", folder.own()?.fingerprint);
            return Ok(());
        }
        Command::Authorize(one) => {
            return Ok(folder.authorized().add(&one.name, one.fingerprint)?);
        }
        Command::Serve(serve) => return self::serve(&folder, &options, serve).await,
        Command::Push(push) => {
            client(push.meeting.new_key())
                .push(&push.from, &push.to)
                .await?
        }
        Command::Pull(pull) => {
            client(pull.meeting.new_key())
                .pull(&pull.from, &pull.to)
                .await?
        }
    };
    if options.show() == Show::Bar {
        println!("{}", summary(&report));
    }
    if skipped > 0 {
        eprintln!("{skipped} symbolic links and special files were left out");
    }
    Ok(())
}

async fn serve(folder: &Folder, options: &Options, serve: &Serve) -> Result<(), Error> {
    let settings = Settings {
        served: serve.folder.clone(),
        listen: serve.listen,
        first: serve.first(),
        pushes: if serve.read_only {
            Pushes::Refused
        } else {
            Pushes::UpTo(serve.max_bytes)
        },
        streams: options.streams,
        congestion: options.congestion(),
        show: options.show(),
    };
    let server = Server::bind(folder, settings)?;
    println!("listening on {}", server.address());
    println!("identity {}", server.own().fingerprint);
    tokio::select! {
        () = server.run() => {}
        _ = tokio::signal::ctrl_c() => server.stop().await,
    }
    Ok(())
}
