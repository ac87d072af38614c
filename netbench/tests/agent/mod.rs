//! An agent as a process.

use std::io::{BufRead as _, BufReader};
use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

pub(crate) const NETBENCH: &str = env!("CARGO_BIN_EXE_netbench");

/// How long anything may take: no measure, only an end to waiting.
pub(crate) const PATIENCE: Duration = Duration::from_mins(1);

/// Ends with this.
pub(crate) struct Agent {
    pub(crate) child: Child,
    pub(crate) address: SocketAddr,
}

impl Agent {
    /// On a free port of the loopback interface, unless the arguments say otherwise.
    pub(crate) fn start(args: &[&str]) -> Self {
        Self::with(Command::new(NETBENCH), args)
    }

    /// Started by a command that runs `netbench`.
    pub(crate) fn with(mut command: Command, args: &[&str]) -> Self {
        command.arg("server").args(args);
        if !args.contains(&"--listen") {
            command.args(["--listen", "127.0.0.1:0"]);
        }
        for variable in ["NETBENCH_TOKEN", "PORT", "SCENARIO", "SERVER_ID"] {
            command.env_remove(variable);
        }
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        let mut out = BufReader::new(child.stdout.take().unwrap());
        out.read_line(&mut line).unwrap();
        let address = line.trim().strip_prefix("listening on ").map(str::parse);
        let Some(Ok(address)) = address else {
            panic!("the agent said {line:?}");
        };
        Self { child, address }
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// What netbench complained about, which is one line.
pub(crate) fn only_line(stderr: &[u8]) -> String {
    let text = String::from_utf8_lossy(stderr);
    assert_eq!(text.lines().count(), 1, "{text}");
    text.trim().to_owned()
}
