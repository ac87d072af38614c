//! Tests that the README's programs work, which are built and run in an empty crate, and that the pages claim what is
//! so.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod claims;
mod commands;

use std::fs;
use std::net::{TcpListener, UdpSocket};
use std::path::{Path, PathBuf};
use std::process::{Child, Command};

use hybriq::{ClientConfig, Trust};
use hybriq_http::{Client, Http3};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn readme() -> String {
    fs::read_to_string(root().join("README.md")).unwrap()
}

/// Returns the fenced blocks of one language, in order.
fn blocks(readme: &str, language: &str) -> Vec<String> {
    let mut blocks = Vec::new();
    let mut lines = readme.lines();
    while let Some(line) = lines.next() {
        if line.strip_prefix("```") == Some(language) {
            let block: Vec<_> = lines.by_ref().take_while(|line| *line != "```").collect();
            blocks.push(block.join("\n") + "\n");
        }
    }
    blocks
}

/// An empty crate outside the workspace, with the README's dependencies, programs and certificate.
struct NewCrate {
    folder: PathBuf,
}

/// Names of the README's programs, with the port of each.
const PROGRAMS: [(&str, &str); 2] = [("http", ":8443"), ("quic", ":4433")];

impl NewCrate {
    /// Makes a crate of one of the programs, on another port, because its own may be taken.
    fn from_readme(wanted: &str, port: u16) -> Self {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("readme-{wanted}"));
        let readme = readme();
        fs::create_dir_all(folder.join("src/bin")).unwrap();
        let programs = blocks(&readme, "rust");
        assert_eq!(programs.len(), PROGRAMS.len());
        for ((name, theirs), program) in PROGRAMS.iter().zip(&programs) {
            assert!(program.lines().count() <= 30, "{name} is too long");
            assert!(program.contains(theirs));
            if *name == wanted {
                let program = program.replace(theirs, &format!(":{port}"));
                fs::write(folder.join(format!("src/bin/{name}.rs")), program).unwrap();
            }
        }
        let [dependencies] = &blocks(&readme, "toml")[..] else {
            panic!("one `toml` block with the dependencies");
        };
        let mut dependencies = format!("[dependencies]\n{dependencies}");
        for place in ["quic", "quic/http"] {
            let theirs = format!("path = \"../hybriq/{place}\"");
            assert!(dependencies.contains(&theirs), "{dependencies}");
            let path = root().join(place);
            dependencies = dependencies.replace(&theirs, &format!("path = \"{}\"", path.display()));
        }
        // `[workspace]` keeps it apart from the workspace around the target folder; the profile is
        // the workspace's, so that dependencies are built once for both.
        let manifest = format!(
            "[package]\nname = \"newcomer\"\nversion = \"0.0.0\"\nedition = \"2024\"\n\n{dependencies}\n\
             [workspace]\nresolver = \"3\"\n\n{}",
            dev_profile()
        );
        fs::write(folder.join("Cargo.toml"), manifest).unwrap();
        // The workspace's versions; unneeded ones are dropped from the copy.
        fs::copy(root().join("Cargo.lock"), folder.join("Cargo.lock")).unwrap();
        Self { folder }
    }

    /// Makes the certificate by the README's command.
    fn make_certificate(&self) {
        let commands = blocks(&readme(), "sh").concat();
        let command = commands
            .lines()
            .find(|line| line.starts_with("openssl "))
            .unwrap();
        let mut words = command.split(' ');
        let output = Command::new(words.next().unwrap())
            .args(words)
            .current_dir(&self.folder)
            .output()
            .unwrap();
        assert!(output.status.success(), "{output:?}");
    }

    /// Builds into the target folder of the tests, where the dependencies are already.
    fn build(&self) -> PathBuf {
        let target = Path::new(env!("CARGO_TARGET_TMPDIR")).parent().unwrap();
        let output = Command::new(env!("CARGO"))
            .args(["build", "--offline", "--bins", "--target-dir"])
            .arg(target)
            .current_dir(&self.folder)
            .output()
            .unwrap();
        assert!(
            output.status.success(),
            "{}",
            String::from_utf8_lossy(&output.stderr)
        );
        target.join("debug")
    }
}

