//! The endpoint of the interop runner against itself, as two processes, in every test case. A relay between
//! them keeps the datagrams: what a case promises is read there where the packets' headers show it.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

#[path = "../../examples/tests/readme/commands.rs"]
mod commands;

use std::{
    collections::{HashMap, hash_map::Entry},
    fs,
    net::{Ipv4Addr, SocketAddr, UdpSocket},
    path::{Path, PathBuf},
    process::{Output, Stdio},
    sync::{Arc, Mutex},
    time::Duration,
};

use tokio::{
    io::{AsyncBufReadExt as _, BufReader},
    process::{Child, Command},
};

/// Time after which an endpoint hangs.
const DEADLINE: Duration = Duration::from_mins(1);

/// Folders of a test, removed at its end.
struct Folders(PathBuf);

impl Folders {
    fn new(name: &str) -> Self {
        let folder = std::env::temp_dir().join(format!("hybriq-{}-{name}", std::process::id()));
        for part in ["www", "downloads", "certs", "qlog"] {
            fs::create_dir_all(folder.join(part)).unwrap();
        }
        let mut root = rcgen::CertificateParams::new(Vec::new()).unwrap();
        root.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
        let name = rcgen::DnType::CommonName;
        root.distinguished_name.push(name, "root of a test");
        let root_key = rcgen::KeyPair::generate().unwrap();
        let root_pem = root.self_signed(&root_key).unwrap().pem();
        let issuer = rcgen::Issuer::new(root, root_key);
        let leaf = rcgen::CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
        let key = rcgen::KeyPair::generate().unwrap();
        let leaf = leaf.signed_by(&key, &issuer).unwrap();
        let certs = folder.join("certs");
        fs::write(certs.join("ca.pem"), root_pem).unwrap();
        fs::write(certs.join("cert.pem"), leaf.pem()).unwrap();
        fs::write(certs.join("priv.key"), key.serialize_pem()).unwrap();
        Self(folder)
    }

    fn at(&self, part: &str) -> PathBuf {
        self.0.join(part)
    }

    /// Makes files of the given sizes to download. Returns their names.
    fn fill(&self, sizes: &[usize]) -> Vec<String> {
        let make = |(at, &size): (usize, &usize)| {
            let name = format!("file-{at}");
            let contents: Vec<u8> = (0..size).map(|byte| (byte * 31 + at) as u8).collect();
            fs::write(self.at("www").join(&name), contents).unwrap();
            name
        };
        sizes.iter().enumerate().map(make).collect()
    }

    fn check(&self, names: &[String]) {
        for name in names {
            let sent = fs::read(self.at("www").join(name)).unwrap();
            let got = fs::read(self.at("downloads").join(name)).unwrap();
            assert!(sent == got, "{name}: {} of {} bytes", got.len(), sent.len());
        }
    }
}

impl Drop for Folders {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn endpoint(role: &str, case: &str, folders: &Folders) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_hybriq-interop"));
    command
        .env_clear()
        .env("ROLE", role)
        .env("TESTCASE", case)
        .env("WWW", folders.at("www"))
        .env("DOWNLOADS", folders.at("downloads"))
        .env("CERTS", folders.at("certs"))
        .env("QLOGDIR", folders.at("qlog"))
        .env("SSLKEYLOGFILE", folders.at("keys.log"))
        .kill_on_drop(true);
    command
}

/// Starts the server. Returns it with its address.
async fn serve(case: &str, params: &str, folders: &Folders) -> (Child, SocketAddr) {
    let mut server = endpoint("server", case, folders)
        .env("LISTEN", "127.0.0.1:0")
        .env("SERVER_PARAMS", params)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(server.stdout.take().unwrap()).lines();
    let line = tokio::time::timeout(DEADLINE, lines.next_line()).await;
    let line = line.expect("hangs").unwrap().expect("no server");
    let address = line.strip_prefix("listening on ").unwrap();
    (server, address.parse().unwrap())
}

/// Has the client download the files from a port.
async fn download(
    case: &str,
    params: &str,
    folders: &Folders,
    port: u16,
    names: &[String],
) -> Output {
    let urls = names
        .iter()
        .map(|name| format!("https://localhost:{port}/{name}"));
    let client = endpoint("client", case, folders)
        .env("REQUESTS", urls.collect::<Vec<_>>().join(" "))
        .env("CLIENT_PARAMS", params)
        .output();
    let output = tokio::time::timeout(DEADLINE, client).await;
    output.expect("hangs").unwrap()
}

