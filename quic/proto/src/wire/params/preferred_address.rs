//! The transport parameter `preferred_address` (RFC 9000 §18.2).

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddrV4, SocketAddrV6};

use super::{Rule, cid};
use crate::wire::{Reader, ResetToken, error::Violation, limits, packet::Cid};

const NO_V4: SocketAddrV4 = SocketAddrV4::new(Ipv4Addr::UNSPECIFIED, 0);
const NO_V6: SocketAddrV6 = SocketAddrV6::new(Ipv6Addr::UNSPECIFIED, 0, 0, 0);

/// Preferred address of a server (RFC 9000 §9.6).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PreferredAddress {
    /// Address for clients that use IPv4.
    pub v4: Option<SocketAddrV4>,
    /// Address for clients that use IPv6.
    pub v6: Option<SocketAddrV6>,
    /// The connection id with sequence number 1.
    pub cid: Cid,
    /// Stateless reset token of that id.
    pub reset_token: ResetToken,
}

impl PreferredAddress {
    /// Reads a preferred address. An address whose bytes and port are all zero is absent.
    pub(super) fn decode(value: &[u8]) -> Result<Self, Rule> {
        let mut reader = Reader::new(value);
        let v4 = SocketAddrV4::new(Ipv4Addr::from(reader.array::<4>()?), port(&mut reader)?);
        let v6 = Ipv6Addr::from(reader.array::<16>()?);
        let v6 = SocketAddrV6::new(v6, port(&mut reader)?, 0, 0);
        let len = usize::from(reader.u8()?);
        let cid = cid(reader.bytes(len)?)?;
        if cid.is_empty() {
            return Err(Rule(Violation::PreferredAddressWithoutCid));
        }
        let reset_token = ResetToken::new(reader.array()?);
        if !reader.is_empty() {
            return Err(Rule(Violation::ParameterTooLong));
        }
        Ok(Self {
            v4: Some(v4).filter(|v4| *v4 != NO_V4),
            v6: Some(v6).filter(|v6| *v6 != NO_V6),
            cid,
            reset_token,
        })
    }

    pub(super) fn encode(&self) -> Vec<u8> {
        let (v4, v6) = (self.v4.unwrap_or(NO_V4), self.v6.unwrap_or(NO_V6));
        let mut out = Vec::with_capacity(4 + 2 + 16 + 2 + 1 + limits::MAX_CID_LEN + 16);
        out.extend_from_slice(&v4.ip().octets());
        out.extend_from_slice(&v4.port().to_be_bytes());
        out.extend_from_slice(&v6.ip().octets());
        out.extend_from_slice(&v6.port().to_be_bytes());
        out.push(self.cid.len() as u8);
        out.extend_from_slice(self.cid.as_bytes());
        out.extend_from_slice(self.reset_token.as_bytes());
        out
    }
}

fn port(reader: &mut Reader<'_>) -> Result<u16, Rule> {
    Ok(u16::from_be_bytes(reader.array()?))
}
