//! The PROXY protocol, versions 1 and 2: a proxy in front of a listener tells the address of the client
//! (HAProxy's `doc/proxy-protocol.txt`).

use std::{
    io,
    net::{IpAddr, SocketAddr},
    str::FromStr,
};

use tokio::io::{AsyncRead, AsyncReadExt as _};

/// First bytes of a header of version 2.
const SIGNATURE: [u8; 12] = *b"\r\n\r\n\0\r\nQUIT\n";

/// Longest header of version 1.
const LONGEST_V1: usize = 107;

/// Longest header of version 2 behind its first 16 bytes: addresses, and extensions, which are ignored.
const LONGEST_V2: usize = 4096;

/// The proxies in front of TCP listeners, which report the address of the client at the start of each connection, in
/// version 1 or 2 of the PROXY protocol. For [`ServerBuilder::proxy_protocol`](crate::ServerBuilder::proxy_protocol).
///
/// The address that the header names is the [`Peer::address`](crate::Peer::address) of the requests. A connection from
/// elsewhere, or whose header is missing, malformed, longer than 4 KiB, or not complete within
/// [`Limits::header_time`](crate::Limits::header_time), is closed, with a warning in the log. Health checks of the proxy
/// (`LOCAL`, `UNKNOWN`) have the address of the proxy. HTTP/3 has no such header.
///
/// # Examples
/// ```
/// use hybriq_http::{ProxyProtocol, Server};
///
/// # fn run() -> Result<(), hybriq_http::ProxyNetworkError> {
/// let proxies = ProxyProtocol::from_networks(["10.0.0.0/8", "2001:db8::7"])?;
/// let builder = Server::builder().proxy_protocol(proxies);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct ProxyProtocol {
    trusted: Vec<(u128, u8)>,
    port: Option<u16>,
}

/// Reason why a network of proxies cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ProxyNetworkError {
    /// The text is not a network.
    #[error(
        "{0:?} is not a network; write an address and the bits of its prefix, such as 10.0.0.0/8"
    )]
    NotANetwork(String),
    /// No network was given, so that no proxy could connect.
    #[error("no network of proxies was given; name those that may connect, such as 10.0.0.0/8")]
    Empty,
}

impl ProxyProtocol {
    /// Trusts proxies in these networks: addresses, each with the number of bits of its prefix, or single addresses
    /// without one.
    ///
    /// # Errors
    /// A text is not a network, or there is none.
    ///
    /// # Security
    /// Whoever connects from such an address can claim any address of a client.
    pub fn from_networks(
        networks: impl IntoIterator<Item: AsRef<str>>,
    ) -> Result<Self, ProxyNetworkError> {
        let networks = networks.into_iter().map(|text| {
            let text = text.as_ref();
            network(text).ok_or_else(|| ProxyNetworkError::NotANetwork(text.to_owned()))
        });
        let trusted: Vec<_> = networks.collect::<Result<_, _>>()?;
        if trusted.is_empty() {
            return Err(ProxyNetworkError::Empty);
        }
        Ok(Self {
            trusted,
            port: None,
        })
    }

    /// Expects headers only on the listeners of this local port. Default: on all TCP listeners.
    #[must_use]
    pub fn on_port(mut self, port: u16) -> Self {
        self.port = Some(port);
        self
    }

    /// Returns the port, if there are headers only there.
    pub(crate) fn port(&self) -> Option<u16> {
        self.port
    }

    /// Reads the header of a connection, and no byte beyond it. Returns the addresses of the client and of the server
    /// that it names, if it names any.
    pub(crate) async fn read(
        &self,
        proxy: SocketAddr,
        stream: &mut (impl AsyncRead + Unpin),
    ) -> Result<Option<Addresses>, ProxyError> {
        let address = number(proxy.ip());
        let is_of = |(start, bits): &(u128, u8)| (address ^ start) & mask(*bits) == 0;
        if !self.trusted.iter().any(is_of) {
            return Err(ProxyError::Untrusted);
        }
        let mut first = [0; SIGNATURE.len()];
        stream.read_exact(&mut first).await?;
        if first == SIGNATURE {
            return read_v2(stream).await;
        }
        if !first.starts_with(b"PROXY ") {
            return Err(ProxyError::Missing);
        }
        let mut line = first.to_vec();
        while !line.ends_with(b"\r\n") {
            if line.len() == LONGEST_V1 {
                return Err(ProxyError::TooLong);
            }
            line.push(stream.read_u8().await?);
        }
        let line = std::str::from_utf8(&line).map_err(|_| ProxyError::Malformed)?;
        parse_v1(line.trim_end_matches("\r\n"))
    }
}

