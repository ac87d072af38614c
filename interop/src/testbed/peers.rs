//! Implementations, each a program that keeps the contract of the runner.

use std::{env, path::PathBuf};

use super::Failure;

/// An implementation.
#[derive(Clone, Copy, Debug)]
pub(super) struct Peer {
    pub(super) name: &'static str,
    program: Program,
    /// Options of the program, by the runner's `CLIENT_PARAMS` and `SERVER_PARAMS`.
    pub(super) params: &'static str,
    /// How to get it.
    install: &'static str,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Program {
    /// This program itself.
    Ours,
    /// A program of the folder that `HYBRIQ_PEERS` names.
    Built(&'static str),
    /// A script of `interop/peers`, run by an interpreter of that folder.
    Script(&'static str, &'static str),
}

const PEERS: [Peer; 4] = [
    Peer {
        name: "hybriq",
        program: Program::Ours,
        params: "tls=rustls",
        install: "",
    },
    Peer {
        name: "hybriq-s2n-tls",
        program: Program::Ours,
        params: "tls=s2n-tls",
        install: "",
    },
    Peer {
        name: "quic-go",
        program: Program::Built("quic-go"),
        params: "",
        install: "install Go and run interop/peers/install",
    },
    Peer {
        name: "aioquic",
        program: Program::Script("venv/bin/python", "aioquic/endpoint.py"),
        params: "",
        install: "install Python 3 with venv and run interop/peers/install",
    },
];

/// Returns the implementations of these names, or all.
pub(super) fn select(wanted: &[String]) -> Result<Vec<&'static Peer>, Failure> {
    if wanted.is_empty() {
        return Ok(PEERS.iter().collect());
    }
    let find = |name: &String| {
        let found = PEERS.iter().find(|peer| peer.name == name);
        found.ok_or_else(|| {
            let names = names().join(", ");
            format!("no implementation is called '{name}'; there are {names}").into()
        })
    };
    wanted.iter().map(find).collect()
}

/// Returns the names of all implementations.
pub fn names() -> Vec<&'static str> {
    PEERS.iter().map(|peer| peer.name).collect()
}

/// Returns the folder into which `interop/peers/install` puts what it builds.
fn folder() -> PathBuf {
    let home = || env::var_os("HOME").map(PathBuf::from).unwrap_or_default();
    env::var_os("HYBRIQ_PEERS").map_or_else(|| home().join(".cache/hybriq-peers"), PathBuf::from)
}

impl Peer {
    /// Returns true for hybriq itself.
    pub(super) fn is_ours(&self) -> bool {
        self.program == Program::Ours
    }

    /// Returns the words that start it.
    ///
    /// # Errors
    /// What is missing, and how to get it.
    pub(super) fn command(&self) -> Result<Vec<PathBuf>, Failure> {
        let words = match self.program {
            Program::Ours => vec![env::current_exe()?],
            Program::Built(name) => vec![folder().join(name)],
            Program::Script(interpreter, script) => {
                let scripts = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("peers");
                vec![folder().join(interpreter), scripts.join(script)]
            }
        };
        match words.iter().find(|word| !word.exists()) {
            Some(missing) => {
                let missing = missing.display();
                Err(format!("{missing} is missing: {}", self.install).into())
            }
            None => Ok(words),
        }
    }
}
