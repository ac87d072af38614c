//! Running server examples.

use std::io::{BufRead as _, BufReader};
use std::net::SocketAddr;
use std::process::{Child, ChildStdout, Command, Stdio};

/// A running server, killed when dropped.
pub(crate) struct Running {
    pub(crate) process: Child,
    lines: BufReader<ChildStdout>,
    pub(crate) address: SocketAddr,
}

impl Running {
    /// Starts a server, and reads its address.
    pub(crate) fn run(command: &mut Command) -> Self {
        let mut process = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(process.stdout.take().unwrap());
        let first = next_line(&mut lines);
        let address = first.strip_prefix("listening on ");
        let address = address.unwrap_or_else(|| panic!("the server said: {first}"));
        Self {
            process,
            address: address.parse().unwrap(),
            lines,
        }
    }

    /// Waits for the next line of its output.
    pub(crate) fn line(&mut self) -> String {
        next_line(&mut self.lines)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Waits for the next line of a program.
fn next_line(lines: &mut BufReader<ChildStdout>) -> String {
    let mut line = String::new();
    lines.read_line(&mut line).unwrap();
    line.trim_end().to_owned()
}
