//! Where the payloads of a tunnel go.

use std::{
    fmt,
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
    str::FromStr,
};

/// The target of a tunnel: a host, by name or address, and a UDP port.
///
/// # Examples
/// ```
/// use hybriq_http::masque::Target;
///
/// let target: Target = "[2001:db8::42]:443".parse()?;
/// assert_eq!(target.port(), 443);
/// assert!("example.org".parse::<Target>().is_err());
/// # Ok::<_, hybriq_http::masque::TargetError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Target {
    host: Host,
    port: u16,
}

/// A host by name or address.
///
/// Exhaustive: RFC 9298 §3 has no other.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Host {
    /// A name, for the resolver of the proxy.
    Name(String),
    /// An address.
    Address(IpAddr),
}

/// Reason why a host and a port are not a valid [`Target`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TargetError {
    /// The host is neither a name nor an address. Zones of IPv6 addresses cannot be named (RFC 9298 §3).
    #[error("{0:?} is neither the name of a host nor an address without zone")]
    Host(String),
    /// The port is not between 1 and 65,535 (RFC 9298 §3).
    #[error("{0:?} is no UDP port; use 1 to 65535")]
    Port(String),
}

impl Target {
    /// Creates a target from a name or an address, without brackets, and a port.
    ///
    /// # Errors
    /// The host is neither a name nor an address, or the port is 0.
    pub fn new(host: &str, port: u16) -> Result<Self, TargetError> {
        let host = Host::parse(host).ok_or_else(|| TargetError::Host(host.to_owned()))?;
        if port == 0 {
            return Err(TargetError::Port(port.to_string()));
        }
        Ok(Self { host, port })
    }

    /// Makes a target of the values of `target_host` and `target_port` with their percent-encoding.
    pub(super) fn decode(host: &str, port: &str) -> Result<Self, TargetError> {
        let is_number = !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit());
        let number = port.parse().ok().filter(|_| is_number);
        let number = number.ok_or_else(|| TargetError::Port(port.to_owned()))?;
        let target = decode(host).map(|decoded| Self::new(&decoded, number));
        match target {
            Some(Ok(target)) => Ok(target),
            Some(Err(error @ TargetError::Port(_))) => Err(error),
            // As it came.
            _ => Err(TargetError::Host(host.to_owned())),
        }
    }

    /// Returns the host.
    pub const fn host(&self) -> &Host {
        &self.host
    }

    /// Returns the UDP port.
    pub const fn port(&self) -> u16 {
        self.port
    }

    /// Returns the host as in a template's value: with `%3A` for the colons of an IPv6 address (RFC 9298 §2).
    pub(super) fn encoded_host(&self) -> String {
        match &self.host {
            Host::Name(name) => name.clone(),
            Host::Address(address) => address.to_string().replace(':', "%3A"),
        }
    }
}

impl Host {
    fn parse(host: &str) -> Option<Self> {
        if let Ok(address) = host.parse::<IpAddr>() {
            return Some(Self::Address(address));
        }
        let is_name = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_');
        // Resolvers take a name whose last label is a number for an address in an old form.
        let last = host.trim_end_matches('.').rsplit('.').next();
        let last = last.filter(|last| !last.is_empty())?;
        let is_number = last.bytes().all(|byte| byte.is_ascii_digit())
            || last
                .get(..2)
                .is_some_and(|start| start.eq_ignore_ascii_case("0x"));
        let is_name = host.len() <= 253 && host.bytes().all(is_name) && !is_number;
        is_name.then(|| Self::Name(host.to_owned()))
    }
}

impl FromStr for Target {
    type Err = TargetError;

    /// Reads `host:port`, with brackets around an IPv6 address.
    fn from_str(target: &str) -> Result<Self, TargetError> {
        let (host, port) = target
            .rsplit_once(':')
            .ok_or_else(|| TargetError::Port(String::new()))?;
        let inner = host
            .strip_prefix('[')
            .and_then(|host| host.strip_suffix(']'));
        if inner.is_none() && host.contains(':') {
            return Err(TargetError::Host(host.to_owned()));
        }
        let number = port
            .parse()
            .map_err(|_| TargetError::Port(port.to_owned()))?;
        Self::new(inner.unwrap_or(host), number)
    }
}

impl From<SocketAddr> for Target {
    /// Port 0 stays, and proxies refuse it.
    fn from(address: SocketAddr) -> Self {
        Self {
            host: Host::Address(address.ip()),
            port: address.port(),
        }
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.host {
            Host::Name(name) => write!(f, "{name}:{}", self.port),
            Host::Address(address) => SocketAddr::new(*address, self.port).fmt(f),
        }
    }
}

