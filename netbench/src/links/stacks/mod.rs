//! QUIC stacks behind one trait: a new one is a file here, a feature where it is heavy, and a line
//! in [`NAMES`] and [`driver`].

mod hybriq;
#[cfg(feature = "quinn")]
mod quinn;
#[cfg(feature = "s2n-quic")]
mod s2n_quic;

use std::net::SocketAddr;
use std::pin::Pin;

use serde::{Deserialize, Serialize};
use tokio::io::{AsyncRead, AsyncWrite};

use crate::Failure;

/// Every stack there is, and the feature that builds it in.
pub(crate) const NAMES: [(&str, Option<&str>); 3] = [
    ("hybriq", None),
    ("quinn", Some("quinn")),
    ("s2n-quic", Some("s2n-quic")),
];

/// What an object-safe async method returns.
pub(crate) type Answer<'a, T> = Pin<Box<dyn Future<Output = Result<T, Failure>> + 'a>>;
/// The sending half of a stream.
pub(crate) type Writer = Box<dyn AsyncWrite + Unpin>;
/// The receiving half of a stream.
pub(crate) type Reader = Box<dyn AsyncRead + Unpin>;

/// A QUIC stack. Where nothing else is said it is as its defaults make it; the key exchange is
/// X25519MLKEM768 with all.
pub(crate) trait Driver {
    /// Its name on crates.io.
    fn name(&self) -> &'static str;

    /// The congestion controller it uses.
    fn congestion(&self) -> String;

    /// Listens on a free port of the loopback interface, within a tokio runtime.
    fn serve(&self, setup: &Setup, key: &str) -> Result<Box<dyn Server>, Failure>;

    /// Opens a connection from a socket of its own.
    fn connect<'a>(
        &'a self,
        setup: &'a Setup,
        server: SocketAddr,
    ) -> Answer<'a, Box<dyn Connection>>;
}

pub(crate) trait Server {
    fn address(&self) -> SocketAddr;

    /// The next connection, its handshake complete.
    fn accept(&mut self) -> Answer<'_, Box<dyn Connection>>;
}

pub(crate) trait Connection {
    /// Opens a bidirectional stream.
    fn open(&mut self) -> Answer<'_, (Writer, Reader)>;

    /// The next bidirectional stream of the peer.
    fn accept(&mut self) -> Answer<'_, (Writer, Reader)>;

    /// What this end sent so far, also once the connection has ended.
    fn sent(&self) -> Sent;

    /// Closes with code 0.
    fn close(&mut self);
}

/// What both ends of a connection are set up with.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Setup {
    pub(crate) driver: String,
    /// The congestion controller of a stack that offers a choice; `None`: its default.
    pub(crate) congestion: Option<String>,
    /// PEM text that the server shows and the client trusts.
    pub(crate) chain: String,
    /// Bytes that may be unread or unacknowledged: of a stream, of a connection, in a send buffer.
    pub(crate) window: u32,
    /// Bytes of each socket buffer that are asked of the system.
    pub(crate) socket_buffer: u32,
}

/// The stack's own count of packets.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Sent {
    pub(crate) packets: u64,
    /// Declared lost.
    pub(crate) lost: u64,
}

/// The driver of that name, with a congestion controller of its choice.
pub(crate) fn driver(name: &str, congestion: Option<&str>) -> Result<Box<dyn Driver>, Failure> {
    match (name, congestion) {
        ("hybriq", congestion) => Ok(Box::new(hybriq::Hybriq::new(congestion)?)),
        (name, Some(_)) => Err(format!("{name} is measured with its default controller").into()),
        #[cfg(feature = "quinn")]
        ("quinn", None) => Ok(Box::new(quinn::Quinn)),
        #[cfg(feature = "s2n-quic")]
        ("s2n-quic", None) => Ok(Box::new(s2n_quic::S2nQuic)),
        (name, None) => Err(missing(name).into()),
    }
}

/// What is built in, and how to get the rest.
pub(crate) fn list() -> String {
    NAMES
        .iter()
        .map(|(name, _)| match driver(name, None) {
            Ok(driver) => format!("{name} {}, {}\n", version(name), driver.congestion()),
            Err(failure) => format!("{failure}\n"),
        })
        .collect()
}

fn missing(name: &str) -> String {
    let known = NAMES.iter().find(|known| known.0 == name);
    if let Some((_, Some(feature))) = known {
        return format!("{name} is not built in: build with `--features {feature}`");
    }
    let names = NAMES.map(|(name, _)| name).join(", ");
    format!("unknown stack '{name}'; valid: {names}")
}

/// The version that the lock file names.
pub(crate) fn version(name: &str) -> &'static str {
    let heading = format!("name = \"{name}\"");
    include_str!("../../../../Cargo.lock")
        .lines()
        .skip_while(|line| *line != heading)
        .find_map(|line| line.strip_prefix("version = \"")?.strip_suffix('"'))
        .unwrap_or("?")
}

#[cfg(test)]
mod tests {
    use super::{NAMES, driver, list, version};

    #[test]
    fn what_is_not_built_in_is_told_with_the_way_to_get_it() {
        for (name, feature) in NAMES {
            match (driver(name, None), feature) {
                (Ok(driver), _) => assert_eq!(driver.name(), name),
                (Err(failure), Some(feature)) => {
                    let help = format!("--features {feature}");
                    assert!(failure.to_string().contains(&help), "{failure}");
                }
                (Err(failure), None) => panic!("{failure}"),
            }
            assert!(list().contains(name));
            assert!(version(name).split('.').count() == 3, "{}", version(name));
        }
        let failure = driver("quicr", None).err().unwrap().to_string();
        assert!(
            failure.contains("valid: hybriq, quinn, s2n-quic"),
            "{failure}"
        );
    }

    #[test]
    fn the_congestion_controllers_are_known_by_name() {
        for name in ["new-reno", "cubic", "bbr", "prague"] {
            assert_eq!(driver("hybriq", Some(name)).unwrap().congestion(), name);
        }
        let failure = driver("hybriq", Some("vegas")).err().unwrap().to_string();
        assert!(
            failure.contains("valid: new-reno, cubic, bbr, prague"),
            "{failure}"
        );
        assert!(driver("quinn", Some("cubic")).is_err());
    }
}
