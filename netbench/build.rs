//! Facts about the build for results: the revision of the sources, and the versions of the stacks.
//!
//! Neither is needed: without git, as from an archive, there is no revision, and without a lock
//! file there are no versions.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Crates whose versions matter to results, and the feature that builds each in.
const CRATES: [(&str, Option<&str>); 18] = [
    ("aws-lc-rs", None),
    ("aws-lc-sys", None),
    ("boring", Some("QUICHE")),
    ("boring-sys", Some("QUICHE")),
    ("hybriq", None),
    ("noq", Some("NOQ")),
    ("noq-proto", Some("NOQ")),
    ("noq-udp", Some("NOQ")),
    ("quiche", Some("QUICHE")),
    ("quinn", Some("QUINN")),
    ("quinn-proto", Some("QUINN")),
    ("quinn-udp", None),
    ("rustls", None),
    ("s2n-quic", Some("S2N_QUIC")),
    ("s2n-tls", None),
    ("s2n-tls-sys", None),
    ("tokio", None),
    ("tokio-rustls", None),
];

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let root = Path::new("..");
    println!("cargo::rustc-env=NETBENCH_CRATES={}", crates(root));
    if let Some(revision) = revision(root) {
        println!("cargo::rustc-env=NETBENCH_GIT={revision}");
    }
}

/// Returns `name=version` of those of [`CRATES`] that are built in, separated by blanks.
fn crates(root: &Path) -> String {
    let lock = root.join("Cargo.lock");
    watch(&lock);
    let text = fs::read_to_string(lock).unwrap_or_default();
    let mut lines = text.lines();
    let mut found = Vec::new();
    while let Some(line) = lines.next() {
        let name = value(line, "name");
        let version = lines.clone().next().and_then(|line| value(line, "version"));
        if let (Some(name), Some(version)) = (name, version)
            && is_built_in(name)
        {
            found.push(format!("{name}={version}"));
        }
    }
    found.join(" ")
}

fn is_built_in(name: &str) -> bool {
    let known = CRATES.iter().find(|(known, _)| *known == name);
    known.is_some_and(|(_, feature)| {
        feature.is_none_or(|feature| env::var_os(format!("CARGO_FEATURE_{feature}")).is_some())
    })
}

fn value<'a>(line: &'a str, key: &str) -> Option<&'a str> {
    let quoted = line.strip_prefix(key)?.trim().strip_prefix('=')?.trim();
    quoted.strip_prefix('"')?.strip_suffix('"')
}

/// Returns the commit, with `-dirty` where tracked files differ from it.
fn revision(root: &Path) -> Option<String> {
    // An archive unpacked inside of another repository has no revision of its own.
    let here = fs::canonicalize(root).ok()?;
    if fs::canonicalize(git(root, &["rev-parse", "--show-toplevel"])?).ok()? != here {
        return None;
    }
    let commit = git(root, &["rev-parse", "--short=12", "HEAD"])?;
    let changes = git(root, &["status", "--porcelain", "--untracked-files=no"])?;
    // A commit or another branch writes the first; a change of the sources builds them anyway.
    for name in ["logs/HEAD", "HEAD"] {
        if let Some(path) = git(root, &["rev-parse", "--git-path", name])
            && watch(&root.join(PathBuf::from(path)))
        {
            break;
        }
    }
    for sources in [
        "netbench/src",
        "quic/src",
        "quic/proto/src",
        "tls-provider/src",
    ] {
        watch(&root.join(sources));
    }
    let dirty = if changes.is_empty() { "" } else { "-dirty" };
    Some(format!("{commit}{dirty}"))
}

/// Makes cargo watch a path if it exists: cargo takes a missing path for changed each time.
fn watch(path: &Path) -> bool {
    let there = path.exists();
    if there {
        println!("cargo::rerun-if-changed={}", path.display());
    }
    there
}

fn git(root: &Path, args: &[&str]) -> Option<String> {
    let output = Command::new("git")
        .arg("-C")
        .arg(root)
        .args(args)
        .output()
        .ok()?;
    output
        .status
        .success()
        .then(|| String::from_utf8_lossy(&output.stdout).trim().to_owned())
}
