//! curl, with nghttp3 and ngtcp2 over OpenSSL.

use std::fs;

use tokio::process::Command;

use super::{
    Answer, Files, POST_QUANTUM, check, installed, output, pattern, sha256,
    tables::{self, By},
};

/// curl in its chroot, and a server.
struct Curl {
    files: Files,
    server: super::support::Running,
}

impl Curl {
    fn new(name: &str) -> Option<Self> {
        let chroot = installed("chroot")?;
        if Command::new("chroot")
            .arg(&chroot)
            .arg("true")
            .as_std_mut()
            .status()
            .is_ok_and(|it| it.success())
        {
            let files = Files::new(&chroot, name);
            let server = files.serve();
            return Some(Self { files, server });
        }
        test_summary::skip("a chroot needs root");
        None
    }

    fn url(&self, path: &str) -> String {
        format!("https://localhost:{}{path}", self.server.address().port())
    }

    /// Runs curl and returns its standard output.
    async fn run(&self, arguments: &[&str]) -> String {
        let mut command = Command::new("chroot");
        let resolve = format!("localhost:{}:127.0.0.1", self.server.address().port());
        command
            .arg(&self.files.root)
            .args(["curl", "-sS", "--max-time", "50"]);
        command.args([
            "--cacert",
            &self.files.seen("cert.pem"),
            "--resolve",
            &resolve,
        ]);
        String::from_utf8(output(command.args(arguments)).await).unwrap()
    }

    /// Asks over HTTP/3 alone.
    async fn ask(&self, case: &str, path: &str, arguments: &[&str]) -> Answer {
        let (body, head) = (self.files.seen(case), self.files.seen("head"));
        let url = self.url(path);
        let mut all = vec!["--http3-only", "-o", &body, "-D", &head, &url];
        all.extend(arguments);
        self.run(&all).await;
        let body = fs::read(self.files.path(case)).unwrap_or_default();
        let head = fs::read_to_string(self.files.path("head")).unwrap();
        let field = |name: &str| head.lines().find_map(|line| line.strip_prefix(name));
        Answer {
            case: case.to_owned(),
            status: field("HTTP/3 ").unwrap().trim().parse().unwrap(),
            len: body.len(),
            sha256: sha256(&body),
            group: field("x-group: ").unwrap().to_owned(),
            fields: head
                .lines()
                .filter(|line| line.starts_with("x-field-"))
                .count(),
        }
    }
}

#[tokio::test]
async fn curl_is_served() {
    let Some(curl) = Curl::new("curl") else {
        return;
    };
    fs::write(curl.files.path("body"), pattern(1_000_000)).unwrap();
    let body = format!("@{}", curl.files.seen("body"));
    let mut answers = vec![
        curl.ask("small", "/bytes/10", &[]).await,
        curl.ask("empty", "/bytes/0", &[]).await,
        curl.ask("large", "/bytes/5000000", &[]).await,
        curl.ask("upload", "/echo", &["--data-binary", &body]).await,
        curl.ask("head", "/bytes/1000", &["--head"]).await,
        curl.ask("fields", "/fields/100", &[]).await,
        curl.ask("missing", "/missing", &[]).await,
    ];
    // With --head, curl writes the fields to the body's file.
    let head = answers
        .iter_mut()
        .find(|answer| answer.case == "head")
        .unwrap();
    (head.len, head.sha256) = (0, sha256(&[]));

    let url = curl.url("/bytes/[1000-1099]");
    let bodies = curl.files.seen("parallel-#1");
    let format = "%{http_version} %{http_code} %header{x-group}\n";
    let wanted = [
        "--http3-only",
        "--parallel",
        "-o",
        &bodies,
        "-w",
        format,
        &url,
    ];
    let lines = curl.run(&wanted).await;
    for (index, line) in lines.lines().enumerate() {
        let body = fs::read(curl.files.path(&format!("parallel-{}", 1000 + index))).unwrap();
        assert_eq!(body.len(), 1000 + index);
        let [version, status, group] = line.split(' ').collect::<Vec<_>>()[..] else {
            panic!("{line}");
        };
        assert_eq!(version, "3");
        answers.push(Answer {
            case: "parallel".to_owned(),
            status: status.parse().unwrap(),
            len: body.len(),
            sha256: sha256(&body),
            group: group.to_owned(),
            fields: 0,
        });
    }
    check(&answers, POST_QUANTUM);
    tables::used(curl.server.address(), By::Client).await;
}

/// A client that came over TCP finds HTTP/3 by itself the next time.
#[tokio::test]
async fn curl_follows_alt_svc() {
    let Some(curl) = Curl::new("alt-svc") else {
        return;
    };
    let (known, url) = (curl.files.seen("alt-svc"), curl.url("/bytes/10"));
    let format = "%{http_version} %header{x-version} %header{x-group}\n";
    let wanted = ["--alt-svc", &known, "-o", "/dev/null", "-w", format, &url];
    assert_eq!(curl.run(&wanted).await, "2 HTTP/2.0 X25519MLKEM768\n");
    assert_eq!(curl.run(&wanted).await, "3 HTTP/3.0 X25519MLKEM768\n");
}