/// Datagrams in the order in which they passed; true: from the client.
type Datagrams = Arc<Mutex<Vec<(bool, Vec<u8>)>>>;

/// Relays datagrams to the server and back, and keeps them. Returns its port.
async fn relay(server: SocketAddr) -> (u16, Datagrams) {
    let front = tokio::net::UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).await;
    let front = Arc::new(front.unwrap());
    let port = front.local_addr().unwrap().port();
    let datagrams = Datagrams::default();
    let kept = datagrams.clone();
    tokio::spawn(async move {
        let mut backs = HashMap::<SocketAddr, Arc<tokio::net::UdpSocket>>::new();
        let mut buffer = vec![0; 65_536];
        loop {
            let (len, from) = front.recv_from(&mut buffer).await.unwrap();
            let datagram = &buffer[..len];
            kept.lock().unwrap().push((true, datagram.to_vec()));
            if let Entry::Vacant(entry) = backs.entry(from) {
                let back = tokio::net::UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).await;
                let back = Arc::new(back.unwrap());
                back.connect(server).await.unwrap();
                entry.insert(back.clone());
                let (front, kept) = (front.clone(), kept.clone());
                tokio::spawn(async move {
                    let mut buffer = vec![0; 65_536];
                    while let Ok(len) = back.recv(&mut buffer).await {
                        kept.lock().unwrap().push((false, buffer[..len].to_vec()));
                        let _ = front.send_to(&buffer[..len], from).await;
                    }
                });
            }
            let _ = backs[&from].send(datagram).await;
        }
    });
    (port, datagrams)
}

/// Type of a long header (RFC 9000 §17.2) or of its version 2 (RFC 9369 §3.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Long {
    Initial,
    ZeroRtt,
    Handshake,
    Retry,
}

const V1: u32 = 1;
const V2: u32 = 0x6b33_43cf;

/// A long header.
#[derive(Clone, Copy)]
struct Header<'a> {
    version: u32,
    kind: Long,
    /// Destination connection id.
    to: &'a [u8],
}

/// Takes bytes from the front.
fn take<'a>(rest: &mut &'a [u8], len: usize) -> Option<&'a [u8]> {
    let (taken, left) = rest.split_at_checked(len)?;
    *rest = left;
    Some(taken)
}

/// Takes an integer of variable length (RFC 9000 §16) from the front.
fn varint(rest: &mut &[u8]) -> Option<usize> {
    let len = 1 << (rest.first()? >> 6);
    let bytes = take(rest, len)?.iter();
    let value = bytes.fold(0, |value, &byte| value << 8 | usize::from(byte));
    Some(value & !(0b11 << (len * 8 - 2)))
}

/// Reads the header of the first packet, and drops the packet.
fn next_header<'a>(rest: &mut &'a [u8]) -> Option<Header<'a>> {
    let first = take(rest, 1)?[0];
    let version = u32::from_be_bytes(take(rest, 4)?.try_into().unwrap());
    let types = match version {
        V1 => [Long::Initial, Long::ZeroRtt, Long::Handshake, Long::Retry],
        V2 => [Long::Retry, Long::Initial, Long::ZeroRtt, Long::Handshake],
        _ => return None,
    };
    let kind = types[usize::from(first >> 4 & 3)];
    let len = take(rest, 1)?[0];
    let to = take(rest, len.into())?;
    let len = take(rest, 1)?[0];
    take(rest, len.into())?;
    if kind == Long::Retry {
        *rest = &[];
    } else {
        if kind == Long::Initial {
            let token = varint(rest)?;
            take(rest, token)?;
        }
        let len = varint(rest)?;
        take(rest, len)?;
    }
    (first & 0x80 != 0).then_some(Header { version, kind, to })
}

/// Reads the long headers of a datagram.
fn headers(mut datagram: &[u8]) -> impl Iterator<Item = Header<'_>> {
    std::iter::from_fn(move || next_header(&mut datagram))
}

/// A case that has passed, with what its client told and what passed the relay.
struct Passed {
    told: String,
    datagrams: Vec<(bool, Vec<u8>)>,
}

