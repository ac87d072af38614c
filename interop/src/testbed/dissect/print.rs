//! Datagrams in words.

use std::fmt;

use super::{Datagram, Frame, Kind, Packet};

impl fmt::Display for Datagram {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} B", self.len)?;
        for packet in &self.packets {
            write!(f, " · {packet}")?;
        }
        Ok(())
    }
}

impl fmt::Display for Packet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.kind {
            Kind::Initial => "Initial",
            Kind::ZeroRtt => "0-RTT",
            Kind::Handshake => "Handshake",
            Kind::Retry => "Retry",
            Kind::OneRtt => "1-RTT",
            Kind::VersionNegotiation => "Version Negotiation",
        })?;
        if self.kind == Kind::Initial && !self.token.is_empty() {
            f.write_str(" with token")?;
        }
        let Some(opened) = &self.opened else {
            let has_contents = !matches!(self.kind, Kind::Retry | Kind::VersionNegotiation);
            return if has_contents {
                f.write_str(" (not decrypted)")
            } else {
                Ok(())
            };
        };
        write!(f, " {}", opened.number)?;
        for (at, frame) in opened.frames.iter().enumerate() {
            f.write_str(if at == 0 { ": " } else { ", " })?;
            write!(f, "{frame}")?;
        }
        Ok(())
    }
}

impl fmt::Display for Frame {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Padding => f.write_str("PADDING"),
            Self::Ping => f.write_str("PING"),
            Self::Ack { with_ecn: false } => f.write_str("ACK"),
            Self::Ack { with_ecn: true } => f.write_str("ACK_ECN"),
            Self::Crypto { offset, data } => {
                write!(f, "CRYPTO {offset}–{}", offset + data.len() as u64)
            }
            Self::Stream {
                id,
                offset,
                len,
                fin,
                uni: _,
            } => {
                let end = if *fin { " FIN" } else { "" };
                write!(f, "STREAM {id} {offset}–{}{end}", offset + *len as u64)
            }
            Self::PathChallenge(_) => f.write_str("PATH_CHALLENGE"),
            Self::PathResponse(_) => f.write_str("PATH_RESPONSE"),
            Self::NewConnectionId(_) => f.write_str("NEW_CONNECTION_ID"),
            Self::Close { code } => write!(f, "CONNECTION_CLOSE {code:#x}"),
            Self::HandshakeDone => f.write_str("HANDSHAKE_DONE"),
            Self::Other(kind) => write!(f, "frame {kind:#x}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testbed::dissect::Opened;

    #[test]
    fn a_packet_is_told_in_words() {
        let mut packet = Packet {
            kind: Kind::Initial,
            version: Some(1),
            connection: None,
            to_id: Vec::new(),
            from_id: Vec::new(),
            token: vec![1],
            opened: Some(Opened {
                number: 7,
                phase: false,
                len: 100,
                frames: vec![
                    Frame::Ack { with_ecn: false },
                    Frame::Crypto {
                        offset: 10,
                        data: vec![0; 5],
                    },
                    Frame::Close { code: 0x128 },
                ],
            }),
        };
        assert_eq!(
            packet.to_string(),
            "Initial with token 7: ACK, CRYPTO 10–15, CONNECTION_CLOSE 0x128"
        );
        packet.opened = None;
        assert_eq!(packet.to_string(), "Initial with token (not decrypted)");
        packet.kind = Kind::Retry;
        assert_eq!(packet.to_string(), "Retry");
    }
}