/// Removes percent-encoding. `None` if it is cut, or what it encodes is not ASCII.
fn decode(value: &str) -> Option<String> {
    let mut decoded = String::with_capacity(value.len());
    let mut bytes = value.bytes();
    while let Some(byte) = bytes.next() {
        let byte = if byte == b'%' {
            let mut digit = || char::from(bytes.next()?).to_digit(16);
            let (high, low) = (digit()?, digit()?);
            (high << 4 | low) as u8
        } else {
            byte
        };
        if !byte.is_ascii() {
            return None;
        }
        decoded.push(char::from(byte));
    }
    Some(decoded)
}

/// Returns true for addresses of the public internet: not those of this host, of private or shared networks, of links,
/// of groups, for documentation or for protocols (RFC 6890), nor those that embed an IPv4 address for translation. It
/// does not know the public addresses of the proxy itself, nor those of your own networks: deny them yourself. For the
/// decisions of a [`Proxy`](super::Proxy).
///
/// # Examples
/// ```
/// use hybriq_http::masque::is_global;
///
/// assert!(is_global([9, 9, 9, 9].into()));
/// assert!(!is_global([169, 254, 169, 254].into()));
/// ```
pub fn is_global(address: IpAddr) -> bool {
    match address.to_canonical() {
        IpAddr::V4(address) => is_global_v4(address),
        IpAddr::V6(address) => is_global_v6(address),
    }
}

fn is_global_v4(address: Ipv4Addr) -> bool {
    let [a, b, c, _] = address.octets();
    let is_special = matches!(
        (a, b, c),
        // This network, shared addresses, protocols, relays of 6to4, benchmarks, and the reserved rest.
        (0 | 240..=255, ..) | (100, 64..=127, _) | (192, 0, 0) | (192, 88, 99) | (198, 18 | 19, _)
    );
    !is_special
        && !address.is_private()
        && !address.is_loopback()
        && !address.is_link_local()
        && !address.is_multicast()
        && !address.is_documentation()
}

fn is_global_v6(address: Ipv6Addr) -> bool {
    // Only these are given out (RFC 4291 §2.4). Of them, Teredo and others for protocols, documentation, and 6to4.
    match address.segments() {
        [0x2001, 0..=0x1ff | 0xdb8, ..] | [0x2002, ..] | [0x3fff, 0..=0xfff, ..] => false,
        [first, ..] => first & 0xe000 == 0x2000,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_are_read_as_in_rfc_9298() {
        for (host, port, shown) in [
            ("example.org", "443", "example.org:443"),
            ("192.0.2.6", "1", "192.0.2.6:1"),
            ("2001%3Adb8%3a%3A42", "65535", "[2001:db8::42]:65535"),
        ] {
            let target = Target::decode(host, port).expect("a target");
            assert_eq!(target.to_string(), shown);
            assert_eq!(shown.parse(), Ok(target.clone()));
            assert_eq!(Target::decode(&target.encoded_host(), port), Ok(target));
        }
        let long = "a".repeat(254);
        for host in [
            "",
            ".",
            "a b",
            "fe80%3A%3A1%25eth0",
            "%",
            "%4",
            "%zz",
            "%ff",
            "a/b",
            &long,
        ] {
            let read = Target::decode(host, "1");
            assert_eq!(read, Err(TargetError::Host(host.to_owned())));
        }
        // Old forms of 127.0.0.1.
        for host in ["2130706433", "0x7f.1", "127.0x0", "127.1", "0177.0.0.1."] {
            assert!(Target::new(host, 1).is_err(), "{host}");
        }
        for port in ["", "0", "65536", "-1", "+1", "1 ", "%31", "x"] {
            let read = Target::decode("example.org", port);
            assert_eq!(read, Err(TargetError::Port(port.to_owned())));
        }
        for target in ["example.org", "::1:1", "[::1]", "example.org:0"] {
            assert!(target.parse::<Target>().is_err(), "{target}");
        }
    }

    #[test]
    fn special_addresses_are_not_global() {
        for address in ["8.8.8.8", "192.1.0.1", "2606:4700::1111", "2a00:1450::1"] {
            assert!(is_global(address.parse().expect("an address")), "{address}");
        }
        for address in [
            "0.0.0.0",
            "10.1.1.1",
            "100.64.0.1",
            "127.0.0.1",
            "169.254.169.254",
            "172.16.0.1",
            "192.0.0.9",
            "192.0.2.1",
            "192.168.0.1",
            "198.18.0.1",
            "224.0.0.1",
            "240.0.0.1",
            "255.255.255.255",
            "::",
            "::1",
            "::ffff:10.0.0.1",
            "::ffff:127.0.0.1",
            "64:ff9b::1",
            "2001::1",
            "2001:db8::1",
            "2002:7f00:1::",
            "3fff::1",
            "fc00::1",
            "fe80::1",
            "ff02::1",
        ] {
            assert!(
                !is_global(address.parse().expect("an address")),
                "{address}"
            );
        }
    }
}
