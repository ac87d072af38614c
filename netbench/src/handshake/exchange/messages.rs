//! Handshake messages by name (RFC 8446 §4).

use bytes::{Bytes, BytesMut};
use hybriq::tls::Side;
use hybriq_tls::Level;

use crate::system::failure::Failure;

const HEADER_LEN: usize = 4;
/// Beginning of the random in a ServerHello that is a HelloRetryRequest (RFC 8446 §4.1.3).
const RETRY_RANDOM: [u8; 8] = [0xcf, 0x21, 0xad, 0x74, 0xe5, 0x9a, 0x61, 0x11];

/// A whole message, header included.
#[derive(Clone, Debug)]
pub(crate) struct Message {
    pub(crate) kind: Kind,
    pub(crate) level: Level,
    pub(crate) bytes: Bytes,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    ClientHello,
    ServerHello,
    HelloRetryRequest,
    NewSessionTicket,
    EncryptedExtensions,
    Certificate,
    CertificateRequest,
    CertificateVerify,
    Finished,
    Other(u8),
}

impl Kind {
    fn of(message: &[u8]) -> Option<Self> {
        Some(match message.first()? {
            1 => Self::ClientHello,
            2 if message.get(6..14) == Some(&RETRY_RANDOM) => Self::HelloRetryRequest,
            2 => Self::ServerHello,
            4 => Self::NewSessionTicket,
            8 => Self::EncryptedExtensions,
            11 => Self::Certificate,
            13 => Self::CertificateRequest,
            15 => Self::CertificateVerify,
            20 => Self::Finished,
            other => Self::Other(*other),
        })
    }

    /// Returns the message type on the wire.
    pub(crate) const fn code(self) -> u8 {
        match self {
            Self::ClientHello => 1,
            Self::ServerHello | Self::HelloRetryRequest => 2,
            Self::NewSessionTicket => 4,
            Self::EncryptedExtensions => 8,
            Self::Certificate => 11,
            Self::CertificateRequest => 13,
            Self::CertificateVerify => 15,
            Self::Finished => 20,
            Self::Other(code) => code,
        }
    }

    /// Returns the row of the message in the tables of one side. The rows of messages that both
    /// sides send name the direction.
    pub(crate) fn name(self, side: Side, direction: Direction) -> String {
        let from_client = side.is_server() == (direction == Direction::Received);
        let direction = match direction {
            Direction::Received => "received",
            Direction::Sent => "sent",
        };
        match self {
            Self::ClientHello => "ClientHello".to_owned(),
            Self::ServerHello => "ServerHello".to_owned(),
            Self::HelloRetryRequest => "HelloRetryRequest".to_owned(),
            Self::NewSessionTicket => "NewSessionTicket".to_owned(),
            Self::EncryptedExtensions => "EncryptedExtensions".to_owned(),
            Self::CertificateRequest => "CertificateRequest".to_owned(),
            Self::Certificate if from_client => format!("Certificate {direction}"),
            Self::Certificate => "Certificate".to_owned(),
            Self::CertificateVerify if from_client => format!("CertificateVerify {direction}"),
            Self::CertificateVerify => "CertificateVerify".to_owned(),
            Self::Finished => format!("Finished {direction}"),
            Self::Other(code) => format!("message {code}"),
        }
    }
}

/// Direction of a message, seen from one side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Direction {
    /// The side handles the message.
    Received,
    /// The side makes the message.
    Sent,
}

/// Takes whole messages off the front.
pub(crate) fn split(
    level: Level,
    bytes: &mut BytesMut,
    messages: &mut Vec<Message>,
) -> Result<(), Failure> {
    while let Some(&[_, high, middle, low]) = bytes.first_chunk::<HEADER_LEN>() {
        let len = HEADER_LEN + u32::from_be_bytes([0, high, middle, low]) as usize;
        if bytes.len() < len {
            return Err("a session made half a handshake message".into());
        }
        let bytes = bytes.split_to(len).freeze();
        let kind = Kind::of(&bytes).ok_or("an empty handshake message")?;
        messages.push(Message { kind, level, bytes });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use bytes::BytesMut;
    use hybriq::tls::Side;
    use hybriq_tls::Level;

    use super::{Direction, Kind, split};

    #[test]
    fn a_flight_is_split_where_its_messages_end() {
        let mut bytes = BytesMut::from(&[8, 0, 0, 2, 0, 0, 20, 0, 0, 0][..]);
        let mut messages = Vec::new();
        split(Level::Handshake, &mut bytes, &mut messages).unwrap();
        let kinds: Vec<_> = messages
            .iter()
            .map(|it| (it.kind, it.bytes.len()))
            .collect();
        assert_eq!(kinds, [(Kind::EncryptedExtensions, 6), (Kind::Finished, 4)]);
        let mut half = BytesMut::from(&[8, 0, 0, 2, 0][..]);
        assert!(split(Level::Handshake, &mut half, &mut messages).is_err());
    }

    #[test]
    fn what_both_sides_send_is_told_apart() {
        assert_eq!(
            Kind::Finished.name(Side::Client, Direction::Received),
            "Finished received"
        );
        assert_eq!(
            Kind::Finished.name(Side::Server, Direction::Received),
            "Finished received"
        );
        assert_eq!(
            Kind::Certificate.name(Side::Client, Direction::Received),
            "Certificate"
        );
        assert_eq!(
            Kind::Certificate.name(Side::Server, Direction::Sent),
            "Certificate"
        );
        assert_eq!(
            Kind::Certificate.name(Side::Client, Direction::Sent),
            "Certificate sent"
        );
        assert_eq!(
            Kind::Certificate.name(Side::Server, Direction::Received),
            "Certificate received"
        );
    }

    #[test]
    fn a_hello_retry_request_is_told_from_a_server_hello() {
        let mut hello = vec![2, 0, 0, 34, 3, 3];
        hello.extend([0xcf, 0x21, 0xad, 0x74, 0xe5, 0x9a, 0x61, 0x11]);
        hello.resize(38, 0);
        assert_eq!(Kind::of(&hello), Some(Kind::HelloRetryRequest));
        hello[6] = 0;
        assert_eq!(Kind::of(&hello), Some(Kind::ServerHello));
    }
}
