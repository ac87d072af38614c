//! ML-DSA certificates of servers and of clients, with chains, against OpenSSL 3.5: its QUIC client,
//! and nginx as a server.

use std::{fs, net::SocketAddr, path::PathBuf, process::Stdio};

use bytes::Bytes;
use http::Request;
use http_body_util::Full;
use hybriq::{
    Backend, ClientConfig, Endpoint, Identity, ServerConfig, Trust,
    tls::{ClientAuth, KeyAlgorithm},
};
use hybriq_http::{Client, Http3};
use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, ExtendedKeyUsagePurpose, IsCa, KeyPair,
    KeyUsagePurpose,
};
use tokio::process::{Child, Command};

use super::{Files, installed, listens, support::soon};

/// Parameter sets: rcgen's, OpenSSL's name of the signature, and ours of the key.
pub(super) const KINDS: [(&rcgen::SignatureAlgorithm, &str, KeyAlgorithm); 3] = [
    (&rcgen::PKCS_ML_DSA_44, "mldsa44", KeyAlgorithm::MlDsa44),
    (&rcgen::PKCS_ML_DSA_65, "mldsa65", KeyAlgorithm::MlDsa65),
    (&rcgen::PKCS_ML_DSA_87, "mldsa87", KeyAlgorithm::MlDsa87),
];

/// Returns the chroot with OpenSSL's programs, if there is one and this user may enter it.
fn chroot() -> Option<PathBuf> {
    let chroot = installed("chroot")?;
    installed("chroot/usr/bin/openssl")?;
    let entered = std::process::Command::new("chroot")
        .arg(&chroot)
        .arg("true")
        .status();
    if entered.is_ok_and(|status| status.success()) {
        return Some(chroot);
    }
    test_summary::skip("a chroot needs root");
    None
}

/// Kinds of chains, and how many certificates are sent: the root signs a leaf, or an intermediate.
pub(super) static CHAINS: [(&str, usize); 2] = [("leaf", 1), ("chain", 2)];

/// Returns the TLS libraries of this build.
pub(super) fn backends() -> Vec<Backend> {
    let built = |backend: &Backend| {
        let problems = ClientConfig::new().tls(*backend).check().err();
        if let Some(problems) = &problems {
            test_summary::skip(format!("{backend} is not built in: {problems}"));
        }
        problems.is_none()
    };
    Backend::ALL.into_iter().filter(built).collect()
}

/// Writes `root.pem`, `intermediate.pem`, and a server's and a client's certificates and keys.
///
/// Roots have names of their own: with two of one name OpenSSL finds the wrong one, and reports a
/// broken signature in place of an unknown root.
pub(super) fn hierarchy(files: &Files, kind: &'static rcgen::SignatureAlgorithm) {
    let authority = |name: &str| {
        let mut params = CertificateParams::default();
        params.distinguished_name = rcgen::DistinguishedName::new();
        params
            .distinguished_name
            .push(rcgen::DnType::CommonName, name);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign];
        params
    };
    let key = || KeyPair::generate_for(kind).unwrap();
    let root = CertifiedIssuer::self_signed(authority(&files.seen("root")), key()).unwrap();
    let intermediate = CertifiedIssuer::signed_by(authority("intermediate"), key(), &root).unwrap();
    fs::write(files.path("root.pem"), root.pem()).unwrap();
    fs::write(files.path("intermediate.pem"), intermediate.pem()).unwrap();
    for (name, purpose) in [
        ("server", ExtendedKeyUsagePurpose::ServerAuth),
        ("client", ExtendedKeyUsagePurpose::ClientAuth),
    ] {
        let mut params = CertificateParams::new(["localhost".to_owned()]).unwrap();
        params.use_authority_key_identifier_extension = true;
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.extended_key_usages = vec![purpose];
        let key = key();
        let alone = params.signed_by(&key, &root).unwrap().pem();
        let leaf = params.signed_by(&key, &intermediate).unwrap();
        let chain = leaf.pem() + &intermediate.pem();
        fs::write(files.path(&format!("leaf-{name}.pem")), alone).unwrap();
        fs::write(files.path(&format!("chain-{name}.pem")), chain).unwrap();
        fs::write(files.path(&format!("{name}-key.pem")), key.serialize_pem()).unwrap();
    }
}