impl Passed {
    /// Returns the long headers of one end.
    fn headers(&self, of_client: bool) -> impl Iterator<Item = Header<'_>> {
        let of_end = self
            .datagrams
            .iter()
            .filter(move |(from, _)| *from == of_client);
        of_end.flat_map(|(_, datagram)| headers(datagram))
    }

    fn has(&self, of_client: bool, kind: Long) -> bool {
        self.headers(of_client).any(|header| header.kind == kind)
    }

    /// Returns true if one end spoke a version alone.
    fn only(&self, of_client: bool, version: u32) -> bool {
        let mut versions = self.headers(of_client).map(|header| header.version);
        versions.all(|spoken| spoken == version)
    }
}

/// Runs a case through the relay; the downloads are compared.
async fn pass(client: &str, server: &str, params: &str, sizes: &[usize]) -> Passed {
    let folders = Folders::new(&format!("{client}-{}", params.replace('=', "-")));
    let names = folders.fill(sizes);
    let (mut running, address) = serve(server, params, &folders).await;
    let (port, datagrams) = relay(address).await;
    let output = download(client, params, &folders, port, &names).await;
    let told = String::from_utf8_lossy(&output.stdout).into_owned();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.success(),
        "{client}, {params}: {told}{errors}"
    );
    folders.check(&names);
    assert!(running.try_wait().unwrap().is_none(), "the server ended");
    let logs = fs::read_dir(folders.at("qlog")).unwrap().count();
    assert!(logs > 0, "{client}: no qlog");
    assert!(fs::metadata(folders.at("keys.log")).unwrap().len() > 0);
    let datagrams = datagrams.lock().unwrap().clone();
    Passed { told, datagrams }
}

const BOTH: [&str; 2] = ["tls=rustls", "tls=s2n-tls"];
const SMALL: [usize; 3] = [1024, 0, 5000];

#[test]
fn it_knows_the_commands_that_the_pages_name() {
    let checked = commands::check_program(
        "hybriq-interop",
        Path::new(env!("CARGO_BIN_EXE_hybriq-interop")),
    );
    assert!(checked > 3, "{checked} commands");
}

#[tokio::test]
async fn files_of_all_sizes_arrive_over_one_connection_in_version_1() {
    for params in BOTH {
        let passed = pass("transfer", "transfer", params, &[2_000_000, 3_000_000, 17]).await;
        assert_eq!(passed.told.lines().count(), 1, "{}", passed.told);
        assert!(passed.only(true, V1) && passed.only(false, V1));
        assert!(passed.told.contains("X25519MLKEM768"), "{}", passed.told);
        assert!(!passed.has(false, Long::Retry));
    }
}

#[tokio::test]
async fn two_thousand_files_arrive() {
    let sizes = [32; 1999];
    pass("multiplexing", "transfer", "tls=rustls", &sizes).await;
}

#[tokio::test]
async fn each_file_has_a_connection() {
    for params in BOTH {
        let passed = pass("multiconnect", "multiconnect", params, &SMALL).await;
        assert_eq!(passed.told.lines().count(), SMALL.len(), "{}", passed.told);
    }
}

#[tokio::test]
async fn chacha20_is_the_only_suite() {
    let passed = pass("chacha20", "chacha20", "tls=rustls", &SMALL).await;
    assert!(
        passed.told.contains("ChaCha20Poly1305Sha256"),
        "{}",
        passed.told
    );
}

#[tokio::test]
async fn a_client_gets_a_retry_and_repeats_itself() {
    for params in BOTH {
        let passed = pass("retry", "retry", params, &SMALL).await;
        assert!(passed.has(false, Long::Retry));
        let ids: Vec<_> = passed.headers(true).map(|header| header.to).collect();
        assert_ne!(ids.first(), ids.get(2), "the ClientHello was not repeated");
    }
}

#[tokio::test]
async fn the_second_connection_resumes_the_first() {
    for params in BOTH {
        let passed = pass("resumption", "resumption", params, &SMALL).await;
        let lines: Vec<_> = passed.told.lines().collect();
        assert!(lines[0].contains("resumed: false"), "{}", passed.told);
        assert!(lines[1].contains("resumed: true"), "{}", passed.told);
    }
}

#[tokio::test]
async fn requests_leave_in_0_rtt_packets() {
    // Without a way between them, a busy machine may end the handshake before the requests are written.
    for _ in 0..20 {
        let passed = pass("zerortt", "zerortt", "tls=rustls", &[32; 40]).await;
        if passed.has(true, Long::ZeroRtt) {
            return;
        }
    }
    panic!("no request left in a 0-RTT packet");
}

