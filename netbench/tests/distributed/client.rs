//! A client as a process, and its results.

use std::fs;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::Receiver;

use serde_json::Value;

use crate::agent::netbench;
use crate::processes::{PATIENCE, read_to_end};

/// A file of that name for one test.
pub(crate) fn file(name: &str) -> PathBuf {
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("remote-{name}"));
    let _ = fs::remove_file(&path);
    path
}

pub(crate) fn read(path: &PathBuf) -> Value {
    serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap()
}

/// Ends with this.
pub(crate) struct Client {
    pub(crate) child: Child,
    json: PathBuf,
    complaints: Receiver<String>,
}

/// Output of a client that ended.
pub(crate) struct Ran {
    pub(crate) is_success: bool,
    pub(crate) stderr: String,
    pub(crate) json: PathBuf,
}

impl Client {
    /// Runs `request-response` with one group against a server, with its results in a file of that
    /// name.
    pub(crate) fn start(name: &str, server: &str, args: &[&str]) -> Self {
        let mut command = netbench();
        command
            .env("SERVER_0", server)
            .args(["client", "--group", "X25519"])
            .args(args);
        Self::of(name, command)
    }

    /// Started by this command, which takes further arguments.
    pub(crate) fn of(name: &str, mut command: Command) -> Self {
        let json = file(&format!("{name}.json"));
        let mut child = command
            .arg("--json")
            .arg(&json)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let complaints = read_to_end(child.stderr.take().unwrap());
        Self {
            child,
            json,
            complaints,
        }
    }

    /// Waits until it and all of its processes have ended.
    pub(crate) fn finish(mut self) -> Ran {
        let stderr = self.complaints.recv_timeout(PATIENCE);
        let stderr = stderr.expect("the client, or a process of it, does not end");
        let status = self.child.wait().unwrap();
        Ran {
            is_success: status.success(),
            stderr,
            json: self.json.clone(),
        }
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Ran {
    /// Returns the results.
    pub(crate) fn results(&self) -> Value {
        assert!(self.is_success, "{}", self.stderr);
        read(&self.json)
    }

    /// Returns the results up to the failure.
    pub(crate) fn partial(&self) -> Value {
        assert!(!self.is_success, "{}", self.stderr);
        read(&self.json)
    }

    /// The one line of a run that could not start.
    pub(crate) fn refusal(&self) -> &str {
        assert!(!self.is_success, "{}", self.stderr);
        assert_eq!(self.stderr.lines().count(), 1, "{}", self.stderr);
        if self.json.exists() {
            assert_eq!(read(&self.json)["complete"], false);
        }
        self.stderr.trim()
    }
}

pub(crate) fn repetition(results: &Value, index: usize) -> &Value {
    &results["cells"][0]["repetitions"][index]
}

pub(crate) fn number(value: &Value) -> f64 {
    let number = value.as_f64();
    number.unwrap_or_else(|| panic!("{value} is no number"))
}

pub(crate) fn count(value: &Value) -> u64 {
    let count = value.as_u64();
    count.unwrap_or_else(|| panic!("{value} is no count"))
}

pub(crate) fn succeeded(repetition: &Value) -> u64 {
    count(&repetition["kinds"][""]["outcomes"]["ok"])
}