pub(super) fn identity(files: &Files, shape: &str, name: &str) -> Identity {
    let (chain, key) = (format!("{shape}-{name}.pem"), format!("{name}-key.pem"));
    Identity::from_pem_files(files.path(&chain), files.path(&key)).unwrap()
}

pub(super) fn trust(files: &Files) -> Trust {
    Trust::roots_pem_file(files.path("root.pem")).unwrap()
}

/// Starts OpenSSL's QUIC client, which shows a certificate and stays until its input ends.
fn s_client(files: &Files, shape: &str, server: SocketAddr, root: &str) -> Child {
    let mut command = Command::new("chroot");
    command
        .arg(&files.root)
        .args(["openssl", "s_client", "-quic"]);
    command.args(["-connect", &server.to_string(), "-servername", "localhost"]);
    command.args([
        "-alpn",
        "test",
        "-verifyCAfile",
        root,
        "-verify_return_error",
    ]);
    command.args(["-verify_hostname", "localhost"]);
    command.args(["-cert", &files.seen(&format!("{shape}-client.pem"))]);
    if shape == "chain" {
        command.args(["-cert_chain", &files.seen("intermediate.pem")]);
    }
    command.args(["-key", &files.seen("client-key.pem")]);
    command.stdin(Stdio::piped()).stdout(Stdio::piped());
    let command = command.stderr(Stdio::piped()).kill_on_drop(true);
    command.spawn().unwrap()
}

/// Ends the client's input; returns what it printed.
async fn told(client: Child) -> String {
    let output = soon(client.wait_with_output()).await.unwrap();
    let text = [output.stdout, output.stderr].concat();
    String::from_utf8_lossy(&text).into_owned()
}

/// Server with either library, client OpenSSL: each verifies the chain of the other.
#[tokio::test]
async fn openssl_is_served_with_certificates_at_both_ends() {
    let Some(chroot) = chroot() else { return };
    for (kind, signature, algorithm) in KINDS {
        let files = Files::new(&chroot, &format!("{signature}-quic"));
        hierarchy(&files, kind);
        for backend in backends() {
            for (shape, sent) in CHAINS {
                let config = ServerConfig::new(identity(&files, shape, "server")).tls(backend);
                let keys = served(&files, shape, (config.clone(), signature)).await;
                assert_eq!(keys, [], "{signature} {backend} {shape}");
                let config = config.client_auth(ClientAuth::Required(trust(&files)));
                let keys = served(&files, shape, (config, signature)).await;
                // s2n-tls reports the chain as it verified it, with the root.
                let chain = sent + usize::from(backend == Backend::S2nTls);
                assert_eq!(keys, vec![algorithm; chain], "{backend} {shape}");
            }
        }
    }
}

/// Serves OpenSSL's client, which expects this signature; returns the keys of its certificates.
async fn served(
    files: &Files,
    shape: &str,
    (config, signature): (ServerConfig, &str),
) -> Vec<KeyAlgorithm> {
    let server = Endpoint::server("127.0.0.1:0", config.alpn(["test"])).unwrap();
    let address = server.local_address();
    let client = s_client(files, shape, address, &files.seen("root.pem"));
    let accepted = soon(async { server.accept().await.unwrap().accept().await }).await;
    let told = told(client).await;
    let connection = accepted.unwrap_or_else(|error| panic!("{error}: {told}"));
    for expected in ["Verify return code: 0 (ok)", &format!("type: {signature}")] {
        assert!(told.contains(expected), "{shape}: {told}");
    }
    let chain = &connection.handshake().peer_certificates;
    chain.iter().map(|certificate| certificate.key).collect()
}