#[tokio::test]
async fn http3_brings_the_files() {
    for params in BOTH {
        pass("http3", "http3", params, &[5_000, 10_000, 500_000]).await;
    }
}

#[tokio::test]
async fn keys_are_updated() {
    for params in BOTH {
        let passed = pass("keyupdate", "transfer", params, &[3_000_000]).await;
        assert!(passed.told.contains("key updates: 1"), "{}", passed.told);
    }
}

#[tokio::test]
async fn version_1_becomes_version_2() {
    for params in BOTH {
        let passed = pass("v2", "v2", params, &SMALL).await;
        let first = passed.headers(true).next().map(|header| header.version);
        assert_eq!(first, Some(V1));
        let of_handshake = |header: &Header<'_>| header.kind == Long::Handshake;
        for of_client in [true, false] {
            let mut handshake = passed.headers(of_client).filter(of_handshake);
            assert!(handshake.all(|header| header.version == V2));
            assert!(passed.has(of_client, Long::Handshake));
        }
        // It may acknowledge half a ClientHello in version 1.
        let initial = |header: &Header<'_>| header.kind == Long::Initial;
        let mut initials = passed.headers(false).filter(initial);
        assert!(initials.any(|header| header.version == V2));
    }
}

#[tokio::test]
async fn nothing_but_post_quantum_groups_is_accepted() {
    let groups = "groups=X25519";
    let folders = Folders::new("pq");
    let names = folders.fill(&SMALL);
    let (_server, address) = serve("postquantum", "", &folders).await;
    let output = download("postquantum", "", &folders, address.port(), &names).await;
    assert!(output.status.success());
    folders.check(&names);
    let output = download("transfer", groups, &folders, address.port(), &names).await;
    assert_eq!(output.status.code(), Some(1));
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(errors.contains("X25519MLKEM768"), "{errors}");
}

/// The client ends at the address that the server prefers.
#[tokio::test]
async fn a_client_moves_to_the_preferred_address() {
    for params in BOTH {
        let folders = Folders::new(&params.replace('=', "-moves"));
        let names = folders.fill(&[2_000_000]);
        // The port is announced, so it must be known before the server has it.
        let free = UdpSocket::bind("127.0.0.1:0")
            .unwrap()
            .local_addr()
            .unwrap();
        let preferring = format!("{params} preferred={free}");
        let (_server, address) = serve("connectionmigration", &preferring, &folders).await;
        let output = download("transfer", params, &folders, address.port(), &names).await;
        let told = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(output.status.success(), "{told}");
        folders.check(&names);
        assert!(told.starts_with(&free.to_string()), "{told}");
    }
}

#[tokio::test]
async fn what_is_not_there_is_said_by_the_status() {
    let folders = Folders::new("status");
    let status = async |role, case, params: &str, urls: &str| {
        let output = endpoint(role, case, &folders)
            .env("REQUESTS", urls)
            .env("CLIENT_PARAMS", params)
            .env("SERVER_PARAMS", params)
            .output();
        let output = tokio::time::timeout(DEADLINE, output)
            .await
            .expect("hangs")
            .unwrap();
        assert!(!output.stderr.is_empty());
        output.status.code()
    };
    for role in ["client", "server"] {
        assert_eq!(
            status(role, "nonsense", "", "https://localhost/").await,
            Some(127)
        );
        assert_eq!(
            status(role, "zerortt", "tls=s2n-tls", "https://localhost/").await,
            Some(127)
        );
    }
    assert_eq!(status("client", "transfer", "", "").await, Some(1));
    assert_eq!(
        status("client", "transfer", "", "https://localhost:1/").await,
        Some(1)
    );
}

/// A file that the server does not have is an error, and the others arrive.
#[tokio::test]
async fn a_missing_file_is_an_error() {
    let folders = Folders::new("missing");
    let mut names = folders.fill(&SMALL);
    let (_server, address) = serve("transfer", "", &folders).await;
    names.push("nothing".to_owned());
    let output = download("transfer", "", &folders, address.port(), &names).await;
    assert_eq!(output.status.code(), Some(1));
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(errors.contains("nothing"), "{errors}");
    assert!(Path::new(&folders.at("downloads")).is_dir());
}
