//! The address of an agent, and the hosts that can reach it.

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::str::FromStr;
use std::time::Duration;

use tokio::net::{TcpStream, lookup_host};
use tokio::time::timeout;

use crate::system::failure::Failure;

/// Default control port, the same as that of s2n-netbench's servers.
pub(crate) const PORT: u16 = 4433;

/// Maximum time for one address to answer.
const PATIENCE: Duration = Duration::from_secs(5);

/// Host and port, before the lookup: `localhost:4433`, `192.0.2.1`, `[2001:db8::1]:4433`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Target {
    host: String,
    port: u16,
}

impl Target {
    /// Returns all addresses of the name, in the order that the system prefers.
    pub(crate) async fn resolve(&self) -> Result<Vec<SocketAddr>, Failure> {
        let found = timeout(PATIENCE, lookup_host((self.host.as_str(), self.port)))
            .await
            .map_err(|_| format!("looking up {} took too long", self.host))?;
        let addresses: Vec<_> = found
            .map_err(|error| format!("cannot look up {}: {error}", self.host))?
            .collect();
        if addresses.is_empty() {
            return Err(format!("{} has no address", self.host).into());
        }
        Ok(addresses)
    }

    /// Connects to the first address that answers.
    pub(crate) async fn connect(&self) -> Result<TcpStream, Failure> {
        let mut failures = Vec::new();
        for address in self.resolve().await? {
            match timeout(PATIENCE, TcpStream::connect(address)).await {
                Ok(Ok(stream)) => return Ok(stream),
                Ok(Err(error)) => failures.push(format!("{address}: {error}")),
                Err(_) => failures.push(format!("{address}: no answer")),
            }
        }
        Err(format!(
            "no agent answers at {self} ({}); start one there with `netbench server`",
            failures.join("; ")
        )
        .into())
    }
}

impl FromStr for Target {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if let Ok(address) = text.parse::<SocketAddr>() {
            // Shown without brackets, as a lookup needs it; a zone is kept.
            let host = match address {
                SocketAddr::V4(v4) => v4.ip().to_string(),
                SocketAddr::V6(v6) if v6.scope_id() != 0 => {
                    format!("{}%{}", v6.ip(), v6.scope_id())
                }
                SocketAddr::V6(v6) => v6.ip().to_string(),
            };
            return Ok(Self {
                host,
                port: address.port(),
            });
        }
        let bare = text.trim_start_matches('[').trim_end_matches(']');
        if let Ok(ip) = bare.parse::<IpAddr>() {
            return Ok(Self {
                host: ip.to_string(),
                port: PORT,
            });
        }
        let (host, port) = match text.rsplit_once(':') {
            Some((host, port)) => {
                let port = port
                    .parse()
                    .map_err(|_| format!("`{port}` is no port; write HOST:PORT"))?;
                (host, port)
            }
            None => (text, PORT),
        };
        let is_name = |c: char| c.is_alphanumeric() || matches!(c, '-' | '.' | '_');
        if host.is_empty() || !host.chars().all(is_name) {
            return Err(format!("`{text}` is no HOST:PORT"));
        }
        Ok(Self {
            host: host.to_owned(),
            port,
        })
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.host.contains(':') {
            return write!(f, "[{}]:{}", self.host, self.port);
        }
        write!(f, "{}:{}", self.host, self.port)
    }
}

/// Hosts that can reach an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reach {
    ThisHost,
    /// A private network (RFC 1918, RFC 4193, RFC 3927).
    OwnNetwork,
    Anybody,
}

impl Reach {
    pub(crate) fn of(ip: IpAddr) -> Self {
        match ip.to_canonical() {
            ip if ip.is_loopback() => Self::ThisHost,
            IpAddr::V4(v4) if v4.is_private() || v4.is_link_local() => Self::OwnNetwork,
            IpAddr::V6(v6) if v6.is_unique_local() || v6.is_unicast_link_local() => {
                Self::OwnNetwork
            }
            _ => Self::Anybody,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Reach, Target};

    #[test]
    fn hosts_are_names_or_addresses_with_or_without_a_port() {
        for (text, meant) in [
            ("localhost:1", "localhost:1"),
            ("server-0.netbench", "server-0.netbench:4433"),
            ("192.0.2.1:5", "192.0.2.1:5"),
            ("192.0.2.1", "192.0.2.1:4433"),
            ("[2001:db8::1]:5", "[2001:db8::1]:5"),
            ("2001:db8::1", "[2001:db8::1]:4433"),
            ("[2001:db8::1]", "[2001:db8::1]:4433"),
        ] {
            assert_eq!(text.parse::<Target>().unwrap().to_string(), meant);
        }
        for wrong in [
            "",
            ":1",
            "host:",
            "host:port",
            "host:70000",
            "a b:1",
            "http://host:1",
        ] {
            assert!(wrong.parse::<Target>().is_err(), "{wrong}");
        }
    }

    #[tokio::test(flavor = "current_thread")]
    async fn names_and_addresses_of_both_kinds_are_looked_up() {
        for text in ["localhost:1", "127.0.0.1:1", "[::1]:1"] {
            let target: Target = text.parse().unwrap();
            let found = target.resolve().await.unwrap();
            assert!(found.iter().all(|address| address.ip().is_loopback()));
        }
    }

    #[test]
    fn it_is_known_who_can_reach_an_address() {
        for (ip, reach) in [
            ("127.0.0.1", Reach::ThisHost),
            ("::1", Reach::ThisHost),
            ("::ffff:127.0.0.1", Reach::ThisHost),
            ("10.1.2.3", Reach::OwnNetwork),
            ("fd00::1", Reach::OwnNetwork),
            ("fe80::1", Reach::OwnNetwork),
            ("0.0.0.0", Reach::Anybody),
            ("::", Reach::Anybody),
            ("192.0.2.1", Reach::Anybody),
            ("2001:db8::1", Reach::Anybody),
        ] {
            assert_eq!(Reach::of(ip.parse().unwrap()), reach, "{ip}");
        }
    }
}
