//! An endpoint of the QUIC interop runner (<https://github.com/quic-interop/quic-interop-runner>).
//!
//! The runner starts each endpoint in a container and tells it by environment variables what to do; the
//! exit status says how that went. [`Task::from_env`] reads them, [`Task::run`] does it.
//!
//! | variable | contents |
//! |---|---|
//! | `ROLE` | `client` or `server` |
//! | `TESTCASE` | name of the test case |
//! | `REQUESTS` | URLs that the client downloads |
//! | `SSLKEYLOGFILE` | file for the secrets of TLS |
//! | `QLOGDIR` | directory for qlog files |
//! | `CLIENT_PARAMS`, `SERVER_PARAMS` | options of this endpoint: see [`Params`] |
//! | `WWW`, `DOWNLOADS`, `CERTS` | directories. Default: `/www`, `/downloads`, `/certs` |
//! | `LISTEN` | address of the server. Default: `[::]:443` |

mod case;
mod client;
mod hq;
mod http3;
mod others;
mod params;
mod policies;
mod server;

use std::{env, net::SocketAddr, path::PathBuf, process::ExitCode, sync::Arc, time::Duration};

use http::Uri;
use hybriq::{
    KeyExchange, TransportConfig, error::Printable, qlog::Qlog, tls::Suite, transport::Version,
};

pub use case::TestCase;
pub use params::{Params, Stack};
pub(crate) use server::stopped;

/// An error that ends the endpoint, for its standard error.
type Failure = Box<dyn std::error::Error + Send + Sync>;

/// Side of an endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Downloads files.
    Client,
    /// Serves files.
    Server,
}

/// Time within which a handshake must be over. A third of the packets is lost in some cases.
const HANDSHAKE_TIME: Duration = Duration::from_mins(2);
/// Time without a packet after which a connection is given up.
const IDLE_TIME: Duration = Duration::from_mins(2);

/// Time that connections get to end before an endpoint stops.
const END: Duration = Duration::from_secs(1);

/// A file to download.
#[derive(Clone, Debug)]
struct Download {
    uri: Uri,
    /// File for the contents.
    to: PathBuf,
}

/// Work of an endpoint.
#[derive(Clone, Debug)]
pub struct Task {
    role: Role,
    case: TestCase,
    params: Params,
    requests: Vec<String>,
    www: PathBuf,
    downloads: PathBuf,
    certs: PathBuf,
    listen: SocketAddr,
}

/// Reason not to begin.
#[derive(Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The case is unknown or cannot be done: status 127 for the runner.
    Unsupported(String),
    /// The variables make no sense.
    Wrong(String),
}

impl Task {
    /// Reads the environment. Returns `None` where no `ROLE` is set.
    ///
    /// # Errors
    /// See [`Refusal`].
    pub fn from_env() -> Option<Result<Self, Refusal>> {
        let read = |name: &str| env::var(name).ok().filter(|value| !value.is_empty());
        let role = read("ROLE")?;
        Some(Self::read(&role, read))
    }

    fn read(role: &str, read: impl Fn(&str) -> Option<String>) -> Result<Self, Refusal> {
        let (role, params) = match role {
            "client" => (Role::Client, "CLIENT_PARAMS"),
            "server" => (Role::Server, "SERVER_PARAMS"),
            _ => {
                let problem = format!("ROLE is '{role}'; it must be client or server");
                return Err(Refusal::Wrong(problem));
            }
        };
        let name = read("TESTCASE").unwrap_or_default();
        let case = TestCase::from_name(&name)
            .ok_or_else(|| Refusal::Unsupported(format!("there is no test case '{name}'")))?;
        let wrong = |problem| Refusal::Wrong(format!("{params}: {problem}"));
        let params = Params::read(&read(params).unwrap_or_default()).map_err(wrong)?;
        let of_tls = || case.lack(role, params.backend);
        let lack = params.stack.lack(role, case).or_else(of_tls);
        let lack = lack.or_else(|| params.lack(role, case));
        if let Some(lack) = lack {
            return Err(Refusal::Unsupported(lack.to_owned()));
        }
        let listen = read("LISTEN").unwrap_or_else(|| "[::]:443".to_owned());
        let listen = listen.parse().map_err(|_| {
            Refusal::Wrong(format!("LISTEN is '{listen}'; it must be address:port"))
        })?;
        let requests = read("REQUESTS").unwrap_or_default();
        let requests: Vec<_> = requests.split_whitespace().map(str::to_owned).collect();
        if role == Role::Client && requests.is_empty() {
            return Err(Refusal::Wrong("REQUESTS names no URL".to_owned()));
        }
        let folder =
            |name, default: &str| read(name).map_or_else(|| PathBuf::from(default), PathBuf::from);
        Ok(Self {
            role,
            case,
            params,
            requests,
            www: folder("WWW", "/www"),
            downloads: folder("DOWNLOADS", "/downloads"),
            certs: folder("CERTS", "/certs"),
            listen,
        })
    }

