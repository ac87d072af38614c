//! The same scripts to other servers, and the page that explains where their answers differ from ours.
//!
//! `.ci/judges` installs the servers into a folder, which `HYBRIQ_JUDGES` names here.

use std::{
    collections::BTreeMap,
    fmt, fs,
    net::{SocketAddr, UdpSocket},
    path::{Path, PathBuf},
    process::Stdio,
};

use hybriq::tls::CertificateDer;
use hybriq_h3::Code;
use rcgen::CertifiedKey;
use tokio::{
    io::{AsyncBufReadExt as _, BufReader},
    process::{Child, Command},
};

use crate::{
    answer,
    cases::Expected::{Connection as Closes, Stream as Resets},
    client,
    scripts::{self, Outcome, Script},
    support::{installed, soon},
};

const PAGE: &str = include_str!("../../../evidence/http3-verdicts.md");

/// What the page calls an answer that is the same as ours.
const SAME: &str = "the same";

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::GoesOn => f.write_str("continues"),
            Self::FallsSilent => f.write_str("falls silent"),
            Self::Fails(Closes(code)) => write!(f, "closes: {}", Code(*code)),
            Self::Fails(Resets(code)) => write!(f, "resets: {}", Code(*code)),
        }
    }
}

/// A line of the page: our answer, those of the others, and the reason.
struct Line {
    ours: &'static str,
    others: [&'static str; 2],
    why: &'static str,
}

/// Returns the lines of the page, by the names of their scripts.
fn lines() -> BTreeMap<&'static str, Line> {
    let rows = PAGE.lines().filter(|line| line.starts_with("| "));
    let rows = rows
        .skip_while(|line| !line.starts_with("| script |"))
        .skip(1);
    let line = |row: &'static str| {
        let cells: Vec<_> = row.trim_matches('|').split(" | ").map(str::trim).collect();
        let [script, ours, go, nghttp3, why] = cells[..] else {
            panic!("{row}");
        };
        let others = [go, nghttp3];
        (script, Line { ours, others, why })
    };
    rows.map(line).collect()
}

#[test]
fn the_page_of_verdicts_explains_every_line() {
    let (scripts, lines) = (scripts::all(), lines());
    let [go, nghttp3] = [0, 1].map(|column| {
        let differ = lines.values().filter(|line| line.others[column] != SAME);
        differ.count()
    });
    let count = scripts.len();
    assert!(PAGE.contains(&format!("The {count} scripts ")), "{count}");
    let counts = format!("the first server differs in {go}, the second in {nghttp3}.");
    assert!(PAGE.contains(&counts), "{counts}");
    for (name, line) in lines {
        let script = scripts.iter().find(|script| script.name == name);
        let script = script.unwrap_or_else(|| panic!("no script {name}"));
        assert_eq!(line.ours, script.expected.to_string(), "{name}");
        assert!(line.others.iter().any(|other| *other != SAME), "{name}");
        // Reasons are letters, with a paragraph for each.
        for letter in line.why.split(", ") {
            let paragraph = format!("\n**{letter}.** ");
            assert!(PAGE.contains(&paragraph), "{name}: {letter}");
        }
    }
}

/// A folder with a certificate and its key, which goes away in the end.
struct Files {
    folder: PathBuf,
    certificate: CertificateDer<'static>,
}

impl Files {
    fn new(root: &Path, name: &str) -> Self {
        let folder = root.join(format!("tmp/hybriq-{}-{name}-verdicts", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
        let CertifiedKey { cert, signing_key } = made;
        fs::write(folder.join("cert.pem"), cert.pem()).unwrap();
        fs::write(folder.join("key.pem"), signing_key.serialize_pem()).unwrap();
        fs::write(folder.join("index.html"), "a page").unwrap();
        let certificate = cert.der().clone();
        Self {
            folder,
            certificate,
        }
    }
}

impl Drop for Files {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// A server that runs.
struct Server {
    child: Child,
    address: SocketAddr,
}

/// Plays all scripts to a server, and compares its answers with a column of the page.
async fn compare(start: impl AsyncFn() -> Server, files: &Files, column: usize) {
    let client = client(&files.certificate);
    let lines = lines();
    let mut wrong = Vec::new();
    let mut server = start().await;
    for script in scripts::all() {
        let (outcome, _) = answer(&client, server.address, &script).await;
        let text = if server.child.try_wait().unwrap().is_some() {
            server = start().await;
            "crashes".to_owned()
        } else if outcome == script.expected {
            SAME.to_owned()
        } else {
            outcome.to_string()
        };
        let told = lines
            .get(&*script.name)
            .map_or(SAME, |line| line.others[column]);
        if told != text {
            let Script { name, expected, .. } = script;
            wrong.push(format!(
                "| {name} | {expected} | {text} | instead of {told}"
            ));
        }
    }
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}

#[tokio::test]
async fn the_page_of_verdicts_tells_what_quic_go_does() {
    let Some(program) = installed("quicgo") else {
        return;
    };
    let files = Files::new(Path::new("/"), "quic-go");
    let start = async || {
        let mut command = Command::new(&program);
        command.arg("server");
        command.args(["cert.pem", "key.pem"].map(|name| files.folder.join(name)));
        let command = command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.kill_on_drop(true).spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let line = soon(lines.next_line()).await.unwrap();
        let address = line.expect("the server ended").parse().unwrap();
        Server { child, address }
    };
    compare(start, &files, 0).await;
}

/// Starts the server of ngtcp2 in its chroot.
async fn ngtcp2(root: &Path, files: &Files) -> Server {
    // A free port, for a moment at least.
    let free = UdpSocket::bind("127.0.0.1:0").unwrap();
    let address = free.local_addr().unwrap();
    drop(free);
    let inside = |name: &str| {
        let path = files.folder.join(name);
        Path::new("/").join(path.strip_prefix(root).unwrap())
    };
    let mut command = Command::new("chroot");
    command.arg(root).args(["gtlsserver", "-q", "-d"]);
    command.arg(inside(""));
    command.args(["127.0.0.1", &address.port().to_string()]);
    command.args(["key.pem", "cert.pem"].map(inside));
    let command = command.stdin(Stdio::null()).stdout(Stdio::null());
    let command = command.stderr(Stdio::null()).kill_on_drop(true);
    let child = command.spawn().unwrap();
    let port = format!(":{:04X} ", address.port());
    soon(async {
        // A client that comes too early is refused by the system.
        while !fs::read_to_string("/proc/net/udp").unwrap().contains(&port) {
            tokio::task::yield_now().await;
        }
    })
    .await;
    Server { child, address }
}

#[tokio::test]
async fn the_page_of_verdicts_tells_what_nghttp3_does() {
    let Some(program) = installed("ngtcp2/usr/sbin/gtlsserver") else {
        return;
    };
    let root = program.ancestors().nth(3).unwrap();
    let mut try_it = std::process::Command::new("chroot");
    let is_allowed = try_it
        .arg(root)
        .arg("true")
        .status()
        .is_ok_and(|it| it.success());
    if !is_allowed {
        return test_summary::skip("a chroot needs root");
    }
    let files = Files::new(root, "nghttp3");
    compare(async || ngtcp2(root, &files).await, &files, 1).await;
}
