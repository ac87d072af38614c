//! The command `matrix` as its user sees it. Namespaces need root: without, these tests say so.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::{
    fs,
    io::{BufRead as _, BufReader, Read as _},
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
    process::{Child, ChildStdout, Command, Stdio},
};

use hybriq_interop::testbed;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

/// A peer for both sides: a server that dies at the first datagram, and a client that is refused something and
/// tells nobody.
const DYING: &str = "#!/usr/bin/env python3
import os, socket, sys
if '--version' in sys.argv:
    print('dying 1')
    sys.exit(0)
if os.environ['ROLE'] == 'client':
    sys.exit(5)
server = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
server.bind(('::', 443))
server.recv(2000)
print('fatal: no memory', flush=True)
sys.exit(3)
";

struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let folder = format!("hybriq-matrix-{}-{name}", std::process::id());
        let path = std::env::temp_dir().join(folder);
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    fn at(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    fn matrix(&self, words: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_hybriq-interop"));
        command
            .arg("matrix")
            .args(words)
            .arg("--logs")
            .arg(self.at("logs"))
            .arg("--json")
            .arg(self.at("matrix.json"))
            .env("HYBRIQ_PEERS", &self.0);
        command
    }

    fn report(&self) -> Value {
        serde_json::from_slice(&fs::read(self.at("matrix.json")).unwrap()).unwrap()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn lacks_root() -> bool {
    let lack = testbed::lack();
    if let Some(lack) = &lack {
        test_summary::skip(format!(
            "network namespaces with TUN devices need root: {lack}"
        ));
    }
    lack.is_some()
}

/// Returns the hosts of a process.
fn hosts(process: u32) -> Vec<String> {
    let entries = fs::read_dir("/run/netns").into_iter().flatten().flatten();
    let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
    let of_process = format!("hybriq-{process}-");
    names.filter(|name| name.starts_with(&of_process)).collect()
}

/// Starts a matrix, and waits until its first run of two is over. Returns it with what it prints.
fn begin(folder: &Folder) -> (Child, BufReader<ChildStdout>) {
    let words = ["--clients", "hybriq", "--servers", "hybriq", "H", "B"];
    let mut matrix = folder
        .matrix(&words)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(matrix.stdout.take().unwrap());
    let mut first = String::new();
    lines.read_line(&mut first).unwrap();
    assert!(first.starts_with("passed      handshake"), "{first}");
    (matrix, lines)
}

#[test]
fn a_signal_keeps_what_was_done_and_leaves_no_hosts() {
    if lacks_root() {
        return;
    }
    for signal in [Signal::INT, Signal::TERM] {
        let folder = Folder::new(&format!("signal-{}", signal.as_raw()));
        let (mut matrix, mut lines) = begin(&folder);
        kill_process(Pid::from_child(&matrix), signal).unwrap();
        let mut rest = String::new();
        lines.read_to_string(&mut rest).unwrap();
        assert!(rest.contains("Interrupted"), "{rest}");
        assert_eq!(matrix.wait().unwrap().code(), Some(1));
        let report = folder.report();
        assert_eq!(report["interrupted"], true);
        assert_eq!(report["lines"].as_array().unwrap().len(), 1);
        assert_eq!(hosts(matrix.id()), [""; 0]);
        let downloads = folder.at("logs/hybriq_hybriq/blackhole/downloads");
        assert!(!downloads.exists(), "files of a run that nobody finishes");
    }
}

#[test]
fn what_a_killed_matrix_leaves_is_removed_by_the_next() {
    if lacks_root() {
        return;
    }
    let folder = Folder::new("killed");
    let (mut matrix, mut lines) = begin(&folder);
    // Until the results of the first run are on the disk, and the second has hosts.
    while hosts(matrix.id()).is_empty() || !folder.at("matrix.json").exists() {
        assert_eq!(matrix.try_wait().unwrap(), None, "the matrix ended");
        std::thread::yield_now();
    }
    matrix.kill().unwrap();
    let mut rest = String::new();
    lines.read_to_string(&mut rest).unwrap();
    matrix.wait().unwrap();
    assert_eq!(folder.report()["lines"].as_array().unwrap().len(), 1);
    let next = ["--clients", "hybriq", "--servers", "hybriq", "H"];
    assert!(folder.matrix(&next).output().unwrap().status.success());
    assert_eq!(hosts(matrix.id()), [""; 0]);
}

#[test]
fn a_server_that_dies_is_named_at_once_with_its_last_words() {
    if lacks_root() || Command::new("python3").arg("--version").output().is_err() {
        return;
    }
    let folder = Folder::new("dying");
    let program = folder.at("quic-go");
    fs::write(&program, DYING).unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    let words = ["--clients", "hybriq", "--servers", "quic-go", "handshake"];
    let page = folder.at("matrix.html");
    let done = folder
        .matrix(&words)
        .arg("--html")
        .arg(&page)
        .output()
        .unwrap();
    assert_eq!(done.status.code(), Some(1), "{done:?}");
    let line = folder.report()["lines"][0].clone();
    assert_eq!(line["outcome"], "failed", "{line}");
    let text = line["text"].as_str().unwrap();
    assert!(
        text.starts_with("the server ended: exit status: 3; fatal: no memory"),
        "{text}"
    );
    assert!(text.contains("in the capture: 0 handshakes"), "{text}");
    assert_eq!(broken_links(&page), [""; 0]);
    let words = ["--clients", "quic-go", "--servers", "hybriq", "handshake"];
    let repeated = [&words[..], &["--retries", "2"]].concat();
    let done = folder.matrix(&repeated).output().unwrap();
    assert_eq!(done.status.code(), Some(1));
    let runs = String::from_utf8_lossy(&done.stdout);
    assert_eq!(runs.matches("FAILED ").count(), 3, "{runs}");
    let lines = folder.report()["lines"].clone();
    assert_eq!(lines.as_array().map(Vec::len), Some(1), "{lines}");
    assert_eq!(lines[0]["text"], "client: exit status: 5", "{lines}");
}

/// Returns the links of a page that lead nowhere, those to its own parts aside.
fn broken_links(page: &Path) -> Vec<String> {
    let text = fs::read_to_string(page).unwrap();
    let folder = page.parent().unwrap();
    let links = text.split("href=\"").skip(1);
    let links = links.filter_map(|rest| rest.split('"').next());
    let broken = links.filter(|link| !link.starts_with('#') && !folder.join(link).exists());
    broken.map(str::to_owned).collect()
}

#[test]
fn a_file_that_cannot_be_written_is_told_before_the_runs() {
    if lacks_root() {
        return;
    }
    let folder = Folder::new("unwritable");
    let words = ["--clients", "hybriq", "--servers", "hybriq", "handshake"];
    let markdown = folder.at("absent/matrix.md");
    let done = folder
        .matrix(&words)
        .arg("--markdown")
        .arg(&markdown)
        .output()
        .unwrap();
    assert_eq!(done.status.code(), Some(1));
    let error = String::from_utf8(done.stderr).unwrap();
    assert!(error.contains("absent/matrix.md: No such file"), "{error}");
    let left = fs::read_dir(&folder.0).unwrap().flatten();
    let left: Vec<_> = left.map(|entry| entry.file_name()).collect();
    assert_eq!(left, ["logs"]);
    assert_eq!(String::from_utf8(done.stdout).unwrap(), "");
}

#[test]
fn the_installer_tells_what_there_is_before_it_begins() {
    let install = |words: &[&str]| {
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/peers/install");
        Command::new(script).args(words).output().unwrap()
    };
    let help = install(&["--help"]);
    assert!(help.status.success());
    let help = String::from_utf8(help.stdout).unwrap();
    for name in ["quic-go", "python", "debian", "msquic"] {
        let line = help.lines().find(|line| line.starts_with(name));
        assert!(line.is_some_and(|line| line.contains("with")), "{help}");
    }
    let wrong = install(&["msquic", "nonsense"]);
    assert_eq!(wrong.status.code(), Some(1));
    assert!(
        String::from_utf8(wrong.stderr)
            .unwrap()
            .contains("'nonsense'")
    );
    assert_eq!(wrong.stdout, b"", "nothing is installed");
}