    /// Does the work: a client until its files are there, a server until it is told to stop.
    pub async fn run(self) -> ExitCode {
        let role = self.role;
        let stack = self.params.stack;
        match self.run_on(stack).await {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => {
                eprintln!("{role:?}: {}", Printable(with_causes(&*error)));
                ExitCode::FAILURE
            }
        }
    }

    /// Returns true if files are asked for by HTTP/3.
    fn by_http3(&self) -> bool {
        use TestCase::{Http3, Qpack, WebTransport};

        self.params.only_http3 || matches!(self.case, Http3 | Qpack | WebTransport)
    }

    /// Returns the application protocol of the case.
    fn alpn(&self) -> &'static [u8] {
        if self.by_http3() { b"h3" } else { hq::ALPN }
    }

    /// Returns the policy for the key exchange of the case, if it is not the default.
    fn key_exchange(&self) -> Option<KeyExchange> {
        let of_case = self
            .case
            .is_post_quantum()
            .then_some(KeyExchange::RequirePostQuantum);
        let groups = self.params.groups.as_deref();
        let named = groups.and_then(|groups| self.params.policy(self.role, groups));
        named.or(of_case)
    }

    /// Returns the cipher suites of the case, if it names any.
    fn suites(&self) -> Option<Vec<Suite>> {
        (self.case == TestCase::ChaCha20).then(|| vec![Suite::ChaCha20Poly1305Sha256])
    }

    /// Returns the configuration of the transport. Only long transfers look for larger datagrams, because the
    /// runner counts packets in other cases; all cases but one speak version 1.
    fn transport(&self, qlog: Option<&Qlog>) -> TransportConfig {
        let versions = match self.case {
            TestCase::V2 => vec![Version::V2, Version::V1],
            _ => vec![Version::V1],
        };
        let mut transport = TransportConfig::new()
            .versions(versions)
            .handshake_timeout(HANDSHAKE_TIME)
            .idle_timeout(Some(IDLE_TIME));
        if self.case != TestCase::Transfer {
            transport = transport.without_mtu_discovery();
        }
        match qlog {
            Some(qlog) => transport.sampler(Arc::new(qlog.clone())),
            None => transport,
        }
    }
}

/// Starts the writer of logs into the directory that `QLOGDIR` names, if it names one.
fn qlog() -> Result<Option<Qlog>, Failure> {
    let directory = env::var_os("QLOGDIR").filter(|directory| !directory.is_empty());
    let Some(directory) = directory else {
        return Ok(None);
    };
    std::fs::create_dir_all(&directory)?;
    let qlog = Qlog::directory(directory).max_connections(1000).start();
    Ok(Some(qlog.map_err(|error| format!("QLOGDIR: {error}"))?))
}

/// Returns an error with all that led to it.
fn with_causes(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(cause) = next {
        let cause_text = cause.to_string();
        if !text.contains(&cause_text) {
            text = format!("{text}: {cause_text}");
        }
        next = cause.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(variables: &[(&str, &str)]) -> Result<Task, Refusal> {
        let find = |name: &str| {
            let found = variables.iter().find(|(known, _)| *known == name);
            found.map(|(_, value)| (*value).to_owned())
        };
        Task::read(&find("ROLE").unwrap_or_default(), find)
    }

    #[test]
    fn the_environment_is_read() {
        let task = read(&[
            ("ROLE", "client"),
            ("TESTCASE", "v2"),
            ("REQUESTS", "https://server4:443/a https://server4:443/b"),
            ("CLIENT_PARAMS", "tls=s2n-tls"),
        ])
        .expect("a task");
        assert_eq!(task.role, Role::Client);
        assert_eq!(task.case, TestCase::V2);
        assert_eq!(task.requests.len(), 2);
        assert_eq!(task.params.backend, hybriq::Backend::S2nTls);
        assert_eq!(task.listen.port(), 443);
        assert_eq!(task.downloads, PathBuf::from("/downloads"));
    }

    #[test]
    fn what_cannot_be_done_is_told_apart_from_mistakes() {
        let refusal = |variables: &[(&str, &str)]| read(variables).expect_err("refused");
        let server = ("ROLE", "server");
        let unsupported = [
            refusal(&[server, ("TESTCASE", "versionnegotiation")]),
            refusal(&[server]),
            refusal(&[
                server,
                ("TESTCASE", "chacha20"),
                ("SERVER_PARAMS", "tls=s2n-tls"),
            ]),
        ];
        for refusal in unsupported {
            assert!(matches!(refusal, Refusal::Unsupported(_)), "{refusal:?}");
        }
        let wrong = [
            refusal(&[("ROLE", "proxy"), ("TESTCASE", "transfer")]),
            refusal(&[("ROLE", "client"), ("TESTCASE", "transfer")]),
            refusal(&[server, ("TESTCASE", "transfer"), ("LISTEN", "443")]),
            refusal(&[
                server,
                ("TESTCASE", "transfer"),
                ("SERVER_PARAMS", "tls=openssl"),
            ]),
        ];
        for refusal in wrong {
            assert!(matches!(refusal, Refusal::Wrong(_)), "{refusal:?}");
        }
    }
}
