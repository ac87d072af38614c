//! Tests that the HTTP client asks as its options say.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Output},
};

use axum::{Router, http::Method, routing::any};
use hybriq::{Identity, ServerConfig};
use hybriq_http::Server;
use tokio::runtime::Runtime;

/// A server that answers with the method and the body of a request.
struct Echo {
    _runtime: Runtime,
    url: String,
    certificate: PathBuf,
}

impl Echo {
    fn start() -> Self {
        let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
        let certificate = Path::new(env!("CARGO_TARGET_TMPDIR")).join("http3_client.pem");
        fs::write(&certificate, made.cert.pem()).unwrap();
        let key = made.signing_key.serialize_pem();
        let identity = Identity::from_pem(made.cert.pem().as_bytes(), key.as_bytes()).unwrap();
        let runtime = Runtime::new().unwrap();
        let echo = async |method: Method, body: String| format!("{method} {body}\n");
        let port = runtime.block_on(async {
            let config = ServerConfig::new(identity).accept_early_data();
            let server = Server::bind("127.0.0.1:0", config).unwrap();
            let port = server.local_address().port();
            tokio::spawn(server.serve(Router::new().fallback(any(echo))));
            port
        });
        Self {
            _runtime: runtime,
            url: format!("https://localhost:{port}/"),
            certificate,
        }
    }

    /// Runs the client with the certificate. Returns the body and what it tells.
    fn ask(&self, options: &[&str]) -> (String, String) {
        let mut command = Command::new(env!("CARGO_BIN_EXE_http3_client"));
        command.arg("--cacert").arg(&self.certificate);
        self.run(&mut command, options)
    }

    fn run(&self, command: &mut Command, options: &[&str]) -> (String, String) {
        let output = command
            .args(["--resolve", "localhost=127.0.0.1:0"])
            .args(options)
            .arg(&self.url)
            .output()
            .unwrap();
        let Output { stdout, stderr, .. } = output;
        let [body, told] = [stdout, stderr].map(|text| String::from_utf8(text).unwrap());
        assert!(output.status.success(), "{told}");
        (body, told)
    }
}

const OVER_HTTP3: &str = "200 OK over HTTP/3.0, with X25519MLKEM768\n";

#[test]
fn the_client_asks_as_its_options_say() {
    let echo = Echo::start();
    let (body, told) = echo.ask(&[]);
    assert_eq!(body, "GET \n");
    assert_eq!(told, "200 OK over HTTP/2.0, with X25519MLKEM768\n");
    for option in ["--http3", "--http3-only"] {
        let (body, told) = echo.ask(&[option]);
        assert_eq!((&body[..], &told[..]), ("GET \n", OVER_HTTP3));
    }
    // Without a file, the system decides: here by the certificates that the environment names.
    #[cfg(all(unix, not(target_vendor = "apple")))]
    {
        let mut command = Command::new(env!("CARGO_BIN_EXE_http3_client"));
        command.env("SSL_CERT_FILE", &echo.certificate);
        let (_, told) = echo.run(&mut command, &["--http3-only"]);
        assert_eq!(told, OVER_HTTP3);
    }
    let (body, _) = echo.ask(&["--http3-only", "-d", "hello"]);
    assert_eq!(body, "POST hello\n");
    let file = format!("@{}", echo.certificate.display());
    let (body, _) = echo.ask(&["--http3-only", "-X", "PUT", "-d", &file]);
    let sent = fs::read_to_string(&echo.certificate).unwrap();
    assert_eq!(body, format!("PUT {sent}\n"));
    let output = Path::new(env!("CARGO_TARGET_TMPDIR")).join("http3_client.out");
    let path = output.to_str().unwrap();
    // Two pages over one connection.
    let (body, told) = echo.ask(&["--http3-only", "-o", path, &echo.url]);
    assert_eq!((&body[..], &told[..]), ("", &OVER_HTTP3.repeat(2)[..]));
    assert_eq!(fs::read_to_string(output).unwrap(), "GET \nGET \n");
}
