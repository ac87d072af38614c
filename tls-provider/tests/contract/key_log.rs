//! The NSS key log.

use std::fmt::Write;
use std::process::Command;
use std::sync::{Arc, Mutex};

use hybriq_tls::{ClientHello, ConfigError, KeyLog, Level, Side};

use crate::identity::Directory;
use crate::support::{CONTENDERS, End, Pair, Slices, options, pairings};

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// The lines an end should have logged.
fn expected(end: &End, random: &[u8]) -> Vec<String> {
    let secrets = [
        (
            "CLIENT_HANDSHAKE_TRAFFIC_SECRET",
            Level::Handshake,
            Side::Client,
        ),
        (
            "SERVER_HANDSHAKE_TRAFFIC_SECRET",
            Level::Handshake,
            Side::Server,
        ),
        ("CLIENT_TRAFFIC_SECRET_0", Level::OneRtt, Side::Client),
        ("SERVER_TRAFFIC_SECRET_0", Level::OneRtt, Side::Server),
    ];
    let line = |label, secret: &[u8]| format!("{label} {} {}", hex(random), hex(secret));
    let mut lines: Vec<String> = secrets
        .map(|(label, level, writer)| {
            line(
                label,
                end.secret(level, writer).expect("a secret").as_bytes(),
            )
        })
        .into();
    lines.push(line(
        "EXPORTER_SECRET",
        end.exporter.as_ref().expect("an exporter").as_bytes(),
    ));
    lines.sort();
    lines
}

#[test]
fn both_ends_log_the_secrets_under_the_clients_random() {
    for pairing in pairings() {
        let logs = [(); 2].map(|()| Arc::new(Mutex::new(Vec::<String>::new())));
        let [client_log, server_log] = logs.clone().map(|log| {
            KeyLog::Callback(Arc::new(move |line: &str| {
                log.lock().expect("the log").push(line.to_owned());
            }))
        });
        let (client, server) = options();
        let options = (client.key_log(client_log), server.key_log(server_log));
        let mut pair = Pair::of(pairing, &options);
        pair.client.drive().expect("a ClientHello");
        let (hello, _) = ClientHello::parse(&pair.client.outbox.crypto.initial)
            .expect("well-formed")
            .expect("whole");
        pair.run(Slices::Whole).expect("a handshake");
        for (end, log) in [&pair.client, &pair.server].into_iter().zip(logs) {
            let mut lines = log.lock().expect("the log").clone();
            lines.sort();
            assert_eq!(lines, expected(end, hello.random()));
        }
    }
}

#[test]
fn a_file_is_appended_to_and_only_its_owner_may_read_it() {
    let directory = Directory::new("key-log");
    let path = directory.write("keys.log", "# before\n");
    let fresh = directory.0.join("fresh.log");
    for pairing in pairings() {
        let (client, server) = options();
        let log = |path: &std::path::Path| KeyLog::File(path.to_owned());
        Pair::of(
            pairing,
            &(client.key_log(log(&path)), server.key_log(log(&fresh))),
        )
        .complete();
    }
    let text = std::fs::read_to_string(&path).expect("the log");
    assert!(text.starts_with("# before\n") && text.ends_with('\n'));
    assert_eq!(text.lines().count(), 1 + 5 * pairings().count());
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let mode = std::fs::metadata(&fresh)
            .expect("the log")
            .permissions()
            .mode();
        assert_eq!(mode & 0o777, 0o600);
    }
}

#[test]
fn a_file_that_cannot_be_written_is_a_configuration_error() {
    let directory = Directory::new("no-key-log");
    let path = directory.0.join("missing").join("keys.log");
    for contender in CONTENDERS {
        let (client, server) = options();
        for result in [
            (contender.client)(&client.key_log(KeyLog::File(path.clone()))),
            (contender.server)(&server.key_log(KeyLog::File(path.clone()))),
        ] {
            let error = result.err().expect("no such directory");
            assert!(matches!(error, ConfigError::Write { .. }), "{error}");
        }
    }
}

/// The variable belongs to the process, so a process of its own runs the handshakes.
#[test]
fn the_environment_names_the_file() {
    const CHILD: &str = "HYBRIQ_KEY_LOG_CHILD";
    const NAME: &str = "key_log::the_environment_names_the_file";
    if std::env::var_os(CHILD).is_some() {
        for pairing in pairings() {
            let (client, server) = options();
            let options = (client.key_log(KeyLog::Environment), server);
            Pair::of(pairing, &options).complete();
        }
        return;
    }
    let directory = Directory::new("environment");
    let path = directory.0.join("keys.log");
    for (variable, lines) in [("SSLKEYLOGFILE", 5 * pairings().count()), ("OTHER", 0)] {
        let status = Command::new(std::env::current_exe().expect("this test"))
            .args(["--exact", NAME])
            .env_remove("SSLKEYLOGFILE")
            .env(CHILD, "1")
            .env(variable, &path)
            .output()
            .expect("the child")
            .status;
        assert!(status.success());
        let text = std::fs::read_to_string(&path).unwrap_or_default();
        assert_eq!(text.lines().count(), lines);
        let _ = std::fs::remove_file(&path);
    }
}
