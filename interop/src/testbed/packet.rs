//! IP packets with UDP inside.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use super::hosts::PORTS;
use crate::runner::Role;

const UDP: u8 = 17;
const TCP: u8 = 6;
/// Bytes of a UDP header.
const UDP_HEADER: usize = 8;

/// A UDP datagram in its IP packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Udp {
    pub(super) source: SocketAddr,
    pub(super) destination: SocketAddr,
    /// ECN field of the IP header (RFC 3168): 0 to 3.
    pub(super) ecn: u8,
    /// Position of the UDP header.
    at: usize,
    /// End of the datagram.
    end: usize,
}

impl Udp {
    /// Finds the datagram of an IP packet. Returns `None` for everything else, and fragments.
    pub(super) fn find(packet: &[u8]) -> Option<Self> {
        let (source, destination, ecn, at) = match packet.first()? >> 4 {
            4 => {
                let header: &[u8; 20] = packet.first_chunk()?;
                let is_fragment = u16::from_be_bytes([header[6], header[7]]) & 0x3fff != 0;
                if header[9] != UDP || is_fragment {
                    return None;
                }
                let ip = |at: usize| -> Option<IpAddr> {
                    let octets: [u8; 4] = header.get(at..at + 4)?.try_into().ok()?;
                    Some(Ipv4Addr::from(octets).into())
                };
                let len = usize::from(header[0] & 0x0f) * 4;
                (ip(12)?, ip(16)?, header[1] & 3, len)
            }
            6 => {
                let header: &[u8; 40] = packet.first_chunk()?;
                if header[6] != UDP {
                    return None;
                }
                let ip = |at: usize| -> Option<IpAddr> {
                    let octets: [u8; 16] = header.get(at..at + 16)?.try_into().ok()?;
                    Some(Ipv6Addr::from(octets).into())
                };
                (ip(8)?, ip(24)?, header[1] >> 4 & 3, 40)
            }
            _ => return None,
        };
        let header: &[u8; UDP_HEADER] = packet.get(at..)?.first_chunk()?;
        let word = |at: usize| u16::from_be_bytes([header[at], header[at + 1]]);
        let end = at + usize::from(word(4));
        packet.get(at + UDP_HEADER..end)?;
        Some(Self {
            source: (source, word(0)).into(),
            destination: (destination, word(2)).into(),
            ecn,
            at,
            end,
        })
    }

    /// Returns true if it goes to the server or comes from it. Browsers also ask for names and times.
    pub(super) fn is_of_server(&self, from: Role) -> bool {
        PORTS.contains(&match from {
            Role::Client => self.destination.port(),
            Role::Server => self.source.port(),
        })
    }

    /// Returns the payload.
    pub(super) fn payload<'a>(&self, packet: &'a [u8]) -> &'a [u8] {
        packet
            .get(self.at + UDP_HEADER..self.end)
            .unwrap_or_default()
    }

    pub(super) fn payload_mut<'a>(&self, packet: &'a mut [u8]) -> &'a mut [u8] {
        let payload = packet.get_mut(self.at + UDP_HEADER..self.end);
        payload.unwrap_or_default()
    }
}

/// Returns true for a packet of TCP.
pub(super) fn is_tcp(packet: &[u8]) -> bool {
    match packet.first().map(|byte| byte >> 4) {
        Some(4) => packet.get(9) == Some(&TCP),
        Some(6) => packet.get(6) == Some(&TCP),
        _ => false,
    }
}

/// Cuts the payload to this many bytes.
pub(super) fn truncate(packet: &mut Vec<u8>, udp: &Udp, len: usize) {
    let end = udp.at + UDP_HEADER + len;
    if end >= udp.end {
        return;
    }
    packet.truncate(end);
    let (len_at, len) = match udp.source {
        SocketAddr::V4(_) => (2, end),
        SocketAddr::V6(_) => (4, end - udp.at),
    };
    put(packet, len_at, &(len as u16).to_be_bytes());
    put(packet, udp.at + 4, &((end - udp.at) as u16).to_be_bytes());
    set_checksums(packet, &Udp { end, ..*udp });
}

/// Replaces the address from which a datagram comes.
pub(super) fn set_source(packet: &mut [u8], udp: &Udp, source: SocketAddr) {
    set_address(packet, udp, source, Place::Source);
}

/// Replaces the address to which a datagram goes.
pub(super) fn set_destination(packet: &mut [u8], udp: &Udp, destination: SocketAddr) {
    set_address(packet, udp, destination, Place::Destination);
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    Source,
    Destination,
}

fn set_address(packet: &mut [u8], udp: &Udp, address: SocketAddr, place: Place) {
    let (ip_at, octets) = match (address.ip(), place) {
        (IpAddr::V4(ip), Place::Source) => (12, ip.octets().to_vec()),
        (IpAddr::V4(ip), Place::Destination) => (16, ip.octets().to_vec()),
        (IpAddr::V6(ip), Place::Source) => (8, ip.octets().to_vec()),
        (IpAddr::V6(ip), Place::Destination) => (24, ip.octets().to_vec()),
    };
    let port_at = udp.at + if place == Place::Source { 0 } else { 2 };
    put(packet, ip_at, &octets);
    put(packet, port_at, &address.port().to_be_bytes());
    set_checksums(packet, udp);
}

