//! Does a fixed amount of work in the core, to count the instructions and allocations that it takes.
//!
//! Two endpoints talk to each other over a lossless link in memory, in virtual time and with
//! seeded randomness: there are no sockets, no threads and no sleeps. The TLS libraries draw
//! their keys from the system, so two counts of the same build differ a little.
//!
//! ```text
//! cargo build --release -p hybriq-netbench --bin instructions
//! export GLIBC_TUNABLES=glibc.cpu.x86_rep_movsb_threshold=1073741824:glibc.cpu.x86_rep_stosb_threshold=1073741824
//! valgrind --tool=callgrind --collect-atstart=no --toggle-collect='instructions::counting::counted*' \
//!     target/release/instructions handshakes 100 rustls server
//! ```
//!
//! Without the tunables glibc copies with `rep movsb`, of which valgrind counts every byte.
//!
//! - `handshakes COUNT`: full handshakes with an ECDSA P-256 certificate, one after the other. Each
//!   connection lives from its first packet until both ends have forgotten it. The unit is a
//!   connection.
//! - `upload MIB`, `download MIB`: one stream from the client or the server over a connection that
//!   exists already, 1 Gbit/s and a round trip of 10 ms. The unit is a packet of the sender.
//! - `requests COUNT`: requests of 100 bytes and answers of 100 bytes, each on a stream of its own,
//!   one after the other. The unit is a request.
//!
//! Words that may follow, in any order: `rustls` or `s2n`; the group, `X25519MLKEM768` unless it is
//! `X25519`; `client` or `server`, if only one end is to be counted; `ahead`, with which the client
//! takes a key share that was made before the count began; `qlog`, with which both ends log their
//! connections to nowhere (the thread that writes is not counted).
//!
//! `.ci/instructions` makes the table in `quic/evidence/instructions.md` of it.

mod app;
mod counting;
mod link;
mod machine;
mod world;

use std::{env, error::Error};

use hybriq::{Backend, Group, KeyExchange, tls::Side};

use self::{counting::Counted, world::World};

type Result<T> = std::result::Result<T, Box<dyn Error>>;

/// Number of connections or mebibytes that come first and are not counted, because they pay for
/// lazy set-up.
const WARM_UP: usize = 2;

/// Bytes of a request, and of its answer.
const REQUEST: usize = 100;

const USAGE: &str = "instructions handshakes|upload|download|requests COUNT \
    [rustls|s2n] [X25519MLKEM768|X25519] [client|server] [ahead] [qlog]";

/// Logs of the connections.
#[derive(Clone, Copy, PartialEq)]
enum Logs {
    Off,
    On,
}

/// Options of the command line.
struct Options {
    backend: Backend,
    group: Group,
    client: Counted,
    server: Counted,
    /// Key shares of the client that are made before they are needed.
    shares_ahead: usize,
    logs: Logs,
}

impl Options {
    fn of(words: &[String]) -> Result<Self> {
        let mut options = Self {
            backend: Backend::Rustls,
            group: Group::X25519MLKEM768,
            client: Counted::Yes,
            server: Counted::Yes,
            shares_ahead: 0,
            logs: Logs::Off,
        };
        for word in words {
            match word.as_str() {
                "rustls" => options.backend = Backend::Rustls,
                #[cfg(unix)]
                "s2n" => options.backend = Backend::S2nTls,
                "X25519MLKEM768" => options.group = Group::X25519MLKEM768,
                "X25519" => options.group = Group::X25519,
                "client" => options.server = Counted::No,
                "server" => options.client = Counted::No,
                "ahead" => options.shares_ahead = 1,
                "qlog" => options.logs = Logs::On,
                _ => return Err(USAGE.into()),
            }
        }
        Ok(options)
    }

    fn key_exchange(&self) -> KeyExchange {
        if self.group.is_post_quantum() {
            KeyExchange::default()
        } else {
            KeyExchange::OnlyClassical
        }
    }
}

fn main() -> Result<()> {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let [mode, amount, words @ ..] = arguments.as_slice() else {
        return Err(USAGE.into());
    };
    let amount: usize = amount.parse()?;
    let mut world = World::new(&Options::of(words)?)?;
    let units = match mode.as_str() {
        "handshakes" => {
            world.handshakes(WARM_UP)?;
            world.count();
            world.handshakes(amount)?;
            amount as u64
        }
        "upload" | "download" => {
            let from = if mode == "upload" {
                Side::Client
            } else {
                Side::Server
            };
            world.connect()?;
            world.transfer(from, WARM_UP << 20)?;
            let before = world.packets_sent(from);
            world.count();
            world.transfer(from, amount << 20)?;
            world.packets_sent(from) - before
        }
        "requests" => {
            world.connect()?;
            world.requests(WARM_UP)?;
            world.count();
            world.requests(amount)?;
            amount as u64
        }
        _ => return Err(USAGE.into()),
    };
    let allocations = world.client.allocations + world.server.allocations;
    println!("units={units} allocations={allocations}");
    Ok(())
}
