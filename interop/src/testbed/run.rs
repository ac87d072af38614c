//! One run: a client downloads from a server over the link.

use std::{
    fs::{self, File},
    io::{BufRead as _, BufReader},
    net::SocketAddr,
    path::Path,
    process::{ExitStatus, Stdio},
    time::Duration,
};

use tokio::process::{Child, Command};

use super::{
    Failure,
    cases::Case,
    certificates::Certificates,
    dissect::dissect,
    folders::Folders,
    hosts::{Hosts, PORTS, addresses},
    link::Link,
    peers::{self, Peer},
    report::{Line, Outcome, steps},
    traffic,
    verdict::{self, Evidence},
};
use crate::runner::Role;

/// Port of the server.
const PORT: u16 = PORTS[0];
/// Port of the address that the server prefers.
const PREFERRED_PORT: u16 = PORTS[1];
/// Time in which a server begins to listen.
const START: Duration = Duration::from_secs(15);
/// Time in which an endpoint ends after a signal.
const END: Duration = Duration::from_secs(5);
/// Exit status of an endpoint that cannot do a case.
const UNSUPPORTED: i32 = 127;

/// Runs a case. Its files are removed, its logs stay.
///
/// # Errors
/// The machine allows no namespaces, or the logs cannot be written.
pub(super) async fn run(
    case: &'static Case,
    client: &'static Peer,
    server: &'static Peer,
    certificates: &Certificates,
    logs: &Path,
) -> Result<Line, Failure> {
    let line = |outcome, text: String| Line::new(case, client, server, outcome, text);
    for peer in [client, server] {
        if let Err(missing) = peer.command() {
            return Ok(line(Outcome::Skipped, missing.to_string()));
        }
    }
    let folders = Folders::make(logs, case, client, server)?;
    let names = folders.fill(case.files)?;
    let hosts = Hosts::make()?;
    let link = Link::join(&hosts, case.conditions())?;
    let run = Run {
        case,
        by_http3: client.needs_http3() || server.needs_http3(),
        has_exact_end: [client, server].iter().any(|peer| peer.has_exact_groups()),
        certificates,
        folders: &folders,
        hosts: &hosts,
    };
    let ended = run.endpoints(client, server, &names).await;
    let captures = link.end().await;
    captures.client.write(&folders.at("client/link.pcap"))?;
    captures.server.write(&folders.at("server/link.pcap"))?;
    let keys = run.keys();
    let [client_saw, server_saw] =
        [&captures.client, &captures.server].map(|capture| dissect(capture, &keys));
    let steps = steps(&client_saw, &server_saw);
    let evidence = Evidence {
        groups: case.server_groups,
        client: client_saw,
        server: server_saw,
        bytes: 0,
    };
    let (outcome, text) = match ended? {
        Ended::Well if keys.trim().is_empty() => {
            (Outcome::Failed, "no end wrote a key log".to_owned())
        }
        Ended::Well => match run.judge(&names, evidence) {
            Ok(measured) => (Outcome::Passed, measured),
            Err(reason) => (Outcome::Failed, reason),
        },
        Ended::Unsupported(role) => (Outcome::Unsupported, run.lack(role)),
        Ended::Badly(reason) => (Outcome::Failed, reason + &run.seen(&evidence)),
        Ended::Never(reason) => (Outcome::Hung, reason + &run.seen(&evidence)),
    };
    // Reports of several machines are compared.
    let text = text.replace(&format!("{}/", folders.at("downloads").display()), "");
    Ok(line(outcome, text).with_steps(steps))
}

/// End of both endpoints.
enum Ended {
    Well,
    Unsupported(Role),
    Badly(String),
    /// One was killed after its deadline.
    Never(String),
}

struct Run<'a> {
    case: &'static Case,
    /// True if an end knows nothing but HTTP/3.
    by_http3: bool,
    /// True if an end has the groups of the case and no others.
    has_exact_end: bool,
    certificates: &'a Certificates,
    folders: &'a Folders,
    hosts: &'a Hosts,
}