/// Gives a packet the CE mark.
pub(super) fn mark(packet: &mut [u8], udp: &Udp) {
    let (at, bits) = if udp.source.is_ipv4() {
        (1, 0x03)
    } else {
        (1, 0x30)
    };
    if let Some(byte) = packet.get_mut(at) {
        *byte |= bits;
    }
    set_checksums(packet, udp);
}

fn put(packet: &mut [u8], at: usize, bytes: &[u8]) {
    if let Some(place) = packet.get_mut(at..at + bytes.len()) {
        place.copy_from_slice(bytes);
    }
}

/// Writes the checksums of a changed packet (RFC 791, RFC 768, RFC 8200 §8.1).
pub(super) fn set_checksums(packet: &mut [u8], udp: &Udp) {
    let len = (udp.end - udp.at) as u16;
    let addresses = if udp.source.is_ipv4() {
        put(packet, 10, &[0, 0]);
        let header = checksum([packet.get(..udp.at).unwrap_or_default()]);
        put(packet, 10, &header.to_be_bytes());
        12..20
    } else {
        8..40
    };
    put(packet, udp.at + 6, &[0, 0]);
    let pseudo = [0, UDP, (len >> 8) as u8, len as u8];
    let sum = checksum([
        packet.get(addresses).unwrap_or_default(),
        &pseudo,
        packet.get(udp.at..udp.end).unwrap_or_default(),
    ]);
    // 0 would mean that there is none.
    let sum = if sum == 0 { 0xffff } else { sum };
    put(packet, udp.at + 6, &sum.to_be_bytes());
}

/// Returns the checksum of the Internet (RFC 1071) over parts, of which only the last may be odd.
fn checksum<const N: usize>(parts: [&[u8]; N]) -> u16 {
    let words = parts.into_iter().flat_map(|part| part.chunks(2));
    let sum: u32 = words
        .map(|word| u32::from(word[0]) << 8 | word.get(1).map_or(0, |&byte| byte.into()))
        .sum();
    let folded = (sum & 0xffff) + (sum >> 16);
    !((folded & 0xffff) + (folded >> 16)) as u16
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A packet of `ping`'s kind: 10.0.0.1:1000 to 10.0.0.2:2000 with "hello", ECT(0).
    fn packet_v4() -> Vec<u8> {
        let mut packet = vec![0x45, 2, 0, 33, 0, 1, 0, 0, 64, UDP, 0, 0];
        packet.extend([10, 0, 0, 1, 10, 0, 0, 2]);
        packet.extend([0x03, 0xe8, 0x07, 0xd0, 0, 13, 0, 0]);
        packet.extend(b"hello");
        packet
    }

    #[test]
    fn a_datagram_is_found() {
        let packet = packet_v4();
        let udp = Udp::find(&packet).expect("a datagram");
        assert_eq!(udp.source, "10.0.0.1:1000".parse().expect("an address"));
        assert_eq!(
            udp.destination,
            "10.0.0.2:2000".parse().expect("an address")
        );
        assert_eq!((udp.ecn, udp.payload(&packet)), (2, &b"hello"[..]));
        for len in 0..packet.len() {
            assert_eq!(Udp::find(&packet[..len]), None, "{len} bytes");
        }
    }

    #[test]
    fn the_servers_datagrams_are_known_by_its_ports() {
        let mut packet = packet_v4();
        let udp = Udp::find(&packet).expect("a datagram");
        for port in PORTS {
            let server = ([10, 0, 0, 2], port).into();
            set_destination(&mut packet, &udp, server);
            let udp = Udp::find(&packet).expect("a datagram");
            assert!(udp.is_of_server(Role::Client));
            assert!(!udp.is_of_server(Role::Server));
        }
        assert!(!udp.is_of_server(Role::Client), "to port 2000");
    }

    #[test]
    fn a_shorter_datagram_has_right_lengths() {
        let mut packet = packet_v4();
        let udp = Udp::find(&packet).expect("a datagram");
        truncate(&mut packet, &udp, 2);
        let cut = Udp::find(&packet).expect("a datagram");
        assert_eq!(cut.payload(&packet), b"he");
        assert_eq!((packet.len(), packet[3]), (30, 30));
        assert_eq!(checksum([&packet[..20]]), 0);
        let pseudo = [0, UDP, 0, 10];
        assert_eq!(checksum([&packet[12..20], &pseudo, &packet[20..]]), 0);
        truncate(&mut packet, &cut, 9);
        assert_eq!(packet.len(), 30);
    }

    /// A header with a right checksum sums up to nothing.
    #[test]
    fn addresses_are_replaced_with_their_checksums() {
        let mut packet = packet_v4();
        let udp = Udp::find(&packet).expect("a datagram");
        let source = "10.9.9.9:5".parse().expect("an address");
        set_source(&mut packet, &udp, source);
        let changed = Udp::find(&packet).expect("a datagram");
        assert_eq!(changed.source, source);
        assert_eq!(changed.destination, udp.destination);
        assert_eq!(checksum([&packet[..20]]), 0);
        let pseudo = [0, UDP, 0, 13];
        assert_eq!(checksum([&packet[12..20], &pseudo, &packet[20..]]), 0);
        mark(&mut packet, &changed);
        assert_eq!(Udp::find(&packet).map(|udp| udp.ecn), Some(3));
        assert_eq!(checksum([&packet[..20]]), 0);
    }
}
