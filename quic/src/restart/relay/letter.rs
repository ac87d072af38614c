//! Record of a forwarded datagram: its addresses, its mark, and the reason for forwarding it.

#[cfg(any(target_os = "linux", target_os = "android"))]
use std::net::{IpAddr, Ipv6Addr, SocketAddr, SocketAddrV6};

use hybriq_proto::endpoint::Arrival;
#[cfg(any(target_os = "linux", target_os = "android"))]
use hybriq_proto::{
    endpoint::{Local, SocketId},
    owners::acks::Ecn,
};

/// Reason why a datagram is passed on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reason {
    /// The datagram has an id of this worker.
    Id,
    /// The datagram may be a stateless reset, for any of the workers.
    Stray,
}

/// Description of forwarded datagrams of one size, which follow it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Letter {
    pub(crate) arrival: Arrival,
    pub(crate) reason: Reason,
    /// Size of each datagram in bytes, not 0. The last one may be shorter.
    pub(crate) stride: u16,
}

#[cfg(any(target_os = "linux", target_os = "android"))]
impl Letter {
    /// Length in bytes.
    pub(super) const LEN: usize = 48;

    /// Writes the description.
    pub(super) fn to_bytes(self) -> [u8; Self::LEN] {
        let mut bytes = [0; Self::LEN];
        let Local { socket, ip } = self.arrival.local;
        let peer = self.arrival.peer;
        let (scope, flow) = match peer {
            SocketAddr::V4(_) => (0, 0),
            SocketAddr::V6(v6) => (v6.scope_id(), v6.flowinfo()),
        };
        let local = ip.map_or(Ipv6Addr::UNSPECIFIED, mapped);
        let fields: [&[u8]; 8] = [
            &[
                match self.reason {
                    Reason::Id => 0,
                    Reason::Stray => 1,
                },
                self.arrival.ecn.map_or(0, |ecn| match ecn {
                    Ecn::Ect0 => 1,
                    Ecn::Ect1 => 2,
                    Ecn::Ce => 3,
                }),
                socket.0,
                u8::from(ip.is_some()),
            ],
            &local.octets(),
            &mapped(peer.ip()).octets(),
            &peer.port().to_be_bytes(),
            &self.stride.to_be_bytes(),
            &scope.to_be_bytes(),
            &flow.to_be_bytes(),
            &[],
        ];
        let fields = fields.iter().flat_map(|field| field.iter());
        for (to, from) in bytes.iter_mut().zip(fields) {
            *to = *from;
        }
        bytes
    }

    /// Reads a description and the datagrams behind it. Returns `None` if the message is not one.
    pub(super) fn read(message: &mut [u8]) -> Option<(Self, &mut [u8])> {
        let (head, datagrams) = message.split_first_chunk_mut::<{ Self::LEN }>()?;
        let [reason, ecn, socket, has_ip, rest @ ..] = *head;
        let (local, rest) = rest.split_first_chunk::<16>()?;
        let (peer, rest) = rest.split_first_chunk::<16>()?;
        let (port, rest) = rest.split_first_chunk::<2>()?;
        let (stride, rest) = rest.split_first_chunk::<2>()?;
        let (scope, rest) = rest.split_first_chunk::<4>()?;
        let flow = rest.first_chunk::<4>()?;
        let peer = SocketAddrV6::new(
            Ipv6Addr::from(*peer),
            u16::from_be_bytes(*port),
            u32::from_be_bytes(*flow),
            u32::from_be_bytes(*scope),
        );
        let letter = Self {
            arrival: Arrival {
                peer: hybriq_proto::wire::udp::canonical(peer.into()),
                local: Local {
                    socket: SocketId(socket),
                    ip: (has_ip == 1).then(|| Ipv6Addr::from(*local).to_canonical()),
                },
                ecn: match ecn {
                    0 => None,
                    1 => Some(Ecn::Ect0),
                    2 => Some(Ecn::Ect1),
                    _ => Some(Ecn::Ce),
                },
            },
            reason: match reason {
                0 => Reason::Id,
                _ => Reason::Stray,
            },
            stride: u16::from_be_bytes(*stride),
        };
        (letter.stride > 0).then_some((letter, datagrams))
    }
}

#[cfg(any(target_os = "linux", target_os = "android"))]
fn mapped(ip: IpAddr) -> Ipv6Addr {
    match ip {
        IpAddr::V4(ip) => ip.to_ipv6_mapped(),
        IpAddr::V6(ip) => ip,
    }
}
