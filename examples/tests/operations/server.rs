//! A running `reloading_server`.

use std::collections::VecDeque;
use std::io::{BufRead as _, BufReader, Read as _};
use std::net::SocketAddr;
use std::process::{Child, ChildStdout, Command, ExitStatus, Stdio};

use rustix::process::{Pid, Signal, kill_process};

use crate::authority::Authority;

pub(crate) const PROGRAM: &str = env!("CARGO_BIN_EXE_reloading_server");

/// A server process, killed when dropped.
pub(crate) struct Server {
    process: Child,
    lines: BufReader<ChildStdout>,
    pub(crate) address: SocketAddr,
    pub(crate) health: SocketAddr,
}

/// Returns the options that name the files of a certificate.
pub(crate) fn files(authority: &Authority) -> [&std::ffi::OsStr; 4] {
    let (cert, key) = (&authority.cert, &authority.key);
    [
        "--cert".as_ref(),
        cert.as_ref(),
        "--key".as_ref(),
        key.as_ref(),
    ]
}

impl Server {
    /// Starts it on a free port.
    pub(crate) fn start(authority: &Authority, options: &[&str]) -> Self {
        let mut command = Command::new(PROGRAM);
        command
            .args(files(authority))
            .args(["--listen", "127.0.0.1:0"]);
        command.args(["--health", "127.0.0.1:0"]).args(options);
        Self::run(command)
    }

    /// Runs a command that becomes a server with health checks.
    pub(crate) fn run(mut command: Command) -> Self {
        let mut process = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(process.stdout.take().unwrap());
        let address = after("listening on ", &next(&mut lines));
        let health = after("health checks on ", &next(&mut lines));
        Self {
            process,
            lines,
            address,
            health,
        }
    }

    /// Sends a signal to this process alone.
    pub(crate) fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.process), signal).unwrap();
    }

    /// Waits for the next line that it prints.
    pub(crate) fn says(&mut self) -> String {
        next(&mut self.lines)
    }

    /// Waits for its end. Returns what it printed until then.
    pub(crate) fn ends(mut self) -> (ExitStatus, VecDeque<String>) {
        let lines = self.lines.by_ref().lines().map(Result::unwrap).collect();
        (self.process.wait().unwrap(), lines)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn next(lines: &mut BufReader<ChildStdout>) -> String {
    let mut line = String::new();
    lines.read_line(&mut line).unwrap();
    line.trim_end().to_owned()
}

fn after(start: &str, line: &str) -> SocketAddr {
    let address = line.strip_prefix(start);
    let address = address.unwrap_or_else(|| panic!("the server said: {line}"));
    address.parse().unwrap()
}