/// The addresses of the two ends of a connection.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Addresses {
    pub(crate) client: SocketAddr,
    pub(crate) server: SocketAddr,
}

/// Reason why a connection of a proxy is closed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ProxyError {
    #[error("it comes from elsewhere than the proxies that ProxyProtocol trusts")]
    Untrusted,
    #[error("it begins with no header of the PROXY protocol; let the proxy send one")]
    Missing,
    #[error("the header of the PROXY protocol is too long")]
    TooLong,
    #[error("the header of the PROXY protocol is malformed")]
    Malformed,
    #[error("the header of the PROXY protocol is for another protocol than TCP over IP")]
    Family,
    #[error("the header of the PROXY protocol did not arrive in time")]
    Late,
    #[error("the header of the PROXY protocol did not arrive")]
    Cut(#[from] io::Error),
}

/// Reads the rest of a header of version 2.
async fn read_v2(stream: &mut (impl AsyncRead + Unpin)) -> Result<Option<Addresses>, ProxyError> {
    let mut head = [0; 4];
    stream.read_exact(&mut head).await?;
    let [command, family, len @ ..] = head;
    let len = usize::from(u16::from_be_bytes(len));
    if len > LONGEST_V2 {
        return Err(ProxyError::TooLong);
    }
    let mut rest = vec![0; len];
    stream.read_exact(&mut rest).await?;
    match (command, family) {
        // A connection of the proxy's own, or addresses that the proxy does not know.
        (0x20, _) | (0x21, 0) => Ok(None),
        (0x21, 0x11) => addresses::<4>(&rest).map(Some),
        (0x21, 0x21) => addresses::<16>(&rest).map(Some),
        (0x21, _) => Err(ProxyError::Family),
        _ => Err(ProxyError::Malformed),
    }
}

/// Reads two addresses of `N` bytes, and then their ports.
fn addresses<const N: usize>(bytes: &[u8]) -> Result<Addresses, ProxyError>
where
    IpAddr: From<[u8; N]>,
{
    let read = || {
        let (source, rest) = bytes.split_first_chunk::<N>()?;
        let (destination, rest) = rest.split_first_chunk::<N>()?;
        let (from, rest) = rest.split_first_chunk()?;
        let (to, _) = rest.split_first_chunk()?;
        let at = |ip: &[u8; N], port: &[u8; 2]| {
            SocketAddr::new(IpAddr::from(*ip).to_canonical(), u16::from_be_bytes(*port))
        };
        Some(Addresses {
            client: at(source, from),
            server: at(destination, to),
        })
    };
    read().ok_or(ProxyError::Malformed)
}

/// Reads a header of version 1, without its end of line.
fn parse_v1(line: &str) -> Result<Option<Addresses>, ProxyError> {
    let mut words = line.split(' ').skip(1);
    let is_v6 = match words.next() {
        Some("UNKNOWN") => return Ok(None),
        Some("TCP4") => false,
        Some("TCP6") => true,
        _ => return Err(ProxyError::Family),
    };
    let words: Vec<_> = words.collect();
    let &[source, destination, from, to] = words.as_slice() else {
        return Err(ProxyError::Malformed);
    };
    let at = |ip: &str, port: &str| {
        let ip = IpAddr::from_str(ip)
            .ok()
            .filter(|ip| ip.is_ipv6() == is_v6)?;
        // No sign, and no leading zero.
        let number = u16::from_str(port).ok()?;
        (number.to_string() == port).then(|| SocketAddr::new(ip.to_canonical(), number))
    };
    let client = at(source, from).ok_or(ProxyError::Malformed)?;
    let server = at(destination, to).ok_or(ProxyError::Malformed)?;
    Ok(Some(Addresses { client, server }))
}

/// Reads a network: its start, and the bits of its prefix as one of IPv6.
fn network(text: &str) -> Option<(u128, u8)> {
    let (ip, bits) = text
        .split_once('/')
        .map_or((text, None), |(ip, bits)| (ip, Some(bits)));
    let ip = IpAddr::from_str(ip).ok()?;
    let most = if ip.is_ipv4() { 32 } else { 128 };
    let bits = bits.map_or(Some(most), |bits| u8::from_str(bits).ok())?;
    let bits = (bits <= most).then(|| bits + (128 - most))?;
    Some((number(ip), bits))
}

/// Returns an address as a number; those of IPv4 as mapped into IPv6.
fn number(ip: IpAddr) -> u128 {
    match ip {
        IpAddr::V4(ip) => ip.to_ipv6_mapped(),
        IpAddr::V6(ip) => ip,
    }
    .to_bits()
}

fn mask(bits: u8) -> u128 {
    u128::MAX.checked_shl(128 - u32::from(bits)).unwrap_or(0)
}

#[cfg(test)]
mod tests;