/// Returns a port that is free for UDP and for TCP.
fn free_port() -> u16 {
    let is_free = |port: &u16| TcpListener::bind(("::", *port)).is_ok();
    let any = || UdpSocket::bind("[::]:0").unwrap().local_addr().unwrap();
    let mut ports = std::iter::repeat_with(|| any().port());
    ports.find(is_free).unwrap()
}

/// Returns the development profile of the workspace.
fn dev_profile() -> String {
    let manifest = fs::read_to_string(root().join("Cargo.toml")).unwrap();
    let start = manifest.find("[profile.dev").unwrap();
    manifest[start..].to_owned()
}

/// A process that is killed when dropped.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn the_readmes_server_and_client_of_quic_work_in_an_empty_crate() {
    let new = NewCrate::from_readme("quic", free_port());
    new.make_certificate();
    let programs = new.build();
    let output = Command::new(programs.join("quic"))
        .current_dir(&new.folder)
        .output()
        .unwrap();
    assert_eq!(
        String::from_utf8_lossy(&output.stdout),
        "connected with X25519MLKEM768\nhello, post-quantum world\n",
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    assert!(output.status.success());
}

#[tokio::test]
async fn the_readmes_http_server_works_in_an_empty_crate() {
    let port = free_port();
    let new = NewCrate::from_readme("http", port);
    new.make_certificate();
    let programs = new.build();
    let server = Command::new(programs.join("http"))
        .current_dir(&new.folder)
        .spawn()
        .unwrap();
    let _server = Running(server);
    let trust = Trust::roots_pem_file(new.folder.join("cert.pem")).unwrap();
    let config = ClientConfig::new().trust(trust);
    for (http3, version) in [(Http3::Only, "HTTP/3.0"), (Http3::Off, "HTTP/2.0")] {
        let client = Client::builder()
            .http3(http3)
            .build(config.clone())
            .unwrap();
        // The server may not be listening yet.
        let mut asked = Err("never".to_owned());
        for _ in 0..100 {
            asked = client
                .get(format!("https://localhost:{port}/"))
                .await
                .map_err(|error| error.to_string());
            if asked.is_ok() {
                break;
            }
        }
        let body = asked.unwrap().into_body().bytes(1000).await.unwrap();
        assert_eq!(body, format!("over {version}, with X25519MLKEM768\n"));
    }
}

#[test]
fn the_readme_is_short() {
    let lines = readme().lines().count();
    assert!(lines <= 120, "README.md has {lines} lines");
}

/// An example shows one idea. A whole application needs more room.
#[test]
fn every_example_fits_on_two_screens() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/bin");
    for entry in fs::read_dir(folder).unwrap() {
        let mut path = entry.unwrap().path();
        if path.is_dir() {
            path.push("main.rs");
        }
        let lines = fs::read_to_string(&path).unwrap().lines().count();
        let whole = [
            "reloading_server.rs",
            "http3_server.rs",
            "webtransport_chat/main.rs",
            "file_transfer/main.rs",
        ];
        let is_whole = whole.iter().any(|name| path.ends_with(name));
        let most = if is_whole { 200 } else { 90 };
        assert!(lines <= most, "{} has {lines} lines", path.display());
    }
}

#[test]
fn the_readme_gives_the_commands_that_ci_takes_from_it() {
    let commands = blocks(&readme(), "sh").concat();
    for command in [
        "cargo run --release -p hybriq-netbench -- run request-response --groups all\n",
        "cargo run --release -p hybriq-netbench -- reproduce --quick\n",
        "cargo test --workspace\n",
    ] {
        assert!(commands.contains(command), "no `sh` block has: {command}");
    }
}
