//! Chromium and Firefox, which run a page that asks for all cases.

use std::{fs, path::Path, process::Stdio, sync::Arc};

use axum::{
    Router,
    response::Html,
    routing::{get, post},
};
use base64ct::{Base64, Encoding as _};
use hybriq::{TransportConfig, tls::CertificateCompression};
use hybriq_http::Server;
use tokio::{process::Command, sync::mpsc};

use super::{
    Answer, Files, POST_QUANTUM, cases,
    certificates::Certificates,
    check, installed, sha256_bytes,
    support::{self, soon},
};

const PAGE: &str = include_str!("page.html");

/// Returns the cases, the page, and what it reports.
fn page() -> (Router, mpsc::UnboundedReceiver<String>) {
    let (tell, told) = mpsc::unbounded_channel();
    let report = async move |body: String| tell.send(body).unwrap();
    let router = cases()
        .route("/page", get(async || Html(PAGE)))
        .route("/report", post(report));
    (router, told)
}

/// Waits for the report of a browser and checks it.
async fn judge(command: &mut Command, told: &mut mpsc::UnboundedReceiver<String>) {
    let command = command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    let browser = command.process_group(0).kill_on_drop(true).spawn().unwrap();
    let report = soon(told.recv()).await.unwrap();
    stop(browser.id()).await;
    let mut answers: Vec<Answer> = serde_json::from_str(&report).expect(&report);
    for answer in &mut answers {
        let group = answer.group.strip_suffix(" HTTP/3.0");
        let group = group.unwrap_or_else(|| panic!("{answer:?}"));
        // A browser may open a second connection, with the session of the first.
        let group = group.strip_suffix(", resumed").unwrap_or(group);
        answer.group = group.to_owned();
    }
    check(&answers, POST_QUANTUM);
}

/// Ends a browser with all its processes.
async fn stop(group: Option<u32>) {
    let group = format!("-{}", group.unwrap());
    let mut kill = Command::new("kill");
    let _ = kill.args(["-KILL", "--", &group]).status().await;
}

/// Returns the command that shows a page of the server at this port in Chromium, if it is installed.
async fn chromium(files: &Files, port: u16) -> Option<Command> {
    let version = Command::new("chromium").arg("--version").output().await;
    if version.is_err() {
        test_summary::skip("chromium is not installed: apt-get install chromium");
        return None;
    }
    let origin = format!("localhost:{port}");
    let key = Base64::encode_string(&sha256_bytes(&files.public_key));
    let mut command = Command::new("chromium");
    command.args([
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--disable-dev-shm-usage",
    ]);
    command.args(["--disable-background-networking", "--no-first-run"]);
    command.args([
        &format!("--user-data-dir={}", files.path("profile").display()),
        &format!("--ignore-certificate-errors-spki-list={key}"),
        &format!("--origin-to-force-quic-on={origin}"),
        "--host-resolver-rules=MAP localhost 127.0.0.1",
        &format!("https://{origin}/page"),
    ]);
    Some(command)
}

#[tokio::test]
async fn chromium_is_served() {
    let files = Files::new(Path::new("/"), "chromium");
    let (router, mut told) = page();
    let server = files.serve_with(router);
    let Some(mut command) = chromium(&files, server.address().port()).await else {
        return;
    };
    judge(&mut command, &mut told).await;
}

/// Chromium takes the server's certificate compressed, and a server that compresses none sends it
/// whole: the frames of the handshake show which message leaves.
#[tokio::test]
async fn chromium_takes_a_compressed_certificate() {
    let brotli = CertificateCompression::Brotli;
    let names: Vec<String> = (0..40).map(|n| format!("host-{n}.example.test")).collect();
    let files = Files::named(Path::new("/"), "chromium-brotli", &names);
    let mut sent = Vec::new();
    for algorithms in [&[][..], &[brotli]] {
        let (router, mut told) = page();
        let certificates = Arc::new(Certificates::default());
        let transport = TransportConfig::new().sampler(certificates.clone());
        let config = files.config().without_tickets().transport(transport);
        let config = config.certificate_compression(algorithms.iter().copied());
        let server = support::run_with(Server::builder(), config, router);
        let Some(mut command) = chromium(&files, server.address().port()).await else {
            return;
        };
        judge(&mut command, &mut told).await;
        let messages = certificates.messages();
        let of_first = messages.first().copied().expect("a handshake");
        assert!(messages.iter().all(|it| *it == of_first), "{messages:?}");
        sent.push(of_first);
        fs::remove_dir_all(files.path("profile")).unwrap();
    }
    let [whole, compressed] = sent[..] else {
        panic!("{sent:?}");
    };
    println!("{whole:?}, then {compressed:?}");
    assert_eq!(whole.compression, None);
    assert_eq!(compressed.compression, Some(brotli));
    assert_eq!(compressed.uncompressed, whole.len);
    assert!(compressed.len < whole.len / 2, "{sent:?}");
}

/// Settings of Firefox: it finds HTTP/3 without asking over TCP first, although no known authority
/// signed the certificate, and it looks no other name up.
fn settings(port: u16) -> String {
    format!(
        r#"user_pref("network.http.http3.alt-svc-mapping-for-testing", "localhost;h3=:{port}");
user_pref("network.http.http3.disable_when_third_party_roots_found", false);
user_pref("network.dns.disableIPv6", true);
user_pref("network.dns.disabled", true);
user_pref("browser.shell.checkDefaultBrowser", false);
user_pref("datareporting.policy.dataSubmissionEnabled", false);
"#
    )
}

#[tokio::test]
async fn firefox_is_served() {
    let Some(firefox) = installed("chroot/usr/bin/firefox-esr") else {
        return;
    };
    let chroot = firefox.ancestors().nth(3).unwrap();
    let files = Files::signed(chroot, "firefox");
    let (router, mut told) = page();
    let server = files.serve_with(router);
    let port = server.address().port();
    let profile = files.path("profile");
    fs::create_dir(&profile).unwrap();
    fs::write(profile.join("user.js"), settings(port)).unwrap();
    let policies = chroot.join("usr/lib/firefox-esr/distribution");
    fs::create_dir_all(&policies).unwrap();
    let root = files.seen("root.pem");
    let trust = format!(r#"{{"policies": {{"Certificates": {{"Install": ["{root}"]}}}}}}"#);
    fs::write(policies.join("policies.json"), trust).unwrap();
    let mut command = Command::new("unshare");
    command.args(["--mount", "sh", "-c", FIREFOX, "firefox"]);
    command.arg(chroot).arg(files.seen("profile"));
    command.arg(format!("https://localhost:{port}/page"));
    judge(&mut command, &mut told).await;
}

/// Runs Firefox in a chroot: folder, profile, page.
const FIREFOX: &str = r#"
mount -t proc proc "$1/proc" && mount -t tmpfs tmpfs "$1/dev/shm" && cd / &&
exec chroot "$1" env -i HOME="$2" PATH=/usr/bin:/bin MOZ_HEADLESS=1 \
    firefox-esr --no-remote --profile "$2" "$3"
"#;
