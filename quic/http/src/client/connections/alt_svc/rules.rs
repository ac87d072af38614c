//! The rules for what a server may offer (RFC 7838 §2.1 and §9).

use std::net::{IpAddr, Ipv6Addr, SocketAddr};

use crate::client::origin::Origin;

/// Ports from 1024 on where UDP services answer anybody, so that they could take what a client sends for a request,
/// or reflect it: SSDP, WS-Discovery, SIP, multicast DNS, CoAP, memcached.
const OTHER_SERVICES: [u16; 6] = [1900, 3702, 5060, 5353, 5683, 11211];

/// Hosts that may serve a server's origin over HTTP/3, if the server offers them with `alt-svc`.
///
/// An offer asks the client to send datagrams to a place that the server chooses. With either setting, an offer
/// counts only if
/// - it arrived over https in a response of the server itself, whose certificate was verified;
/// - its port is the server's own; or 443, if the server's port is below 1024; or at least 1024, unless another UDP
///   service is known to use it;
/// - its host is a DNS name or an IP address;
/// - its addresses are no less public than the one that the server answered from: a public server cannot send the
///   client to the private network or to this machine, and a server in the private network cannot send it to this
///   machine. No server can send it to a multicast address.
///
/// The offered host must present a certificate that is valid for the server's own name. A certificate for the name of
/// the offered host does not count.
///
/// Up to four offers of a server are remembered, for at most 30 days even if they are marked as persistent. They are
/// forgotten when the server sends `clear`, or when an offered host answers that it is not responsible (status 421). They
/// are kept in the [memory of servers](hybriq::ClientConfig::server_memory), next to sessions and tokens: a later
/// client with this memory uses them if its own rules allow them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum OfferedHosts {
    /// The server's own host, at any port that the rules allow.
    #[default]
    Same,
    /// Any host. Whoever controls a response field can then make the client send a few datagrams to a host of their
    /// choice, and can track clients by offering each a different host (RFC 7838 §9.4).
    Any,
}

/// Who can reach an address, from few to all.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::client) enum Reach {
    ThisHost,
    /// A private network, or one link.
    OwnNetwork,
    Anybody,
}

impl Reach {
    /// Returns who can reach an address, or `None` if it is not the address of one host.
    pub(in crate::client) fn of(ip: IpAddr) -> Option<Self> {
        match ip.to_canonical() {
            IpAddr::V4(ip) if ip.is_multicast() || ip.is_broadcast() => None,
            IpAddr::V6(ip) if ip.is_multicast() => None,
            // The system treats the unspecified address, and 0.0.0.0/8, as this machine.
            ip if ip.is_loopback() || ip.is_unspecified() => Some(Self::ThisHost),
            IpAddr::V4(ip) => Some(match ip.octets() {
                [0, ..] => Self::ThisHost,
                // RFC 1918, RFC 3927, RFC 6598.
                [10, ..] | [192, 168, ..] | [169, 254, ..] => Self::OwnNetwork,
                [172, second, ..] if second & 0xf0 == 16 => Self::OwnNetwork,
                [100, second, ..] if second & 0xc0 == 64 => Self::OwnNetwork,
                _ => Self::Anybody,
            }),
            IpAddr::V6(ip) => match embedded(ip) {
                Some(ip) => Self::of(ip),
                // RFC 4193, RFC 4291 §2.5.6 and §2.5.7.
                None if matches!(ip.segments()[0] & 0xffc0, 0xfc00..=0xfdc0 | 0xfe80 | 0xfec0) => {
                    Some(Self::OwnNetwork)
                }
                None => Some(Self::Anybody),
            },
        }
    }

    /// Keeps the addresses to which a server that answered from an address of this reach may send a client.
    pub(in crate::client) fn keep(self, addresses: &mut Vec<SocketAddr>) {
        addresses.retain(|address| Self::of(address.ip()).is_some_and(|reach| reach >= self));
    }
}

/// Returns the IPv4 address that a NAT64 or 6to4 address leads to (RFC 6052, RFC 3056).
fn embedded(ip: Ipv6Addr) -> Option<IpAddr> {
    let bytes = ip.octets();
    let v4 = match ip.segments() {
        [0x64, 0xff9b, 0, 0, 0, 0, ..] | [0, 0, 0, 0, 0, 0, ..] => bytes.last_chunk::<4>().copied(),
        [0x2002, ..] => bytes.get(2..6).and_then(|bytes| bytes.try_into().ok()),
        _ => None,
    };
    v4.map(IpAddr::from)
}

/// Returns true if a server may offer this place.
pub(super) fn allow(origin: &Origin, place: &Origin, hosts: OfferedHosts) -> bool {
    let is_host = match hosts {
        OfferedHosts::Same => place.host() == origin.host(),
        OfferedHosts::Any => place.host() == origin.host() || is_host(place.host()),
    };
    is_host && allows_port(origin.port(), place.port())
}

/// Returns true if a server may send a client to this port.
pub(in crate::client::connections) fn allows_port(origin: u16, port: u16) -> bool {
    match port {
        _ if port == origin => true,
        443 => origin < 1024,
        0..1024 => false,
        _ => !OTHER_SERVICES.contains(&port),
    }
}

