//! The command line.

use std::{net::SocketAddr, path::PathBuf};

use clap::{Args, Parser, Subcommand, ValueEnum};
use hybriq::transport::Congestion;

use crate::{
    endpoint::{First, MAX_STREAMS},
    fingerprint::Fingerprint,
    progress::Show,
    remote::Remote,
};

/// Copies folders over post-quantum QUIC.
///
/// Both ends prove who they are by ML-DSA-65 keys, and the key exchange is a hybrid with ML-KEM. As with SSH, a
/// client remembers the key of a server at the first connection, and a server lets in the clients in its list.
/// An interrupted transfer resumes where it stopped: run the same command again.
#[derive(Parser)]
#[command(name = "file_transfer", version, after_help = EXIT_CODES)]
pub(crate) struct Options {
    #[command(subcommand)]
    pub(crate) command: Command,
    /// Folder with the identity and the known keys. Default: hybriq-file-transfer in $XDG_CONFIG_HOME or
    /// ~/.config.
    #[arg(long, global = true, value_name = "FOLDER")]
    pub(crate) config: Option<PathBuf>,
    /// Prints errors only.
    #[arg(long, short, global = true)]
    quiet: bool,
    /// Answer to congestion of what this end sends. bbr measures the path, and is fast where packets get lost
    /// without congestion; cubic takes every loss for congestion, as TCP does.
    #[arg(long, global = true, default_value = "bbr", value_name = "NAME")]
    congestion: Controller,
    /// Streams at a time on which this end receives files.
    #[arg(long, global = true, default_value_t = 16, value_name = "COUNT",
          value_parser = clap::value_parser!(u8).range(1..=i64::from(MAX_STREAMS)))]
    pub(crate) streams: u8,
}

const EXIT_CODES: &str = "\
Exit codes: 0 done, 1 other errors, 2 wrong arguments, 3 the server's key is unknown or has changed, 4 the server \
refused, 5 some files could not be transferred, 6 the connection could not be made or was lost.";

#[derive(Subcommand)]
pub(crate) enum Command {
    Serve(Serve),
    Push(Push),
    Pull(Pull),
    /// Prints the fingerprint of this end's key, which is made at the first start.
    Identity,
    Authorize(Authorize),
}

/// Serves a folder to the clients in the list.
#[derive(Args)]
pub(crate) struct Serve {
    /// Folder to serve.
    pub(crate) folder: PathBuf,
    /// Address to listen on; port 0 selects a free port.
    #[arg(long, default_value = "[::]:4433", value_name = "ADDRESS")]
    pub(crate) listen: SocketAddr,
    /// Lets the first client in while the list is empty, and adds its key.
    #[arg(long)]
    accept_first: bool,
    /// Lets nobody push.
    #[arg(long)]
    pub(crate) read_only: bool,
    /// Largest number of bytes that a push may have. Default: what the disk has room for.
    #[arg(long, default_value_t = u64::MAX, hide_default_value = true, value_name = "BYTES")]
    pub(crate) max_bytes: u64,
}

/// Sends what is in a folder, or a file, into a folder of a server.
#[derive(Args)]
pub(crate) struct Push {
    /// Folder or file to send.
    pub(crate) from: PathBuf,
    /// HOST:PORT or HOST:PORT/FOLDER, which is made if it is missing.
    pub(crate) to: Remote,
    #[command(flatten)]
    pub(crate) meeting: Meeting,
}

/// Gets what is in a folder of a server, or a file.
#[derive(Args)]
pub(crate) struct Pull {
    /// HOST:PORT, HOST:PORT/FOLDER or HOST:PORT/FILE.
    pub(crate) from: Remote,
    /// Folder to write into, which is made if it is missing.
    pub(crate) to: PathBuf,
    #[command(flatten)]
    pub(crate) meeting: Meeting,
}

/// What to do about a server that was never met.
#[derive(Args, Clone, Copy)]
pub(crate) struct Meeting {
    /// Takes the key of a server that is not known yet, without a question.
    #[arg(long)]
    accept_new: bool,
}

/// Lets a client use the server of this folder.
#[derive(Args)]
pub(crate) struct Authorize {
    /// What `file_transfer identity` prints at the client.
    pub(crate) fingerprint: Fingerprint,
    /// Name of the client, for you.
    #[arg(default_value = "client")]
    pub(crate) name: String,
}

#[derive(Clone, Copy, ValueEnum)]
enum Controller {
    Cubic,
    Bbr,
    NewReno,
}

/// Answer to a new key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NewKey {
    Accept,
    Ask,
}

impl Meeting {
    pub(crate) fn new_key(self) -> NewKey {
        if self.accept_new {
            NewKey::Accept
        } else {
            NewKey::Ask
        }
    }
}

impl Serve {
    pub(crate) fn first(&self) -> First {
        if self.accept_first {
            First::Accept
        } else {
            First::Refuse
        }
    }
}

impl Options {
    pub(crate) fn congestion(&self) -> Congestion {
        match self.congestion {
            Controller::Cubic => Congestion::Cubic,
            Controller::Bbr => Congestion::Bbr,
            Controller::NewReno => Congestion::NewReno,
        }
    }

    pub(crate) fn show(&self) -> Show {
        if self.quiet { Show::Nothing } else { Show::Bar }
    }
}
