//! Chromium and Firefox, which run a page that asks for all cases.

use std::{fs, path::Path, process::Stdio};

use axum::{
    Router,
    response::Html,
    routing::{get, post},
};
use base64ct::{Base64, Encoding as _};
use tokio::{process::Command, sync::mpsc};

use super::{Answer, Files, POST_QUANTUM, cases, check, installed, sha256_bytes, support::soon};

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

#[tokio::test]
async fn chromium_is_served() {
    if Command::new("chromium")
        .arg("--version")
        .output()
        .await
        .is_err()
    {
        println!("skipped: chromium is not installed");
        return;
    }
    let files = Files::new(Path::new("/"), "chromium");
    let (router, mut told) = page();
    let server = files.serve_with(router);
    let origin = format!("localhost:{}", server.address().port());
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
    judge(&mut command, &mut told).await;
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