/// A client that does not know the root is not served, and says why.
#[tokio::test]
async fn openssl_refuses_a_root_that_it_does_not_know() {
    let Some(chroot) = chroot() else { return };
    let (files, other) = (
        Files::new(&chroot, "ml-dsa-known"),
        Files::new(&chroot, "ml-dsa-other"),
    );
    hierarchy(&files, &rcgen::PKCS_ML_DSA_65);
    hierarchy(&other, &rcgen::PKCS_ML_DSA_65);
    for backend in backends() {
        let config = ServerConfig::new(identity(&files, "chain", "server")).alpn(["test"]);
        let server = Endpoint::server("127.0.0.1:0", config.tls(backend)).unwrap();
        let root = other.seen("root.pem");
        let client = s_client(&files, "chain", server.local_address(), &root);
        let accepted = soon(async { server.accept().await.unwrap().accept().await }).await;
        let error = accepted.unwrap_err().to_string();
        let told = told(client).await;
        assert!(told.contains("certificate verify failed"), "{told}");
        assert!(error.contains("unknown_ca"), "{error}");
    }
}

/// Client with either library, server nginx: each verifies the chain of the other.
#[tokio::test]
async fn nginx_serves_with_certificates_at_both_ends() {
    let Some(chroot) = chroot() else { return };
    if installed("chroot/usr/sbin/nginx").is_none() {
        return;
    }
    let other = Files::new(&chroot, "ml-dsa-stranger");
    hierarchy(&other, &rcgen::PKCS_ML_DSA_65);
    for (kind, signature, _) in KINDS {
        let files = Files::new(&chroot, &format!("{signature}-nginx"));
        hierarchy(&files, kind);
        for (shape, _) in CHAINS {
            // A free port, for a moment at least.
            let free = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
            let server = free.local_addr().unwrap();
            drop(free);
            let conf = configuration(&files, shape, server);
            fs::write(files.path("nginx.conf"), conf).unwrap();
            let mut command = Command::new("chroot");
            let command = command
                .arg(&chroot)
                .args(["nginx", "-c", &files.seen("nginx.conf")]);
            let _child = command.kill_on_drop(true).spawn().unwrap();
            listens(server).await;
            for backend in backends() {
                let config = ClientConfig::new().tls(backend).trust(trust(&files));
                assert_eq!(ask(config.clone(), server).await, (200, "NONE".to_owned()));
                let known = config.clone().identity(identity(&files, shape, "client"));
                assert_eq!(ask(known, server).await, (200, "SUCCESS".to_owned()));
                let stranger = config.identity(identity(&other, shape, "client"));
                assert_eq!(ask(stranger, server).await.0, 400, "{signature} {backend}");
            }
        }
    }
}

/// Asks for a page; returns the status, and what the server says of our certificate.
async fn ask(config: ClientConfig, server: SocketAddr) -> (u16, String) {
    let builder = Client::builder().http3(Http3::Only);
    let builder = builder.resolve("localhost", [SocketAddr::new(server.ip(), 0)]);
    let client = builder.build(config).unwrap();
    let uri = format!("https://localhost:{}/", server.port());
    let request = Request::get(uri).body(Full::new(Bytes::new())).unwrap();
    let response = soon(client.request(request)).await.unwrap();
    let verdict = response.headers().get("x-verify");
    let verdict = verdict
        .map_or("", |value| value.to_str().unwrap())
        .to_owned();
    (response.status().as_u16(), verdict)
}

fn configuration(files: &Files, shape: &str, server: SocketAddr) -> String {
    let folder = files.seen("") + "/";
    format!(
        "daemon off; master_process off; pid {folder}pid; error_log stderr crit; user root;
         events {{ worker_connections 64; }}
         http {{
             access_log off; client_body_temp_path {folder}temp;
             server {{
                 listen {server} quic;
                 ssl_certificate {folder}{shape}-server.pem; 
                 ssl_certificate_key {folder}server-key.pem;
                 ssl_client_certificate {folder}root.pem; ssl_verify_client optional;
                 ssl_verify_depth 3;
                 location / {{ add_header x-verify $ssl_client_verify; return 200; }}
             }}
         }}"
    )
}