impl Run<'_> {
    async fn endpoints(
        &self,
        client: &Peer,
        server: &Peer,
        names: &[String],
    ) -> Result<Ended, Failure> {
        let mut serving = self.start(Role::Server, server, names)?;
        let listening = tokio::time::timeout(START, self.wait_until_it_listens(&mut serving));
        match listening.await {
            Ok(Ok(None)) => {}
            Ok(Ok(Some(status))) => {
                return Ok(match status.code() {
                    Some(UNSUPPORTED) => Ended::Unsupported(Role::Server),
                    _ => Ended::Badly(format!("the server did not start: {status}")),
                });
            }
            Ok(Err(error)) => return Err(error),
            Err(_) => {
                serving.kill().await?;
                let time = START.as_secs();
                return Ok(Ended::Never(format!(
                    "the server was killed: it did not listen within {time} s"
                )));
            }
        }
        // Killed when they are dropped.
        let mut beside = if self.case.cross_traffic {
            let sender = self.beside(Role::Server, &["send"])?;
            wait_until_bound(self.hosts, "tcp", traffic::PORT).await?;
            vec![sender, self.beside(Role::Client, &["receive", "server4"])?]
        } else {
            Vec::new()
        };
        let mut downloading = self.start(Role::Client, client, names)?;
        let first = async {
            tokio::select! {
                biased;
                status = downloading.wait() => (Role::Client, status),
                status = serving.wait() => (Role::Server, status),
            }
        };
        let Ok(first) = tokio::time::timeout(self.case.deadline, first).await else {
            downloading.kill().await?;
            serving.kill().await?;
            let time = self.case.deadline.as_secs();
            return Ok(Ended::Never(format!(
                "the client was killed after {time} s"
            )));
        };
        let (role, status) = (first.0, first.1?);
        if role == Role::Server {
            downloading.kill().await?;
            return Ok(self.ended_badly("the server ended:", status, Role::Server));
        }
        for child in &mut beside {
            if let Some(status) = child.try_wait()? {
                let reason = format!("the traffic beside the download ended: {status}");
                return Ok(Ended::Badly(reason));
            }
        }
        drop(beside);
        let server_died = serving.try_wait()?;
        stop(&mut serving).await?;
        Ok(match (status.code(), server_died) {
            (Some(UNSUPPORTED), _) => Ended::Unsupported(Role::Client),
            (_, Some(status)) => self.ended_badly("the server ended:", status, Role::Server),
            (Some(0), None) => Ended::Well,
            _ => self.ended_badly("client:", status, Role::Client),
        })
    }

    fn ended_badly(&self, who: &str, status: ExitStatus, role: Role) -> Ended {
        let mut reason = format!("{who} {status}");
        let words = self.last_words(role);
        if !words.is_empty() {
            reason = format!("{reason}; {words}");
        }
        Ended::Badly(reason)
    }

    fn folder(role: Role) -> &'static str {
        match role {
            Role::Client => "client",
            Role::Server => "server",
        }
    }

    /// Starts an endpoint, with the environment of the runner.
    fn start(&self, role: Role, peer: &Peer, names: &[String]) -> Result<Child, Failure> {
        let folder = Self::folder(role);
        let logs = self.folders.at(folder);
        let [ip, netns, exec, host] = self.hosts.on(role);
        let certificates = if self.case.long_chain {
            &self.certificates.long
        } else {
            &self.certificates.short
        };
        let url = |name: &String| format!("https://{}:{PORT}/{name}", self.case.host);
        let urls: Vec<_> = names.iter().map(url).collect();
        let of_client = (self.case.client, self.case.client_groups);
        let of_server = (self.case.server, self.case.server_groups);
        let ((testcase, groups), (_, peer_groups)) = match role {
            Role::Client => (of_client, of_server),
            Role::Server => (of_server, of_client),
        };
        let mut params = peer.params.to_owned();
        if !groups.is_empty() {
            params = format!("{params} groups={groups}");
        }
        if self.has_exact_end && !peer_groups.is_empty() {
            params = format!("{params} peer-groups={peer_groups}");
        }
        let alpn = if self.by_http3 { "h3" } else { "" };
        if self.by_http3 {
            params += " alpn=h3";
        }
        let mut server_params = params.clone();
        if self.case.server == "connectionmigration" {
            let to = SocketAddr::new(addresses(Role::Server).v4.parse()?, PREFERRED_PORT);
            server_params = format!("{server_params} preferred={to}");
        }
        let output = File::create(logs.join("output.log"))?;
        let command = Command::new(ip)
            .args([netns, exec, host])
            .args(peer.command()?)
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", std::env::var_os("HOME").unwrap_or_default())
            .env("ROLE", folder)
            .env("TESTCASE", testcase)
            .env("GROUPS", groups)
            .env("ALPN", alpn)
            .env("HYBRIQ_PEERS", peers::folder())
            .env("REQUESTS", urls.join(" "))
            .env("WWW", self.folders.at("www"))
            .env("DOWNLOADS", self.folders.at("downloads"))
            .env("CERTS", certificates.canonicalize()?)
            .env("SSLKEYLOGFILE", logs.join("keys.log"))
            .env("QLOGDIR", logs.join("qlog"))
            .env("CLIENT_PARAMS", params)
            .env("SERVER_PARAMS", server_params)
            .env("LISTEN", format!("[::]:{PORT}"))
            .stdin(Stdio::null())
            .stdout(output.try_clone()?)
            .stderr(output)
            .kill_on_drop(true)
            .spawn()?;
        Ok(command)
    }

    /// Waits until a program on the server has the port. Returns its status if it ends before.
    async fn wait_until_it_listens(
        &self,
        server: &mut Child,
    ) -> Result<Option<ExitStatus>, Failure> {
        loop {
            if let Some(status) = server.try_wait()? {
                return Ok(Some(status));
            }
            if is_bound(self.hosts, "udp", PORT).await? {
                return Ok(None);
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    /// Starts an end of the cross traffic.
    fn beside(&self, role: Role, words: &[&str]) -> Result<Child, Failure> {
        let [ip, netns, exec, host] = self.hosts.on(role);
        let child = Command::new(ip)
            .args([netns, exec, host])
            .arg(std::env::current_exe()?)
            .arg("traffic")
            .args(words)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .kill_on_drop(true)
            .spawn()?;
        Ok(child)
    }

    /// Returns the last line that an endpoint printed.
    fn last_words(&self, role: Role) -> String {
        let path = self.folders.at(Self::folder(role)).join("output.log");
        let lines = File::open(path).map(BufReader::new);
        let last = lines
            .ok()
            .and_then(|lines| lines.lines().map_while(Result::ok).last());
        last.unwrap_or_default()
    }

    /// Returns who cannot do the case, and why.
    fn lack(&self, role: Role) -> String {
        let (end, reason) = (Self::folder(role), self.last_words(role));
        let reason = reason.strip_prefix("unsupported: ").unwrap_or(&reason);
        if reason.is_empty() {
            format!("by the {end}")
        } else {
            format!("by the {end}: {reason}")
        }
    }

    /// Returns the key logs of both ends.
    fn keys(&self) -> String {
        let mut keys = String::new();
        for role in [Role::Client, Role::Server] {
            let path = self.folders.at(Self::folder(role)).join("keys.log");
            keys += &fs::read_to_string(path).unwrap_or_default();
            keys.push('\n');
        }
        keys
    }

    /// Compares the files, and has the captures checked.
    fn judge(&self, names: &[String], evidence: Evidence) -> Result<String, String> {
        for role in [Role::Client, Role::Server] {
            let path = self.folders.at(Self::folder(role)).join("output.log");
            let output = fs::read(path).unwrap_or_default();
            if let Some(panic) = panic(&String::from_utf8_lossy(&output)) {
                return Err(format!("the {} panicked: {panic}", Self::folder(role)));
            }
        }
        let bytes = self.folders.compare(names)?;
        (self.case.check)(&Evidence { bytes, ..evidence })
    }

    /// Returns what the captures show of a run that ended badly: whoever gives up seldom tells why.
    fn seen(&self, evidence: &Evidence) -> String {
        if evidence.client.datagrams.is_empty() {
            return String::new();
        }
        let shown = (self.case.check)(evidence).err();
        let shown = shown.into_iter().chain(verdict::closed(evidence));
        let shown: Vec<_> = shown.collect();
        if shown.is_empty() {
            String::new()
        } else {
            format!("; in the capture: {}", shown.join(", "))
        }
    }
}

/// Finds where a Rust program panicked: its other tasks may continue, and the run pass.
fn panic(output: &str) -> Option<&str> {
    let line = output
        .lines()
        .find(|line| line.contains("' panicked at ") || line.contains(") panicked at "));
    line.map(str::trim)
}

/// Returns true if a program on the server has a port of `udp` or `tcp`.
async fn is_bound(hosts: &Hosts, protocol: &str, port: u16) -> Result<bool, Failure> {
    let [ip, netns, exec, host] = hosts.on(Role::Server);
    let mut sockets = Command::new(ip);
    sockets.args([netns, exec, host, "cat"]);
    sockets.args(["", "6"].map(|family| format!("/proc/net/{protocol}{family}")));
    let output = sockets.output().await?;
    let port = format!(":{port:04X} ");
    Ok(String::from_utf8_lossy(&output.stdout).contains(&port))
}

async fn wait_until_bound(hosts: &Hosts, protocol: &str, port: u16) -> Result<(), Failure> {
    let bound = async {
        while !is_bound(hosts, protocol, port).await? {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        Ok(())
    };
    let bound = tokio::time::timeout(START, bound).await;
    bound.map_err(|_| format!("nobody listens on port {port} of {protocol}"))?
}

/// Asks an endpoint to end, and kills it if it does not.
async fn stop(child: &mut Child) -> Result<(), Failure> {
    let id = child
        .id()
        .and_then(|id| rustix::process::Pid::from_raw(id.cast_signed()));
    if let Some(id) = id {
        // It may have ended on its own.
        let _ = rustix::process::kill_process(id, rustix::process::Signal::TERM);
    }
    if tokio::time::timeout(END, child.wait()).await.is_err() {
        child.kill().await?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_is_found_in_what_a_program_printed() {
        let printed = "listening\n\nthread 'tokio-rt-worker' (7) panicked at src/x.rs:1:2:\nwhy\n";
        let found = panic(printed).expect("a panic");
        assert_eq!(
            found,
            "thread 'tokio-rt-worker' (7) panicked at src/x.rs:1:2:"
        );
        assert!(panic("thread 'main' panicked at src/x.rs:1:2:\n").is_some());
        assert_eq!(panic("a request failed: nobody panicked at all"), None);
    }
}
