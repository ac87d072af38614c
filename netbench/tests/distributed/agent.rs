//! An agent as a process.

use std::io::{BufRead as _, BufReader};
use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::Receiver;

use crate::processes::{PATIENCE, read_to_end};

pub(crate) const NETBENCH: &str = env!("CARGO_BIN_EXE_netbench");

/// Variables that netbench reads from the environment.
const VARIABLES: [&str; 6] = [
    "CLIENT_ID",
    "NETBENCH_TOKEN",
    "PORT",
    "SCENARIO",
    "SERVER_0",
    "SERVER_ID",
];

/// netbench, with nothing but its arguments to go by.
pub(crate) fn netbench() -> Command {
    without_variables(Command::new(NETBENCH))
}

pub(crate) fn without_variables(mut command: Command) -> Command {
    for variable in VARIABLES {
        command.env_remove(variable);
    }
    command
}

/// Ends with this.
pub(crate) struct Agent {
    pub(crate) child: Child,
    pub(crate) address: SocketAddr,
    complaints: Receiver<String>,
}

impl Agent {
    /// On a free port of the loopback interface, unless the arguments say otherwise.
    pub(crate) fn start(args: &[&str]) -> Self {
        let mut command = netbench();
        command.arg("server").args(args);
        if !args.contains(&"--listen") {
            command.args(["--listen", "127.0.0.1:0"]);
        }
        Self::of(command)
    }

    /// Started by this command.
    pub(crate) fn of(mut command: Command) -> Self {
        let mut child = command
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let complaints = read_to_end(child.stderr.take().unwrap());
        let mut line = String::new();
        let mut out = BufReader::new(child.stdout.take().unwrap());
        out.read_line(&mut line).unwrap();
        let address = line.trim().strip_prefix("listening on ").map(str::parse);
        let Some(Ok(address)) = address else {
            let _ = child.kill();
            panic!("the agent said {line:?} and {:?}", complaints.recv());
        };
        Self {
            child,
            address,
            complaints,
        }
    }

    /// Kills it; returns what it has complained about, once its server processes have ended too.
    pub(crate) fn kill(mut self) -> String {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
        self.complaints
            .recv_timeout(PATIENCE)
            .expect("a server process outlives its agent")
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Returns netbench's complaint, which is one line.
pub(crate) fn only_line(stderr: &[u8]) -> String {
    let text = String::from_utf8_lossy(stderr);
    assert_eq!(text.lines().count(), 1, "{text}");
    text.trim().to_owned()
}
