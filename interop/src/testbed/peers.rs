//! Implementations, each a program that keeps the contract of the runner.

use std::{
    env,
    path::{Path, PathBuf},
    process::Command,
};

use super::{Failure, find_each};
use crate::runner::Role;

/// An implementation.
#[derive(Clone, Copy, Debug)]
pub(super) struct Peer {
    pub(super) name: &'static str,
    program: Program,
    /// Options of the program, by the runner's `CLIENT_PARAMS` and `SERVER_PARAMS`.
    pub(super) params: &'static str,
    /// Application protocols that it has.
    speaks: Speaks,
    /// Side that it plays, if it is only one.
    only: Option<Role>,
    /// How to get it.
    install: &'static str,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Program {
    /// This program itself.
    Ours,
    /// A library that this program is built with, by the name of its crate.
    Linked(&'static str),
    /// A program of the folder that `HYBRIQ_PEERS` names.
    Built(&'static str),
    /// A library of Python in that folder.
    Python(&'static str),
    /// A script of `interop/peers`, run by a system program that it needs in addition to another.
    System(&'static str, &'static str, &'static str),
    /// The same with a program that it needs of that folder.
    InDebian(&'static str, &'static str, &'static str),
    /// A script of `interop/peers` with its argument, and a program that it needs of that folder.
    Wrapped(&'static str, &'static str, &'static str),
}

/// Application protocols of an implementation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Speaks {
    /// HTTP/0.9, as all cases of the runner but one want it, and HTTP/3.
    Both,
    /// HTTP/3 only, so that all cases use it.
    Http3,
}

const OURS: Peer = Peer {
    name: "hybriq",
    program: Program::Ours,
    params: "tls=rustls",
    speaks: Speaks::Both,
    only: None,
    install: "",
};

const INSTALL_PYTHON: &str = "install Python 3 with venv and run interop/peers/install";
const INSTALL_DEBIAN: &str =
    "run interop/peers/install as root on Debian with mmdebstrap installed";

const PEERS: [Peer; 14] = [
    OURS,
    Peer {
        name: "hybriq-s2n-tls",
        params: "tls=s2n-tls",
        ..OURS
    },
    Peer {
        name: "quinn",
        program: Program::Linked("quinn"),
        params: "stack=quinn",
        ..OURS
    },
    Peer {
        name: "s2n-quic",
        program: Program::Linked("s2n-quic"),
        params: "stack=s2n-quic",
        ..OURS
    },
    Peer {
        name: "quiche",
        program: Program::Linked("quiche"),
        params: "stack=quiche",
        ..OURS
    },
    Peer {
        name: "quic-go",
        program: Program::Built("quic-go"),
        params: "",
        install: "install Go and run interop/peers/install",
        ..OURS
    },
    Peer {
        name: "aioquic",
        program: Program::Python("aioquic"),
        params: "",
        install: INSTALL_PYTHON,
        ..OURS
    },
    Peer {
        name: "qh3",
        program: Program::Python("qh3"),
        params: "",
        install: INSTALL_PYTHON,
        ..OURS
    },
    Peer {
        name: "ngtcp2",
        program: Program::Wrapped("debian/endpoint", "ngtcp2", "trixie/usr/bin/gtlsclient"),
        params: "",
        speaks: Speaks::Http3,
        install: INSTALL_DEBIAN,
        ..OURS
    },
    Peer {
        name: "msquic",
        program: Program::Built("msquic/hybriq-interop-msquic"),
        params: "",
        install: "install CMake, Perl and a C compiler, and run interop/peers/install msquic",
        ..OURS
    },
    Peer {
        name: "curl",
        program: Program::Wrapped("debian/endpoint", "curl", "trixie/usr/bin/curl"),
        params: "",
        speaks: Speaks::Http3,
        only: Some(Role::Client),
        install: INSTALL_DEBIAN,
    },
    Peer {
        name: "nginx",
        program: Program::Wrapped("debian/endpoint", "nginx", "trixie/usr/sbin/nginx"),
        params: "",
        speaks: Speaks::Http3,
        only: Some(Role::Server),
        install: INSTALL_DEBIAN,
    },
    Peer {
        name: "chromium",
        program: Program::System("python3", "chromium/endpoint.py", "chromium"),
        params: "",
        speaks: Speaks::Http3,
        only: Some(Role::Client),
        install: "install Python 3 and Chromium",
    },
    Peer {
        name: "firefox",
        program: Program::InDebian(
            "python3",
            "firefox/endpoint.py",
            "trixie/usr/bin/firefox-esr",
        ),
        params: "",
        speaks: Speaks::Http3,
        only: Some(Role::Client),
        install: INSTALL_DEBIAN,
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
    find_each(wanted, find, |peer| peer.name)
}

/// Returns the names of all implementations.
pub fn names() -> Vec<&'static str> {
    PEERS.iter().map(|peer| peer.name).collect()
}

/// Returns the position of an implementation among all.
pub(super) fn position(name: &str) -> usize {
    let found = PEERS.iter().position(|peer| peer.name == name);
    found.unwrap_or(PEERS.len())
}

/// Returns the folder into which `interop/peers/install` puts what it builds.
pub(super) fn folder() -> PathBuf {
    let home = || env::var_os("HOME").map(PathBuf::from).unwrap_or_default();
    env::var_os("HYBRIQ_PEERS").map_or_else(|| home().join(".cache/hybriq-peers"), PathBuf::from)
}

/// Returns the folder of our programs for peers.
fn scripts() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/peers"))
}

impl Peer {
    /// Returns true for hybriq itself.
    pub(super) fn is_ours(&self) -> bool {
        self.program == Program::Ours
    }

    /// Returns true if it knows no other application protocol than HTTP/3.
    pub(super) fn needs_http3(&self) -> bool {
        self.speaks == Speaks::Http3
    }

    /// Returns false for s2n-tls, which knows policies instead of lists of groups, and for browsers, which offer what
    /// they like.
    pub(super) fn has_exact_groups(&self) -> bool {
        !self.params.contains("s2n-tls") && !["chromium", "firefox"].contains(&self.name)
    }

    /// Returns true if it can be this side of a connection.
    pub(super) fn plays(&self, role: Role) -> bool {
        self.only.is_none_or(|only| only == role)
    }

    /// Returns the words that start it.
    ///
    /// # Errors
    /// What is missing, and how to get it.
    pub(super) fn command(&self) -> Result<Vec<PathBuf>, Failure> {
        if self.program == Program::Linked("quiche") && !cfg!(feature = "quiche") {
            return Err("build hybriq-interop with --features quiche".into());
        }
        let words = match self.program {
            Program::Ours | Program::Linked(_) => vec![env::current_exe()?],
            Program::Built(name) => vec![folder().join(name)],
            Program::Python(library) => {
                let script = scripts().join("python/endpoint.py");
                vec![folder().join("venv/bin/python"), script, library.into()]
            }
            Program::Wrapped(script, argument, _) => {
                vec![scripts().join(script), argument.into()]
            }
            Program::System(interpreter, script, _) | Program::InDebian(interpreter, script, _) => {
                vec![interpreter.into(), scripts().join(script)]
            }
        };
        let needed = match self.program {
            Program::System(interpreter, _, other) => {
                let lacks = |name: &&str| !is_in_path(name);
                if let Some(missing) = [interpreter, other].iter().find(|name| lacks(name)) {
                    return Err(format!("{missing} is missing: {}", self.install).into());
                }
                Vec::new()
            }
            Program::Wrapped(_, _, program) | Program::InDebian(_, _, program) => {
                vec![folder().join(program)]
            }
            Program::Python(_) => words.iter().take(2).cloned().collect(),
            _ => words.clone(),
        };
        match needed.iter().find(|word| !word.exists()) {
            Some(missing) => {
                let missing = missing.display();
                Err(format!("{missing} is missing: {}", self.install).into())
            }
            None => Ok(words),
        }
    }

    /// Returns its version; `None` if it is missing or does not tell.
    pub(super) fn version(&self) -> Option<String> {
        match self.program {
            Program::Ours => return Some(env!("CARGO_PKG_VERSION").to_owned()),
            Program::Linked(name) => return locked(name),
            _ => {}
        }
        let words = self.command().ok()?;
        let (program, rest) = words.split_first()?;
        let output = Command::new(program)
            .args(rest)
            .arg("--version")
            .env("HYBRIQ_PEERS", folder())
            .output();
        let output = output.ok().filter(|output| output.status.success())?;
        let text = String::from_utf8(output.stdout).ok()?;
        text.lines().next().map(|line| line.trim().to_owned())
    }
}

/// Returns true if the system has a program of this name.
fn is_in_path(name: &str) -> bool {
    let path = env::var_os("PATH").unwrap_or_default();
    env::split_paths(&path).any(|folder| folder.join(name).exists())
}

/// Returns the version of a crate that this program is built with.
fn locked(name: &str) -> Option<String> {
    let lock = include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../Cargo.lock"));
    let mut lines = lock.lines();
    lines.find(|line| *line == format!("name = \"{name}\""))?;
    let version = lines.next()?.strip_prefix("version = \"")?;
    version.strip_suffix('"').map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_nobody_has_is_refused_with_those_there_are() {
        let error = select(&["nobody".to_owned()]).expect_err("no such peer");
        assert!(error.to_string().contains("quic-go"), "{error}");
        assert_eq!(select(&[]).expect("all").len(), PEERS.len());
        let twice = ["curl".to_owned(), "curl".to_owned()];
        assert_eq!(select(&twice).expect("a peer").len(), 1);
    }

    #[test]
    fn whoever_is_part_of_this_program_has_a_version_and_a_command() {
        for peer in &PEERS {
            if peer.name == "quiche" {
                assert_eq!(peer.command().is_ok(), cfg!(feature = "quiche"));
            } else if matches!(peer.program, Program::Ours | Program::Linked(_)) {
                assert!(peer.version().is_some(), "{}", peer.name);
                assert!(peer.command().is_ok(), "{}", peer.name);
            } else {
                assert!(!peer.install.is_empty(), "{}", peer.name);
            }
        }
    }

    #[test]
    fn what_is_missing_is_named_with_the_way_to_get_it() {
        let absent = Peer {
            program: Program::Built("no-such-program"),
            install: "do not look for it",
            ..OURS
        };
        let error = absent.command().expect_err("nothing there");
        assert!(error.to_string().ends_with("do not look for it"), "{error}");
        assert_eq!(absent.version(), None);
    }
}
