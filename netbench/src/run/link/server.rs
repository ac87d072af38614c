//! The server behind a link: which of its addresses datagrams go to.

use std::fmt;
use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, ToSocketAddrs as _};
use std::str::FromStr;
use std::time::Duration;

use hybriq::happy_eyeballs::{ATTEMPT_DELAY, first, in_turns};
use tokio::net::UdpSocket;
use tokio::time::timeout;

/// Time in which one of several addresses must answer.
const PATIENCE: Duration = Duration::from_secs(2);

/// Addresses of a server in the order in which they are tried.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Server {
    text: String,
    addresses: Vec<SocketAddr>,
}

impl FromStr for Server {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let addresses = text
            .to_socket_addrs()
            .map_err(|error| format!("{error}; expected HOST:PORT"))?;
        let addresses = in_turns(addresses);
        if addresses.is_empty() {
            return Err("the name has no address".to_owned());
        }
        Ok(Self {
            text: text.to_owned(),
            addresses,
        })
    }
}

impl fmt::Display for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl Server {
    /// Returns the only address, or the first of several that answers a QUIC packet (RFC 8305).
    ///
    /// # Errors
    /// None of several answers: the text says what was tried.
    pub(crate) async fn address(&self) -> Result<SocketAddr, String> {
        if let [only] = &*self.addresses {
            return Ok(*only);
        }
        let addresses = self.addresses.iter().copied();
        let answered = timeout(PATIENCE, first(addresses, ATTEMPT_DELAY, ask)).await;
        answered.ok().and_then(Result::ok).ok_or_else(|| {
            let tried: Vec<_> = self.addresses.iter().map(ToString::to_string).collect();
            let tried = tried.join(", ");
            format!("no address of {self} answers over QUIC ({tried}); start the server first, or give one address")
        })
    }
}

/// Returns the address if a server there answers an unknown version of QUIC (RFC 9000 §6.1).
async fn ask(address: SocketAddr) -> io::Result<SocketAddr> {
    let local = if address.is_ipv4() {
        SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0))
    } else {
        SocketAddr::from((Ipv6Addr::UNSPECIFIED, 0))
    };
    let socket = UdpSocket::bind(local).await?;
    socket.connect(address).await?;
    // A long header of a reserved version, with connection ids of 8 bytes.
    let mut packet = [0; 1200];
    packet[..6].copy_from_slice(&[0xc0, 0x1a, 0x2a, 0x3a, 0x4a, 8]);
    packet[14] = 8;
    socket.send(&packet).await?;
    let mut answer = [0; 1500];
    let len = socket.recv(&mut answer).await?;
    match answer.get(..len) {
        Some([first, 0, 0, 0, 0, ..]) if first & 0x80 != 0 => Ok(address),
        _ => Err(io::ErrorKind::InvalidData.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_may_be_given_by_its_name() {
        let server: Server = "localhost:4433".parse().unwrap();
        let is_local = |at: &SocketAddr| at.ip().is_loopback() && at.port() == 4433;
        assert!(server.addresses.iter().all(is_local));
        let error = "localhost".parse::<Server>().unwrap_err();
        assert!(error.contains("HOST:PORT"), "{error}");
    }

    #[tokio::test]
    async fn the_address_that_answers_is_chosen() {
        let socket = async || UdpSocket::bind("127.0.0.1:0").await.unwrap();
        let (silent, other, good) = (socket().await, socket().await, socket().await);
        let at = |socket: &UdpSocket| socket.local_addr().unwrap();
        let server = |sockets: &[&UdpSocket]| Server {
            text: "server.test:1".to_owned(),
            addresses: sockets.iter().map(|socket| at(socket)).collect(),
        };
        // One address is not asked: the server may start later.
        assert_eq!(server(&[&silent]).address().await, Ok(at(&silent)));
        let two = server(&[&silent, &good]);
        let answering = async {
            let mut packet = [0; 1500];
            let (len, from) = good.recv_from(&mut packet).await.unwrap();
            assert_eq!((len, packet[0] & 0x80), (1200, 0x80));
            good.send_to(&[0x80, 0, 0, 0, 0, 8], from).await.unwrap();
        };
        let (chosen, ()) = tokio::join!(two.address(), answering);
        assert_eq!(chosen, Ok(at(&good)));
        // What answers with something else is no server of QUIC.
        let both = server(&[&other, &other]);
        let answering = async {
            let mut packet = [0; 1500];
            for _ in 0..2 {
                let (_, from) = other.recv_from(&mut packet).await.unwrap();
                other.send_to(b"hello?", from).await.unwrap();
            }
        };
        let (failed, ()) = tokio::join!(both.address(), answering);
        let error = failed.unwrap_err();
        assert!(error.contains("start the server first"), "{error}");
    }
}
