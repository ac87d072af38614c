//! A witness of the certificates that a server sends: it reads the handshake in the frames of its
//! packets.

use std::{
    collections::BTreeMap,
    net::SocketAddr,
    sync::{Arc, Mutex},
};

use hybriq::{
    events::{Event, Meta, PacketKind, Sampler, Subscriber},
    tls::CertificateCompression,
};
use hybriq_proto::wire::frame::{Frame, FrameReader};

/// Types of messages (RFC 8446 §4, RFC 8879 §4).
const CERTIFICATE: u8 = 11;
const COMPRESSED_CERTIFICATE: u8 = 25;

/// The message with a server's certificates, as it left: its bytes, those that it stands for, and how
/// they were compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Sent {
    pub(super) len: usize,
    pub(super) uncompressed: usize,
    pub(super) compression: Option<CertificateCompression>,
}

/// Handshakes of a server's connections.
#[derive(Default)]
pub(super) struct Certificates(Mutex<Vec<Arc<Messages>>>);

/// Bytes that one connection sent at the handshake level, by their offset.
#[derive(Default)]
struct Messages(Mutex<BTreeMap<u64, Vec<u8>>>);

impl Sampler for Certificates {
    fn sample(&self, _: &Meta, _: SocketAddr) -> Option<Arc<dyn Subscriber>> {
        let messages = Arc::new(Messages::default());
        self.0.lock().unwrap().push(messages.clone());
        Some(messages)
    }
}

impl Subscriber for Messages {
    fn on_event(&self, _: &Meta, event: &Event<'_>) {
        let Event::PacketSent(packet) = event else {
            return;
        };
        if packet.kind != PacketKind::Handshake {
            return;
        }
        for (frame, _) in FrameReader::new(packet.frames.payload()) {
            if let Frame::Crypto(crypto) = frame {
                let mut sent = self.0.lock().unwrap();
                sent.insert(crypto.offset, crypto.data.to_vec());
            }
        }
    }
}

impl Certificates {
    /// Returns the message of each connection that sent one.
    pub(super) fn messages(&self) -> Vec<Sent> {
        let connections = self.0.lock().unwrap();
        let sent = connections.iter();
        sent.filter_map(|messages| messages.certificate()).collect()
    }
}

impl Messages {
    /// Returns the message with the certificates.
    fn certificate(&self) -> Option<Sent> {
        let mut stream = Vec::new();
        for (offset, data) in &*self.0.lock().unwrap() {
            let known = stream.len().checked_sub(usize::try_from(*offset).ok()?)?;
            stream.extend_from_slice(data.get(known..).unwrap_or_default());
        }
        let mut rest = &stream[..];
        loop {
            let (header, after) = rest.split_first_chunk::<4>()?;
            let [kind, len @ ..] = header;
            let (body, others) = after.split_at_checked(number(*len))?;
            let len = header.len() + body.len();
            match (*kind, body) {
                (CERTIFICATE, _) => {
                    return Some(Sent {
                        len,
                        uncompressed: len,
                        compression: None,
                    });
                }
                (COMPRESSED_CERTIFICATE, [high, low, expanded @ ..]) => {
                    let algorithm = u16::from_be_bytes([*high, *low]);
                    return Some(Sent {
                        len,
                        uncompressed: header.len() + number(*expanded.first_chunk::<3>()?),
                        compression: CertificateCompression::from_iana(algorithm),
                    });
                }
                _ => rest = others,
            }
        }
    }
}

fn number(bytes: [u8; 3]) -> usize {
    let bytes = bytes.into_iter();
    bytes.fold(0, |value, byte| value << 8 | usize::from(byte))
}