/// Returns true for an IP address without a zone, and for a DNS name.
pub(in crate::client::connections) fn is_host(host: &str) -> bool {
    let is_label = |label: &str| {
        let is_part = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
        !label.is_empty() && label.len() <= 63 && label.bytes().all(is_part)
    };
    let is_name = || {
        let name = host.strip_suffix('.').unwrap_or(host);
        name.len() <= 253 && name.split('.').all(is_label)
    };
    host.parse::<IpAddr>().is_ok() || is_name()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn origin(text: &str) -> Origin {
        let uri = format!("https://{text}/").parse();
        Origin::of(&uri.expect("a URI")).expect("an origin")
    }

    #[test]
    fn another_host_must_be_allowed_and_be_a_host() {
        let server = origin("example.com:443");
        for host in [
            "other.test",
            "sub.example.com",
            "192.0.2.1",
            "[2001:db8::1]",
            "a_b.test",
            "other.test.",
        ] {
            let place = Origin::new(host, 443);
            assert!(!allow(&server, &place, OfferedHosts::Same), "{host}");
            assert!(allow(&server, &place, OfferedHosts::Any), "{host}");
        }
        for host in [
            "a b",
            "a\nb",
            "user@other.test",
            "other.test/path",
            "a..b",
            ".",
            "[fe80::1%eth0]",
            "::1:2:3:4:5:6:7:8:9",
            "é.test",
            &"a".repeat(64),
            &"a.".repeat(130),
        ] {
            let place = Origin::new(host, 443);
            assert!(!allow(&server, &place, OfferedHosts::Any), "{host}");
        }
        let same = Origin::new("Example.COM", 8443);
        assert!(allow(&server, &same, OfferedHosts::Same));
    }

    #[test]
    fn ports_of_other_services_are_refused() {
        for (server, port, allowed) in [
            (443, 443, true),
            (443, 8443, true),
            (443, 65535, true),
            (443, 1024, true),
            (443, 0, false),
            (443, 53, false),
            (443, 80, false),
            (443, 123, false),
            (443, 1023, false),
            (443, 1900, false),
            (443, 5353, false),
            (443, 11211, false),
            // The server's own port needs no rule: TCP goes there too.
            (53, 53, true),
            (1900, 1900, true),
            (784, 443, true),
            // A server that anybody may start sends nobody to a port that needs rights.
            (8443, 443, false),
            (8443, 53, false),
            (8443, 4433, true),
        ] {
            assert_eq!(allows_port(server, port), allowed, "{server} {port}");
        }
    }

    #[test]
    fn no_server_sends_a_client_to_a_place_less_public_than_its_own() {
        let all = [
            ("127.0.0.1", Some(Reach::ThisHost)),
            ("127.9.9.9", Some(Reach::ThisHost)),
            ("0.0.0.0", Some(Reach::ThisHost)),
            ("0.1.2.3", Some(Reach::ThisHost)),
            ("::", Some(Reach::ThisHost)),
            ("::1", Some(Reach::ThisHost)),
            ("::ffff:127.0.0.1", Some(Reach::ThisHost)),
            ("64:ff9b::7f00:1", Some(Reach::ThisHost)),
            ("::127.0.0.1", Some(Reach::ThisHost)),
            ("2002:7f00:1::", Some(Reach::ThisHost)),
            ("10.0.0.1", Some(Reach::OwnNetwork)),
            ("172.16.0.1", Some(Reach::OwnNetwork)),
            ("172.31.0.1", Some(Reach::OwnNetwork)),
            ("192.168.1.1", Some(Reach::OwnNetwork)),
            ("169.254.169.254", Some(Reach::OwnNetwork)),
            ("100.64.0.1", Some(Reach::OwnNetwork)),
            ("fd00::1", Some(Reach::OwnNetwork)),
            ("fc00::1", Some(Reach::OwnNetwork)),
            ("fe80::1", Some(Reach::OwnNetwork)),
            ("fec0::1", Some(Reach::OwnNetwork)),
            ("::ffff:10.0.0.1", Some(Reach::OwnNetwork)),
            ("2002:0a00:1::", Some(Reach::OwnNetwork)),
            ("172.32.0.1", Some(Reach::Anybody)),
            ("100.128.0.1", Some(Reach::Anybody)),
            ("192.0.2.1", Some(Reach::Anybody)),
            ("2001:db8::1", Some(Reach::Anybody)),
            ("64:ff9b::c000:201", Some(Reach::Anybody)),
            ("224.0.0.1", None),
            ("255.255.255.255", None),
            ("ff02::1", None),
        ];
        for (ip, reach) in all {
            assert_eq!(Reach::of(ip.parse().expect("an address")), reach, "{ip}");
        }
        let addresses = all.map(|(ip, _)| SocketAddr::new(ip.parse().expect("an address"), 443));
        for from in [Reach::ThisHost, Reach::OwnNetwork, Reach::Anybody] {
            let mut kept = addresses.to_vec();
            from.keep(&mut kept);
            let expected = all.iter().filter(|(_, reach)| *reach >= Some(from));
            assert_eq!(kept.len(), expected.count(), "{from:?}");
        }
    }
}
