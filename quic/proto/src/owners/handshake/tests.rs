//! The bound of a CRYPTO stream, byte by byte, and the outcomes that a provider may report.

use bytes::BytesMut;
use hybriq_tls::{
    CertificateDer, Error, Flight, Group, KeyExchange, Lineage, Negotiated, PerLevel, Session,
    Side, Status,
};

use super::{Failure, Handshake, Terms, crypto::stream::CryptoStream};
use crate::wire::{
    error::{Code, Violation},
    frame::Crypto,
    limits,
    packet::{Cid, Version, initial_keys},
};

impl super::Keys {
    /// Pretends that the 0-RTT keys may seal this many packets.
    pub(crate) fn leave_zero_rtt(&mut self, packets: u64) {
        if let Some(zero_rtt) = &mut self.zero_rtt {
            zero_rtt.left = packets;
        }
    }
}

fn receive(stream: &mut CryptoStream, offset: usize, len: usize) -> Result<(), Code> {
    let frame = Crypto {
        offset: offset as u64,
        data: &vec![0; len],
    };
    stream.receive(&frame).map_err(Violation::code)
}

/// Proves: rfc9000 7.5 crypto-overflow-closes
#[test]
fn a_crypto_stream_holds_its_bound_and_not_a_byte_more() {
    let mut stream = CryptoStream::default();
    assert_eq!(receive(&mut stream, limits::CRYPTO_BUFFER - 1, 1), Ok(()));
    let exceeded = receive(&mut stream, limits::CRYPTO_BUFFER, 1);
    assert_eq!(exceeded, Err(Code::CRYPTO_BUFFER_EXCEEDED));
}

#[test]
fn what_tls_has_not_consumed_counts_against_the_bound() {
    let mut stream = CryptoStream::default();
    assert_eq!(receive(&mut stream, 0, 1000), Ok(()));
    let input = stream.take_input();
    assert_eq!(input.len(), 1000);
    stream.put_back(input);
    let exceeded = receive(&mut stream, limits::CRYPTO_BUFFER, 1);
    assert_eq!(exceeded, Err(Code::CRYPTO_BUFFER_EXCEEDED));

    let mut input = stream.take_input();
    bytes::Buf::advance(&mut input, 1000);
    stream.put_back(input);
    assert_eq!(receive(&mut stream, limits::CRYPTO_BUFFER, 1), Ok(()));
}

/// Proves: rfc9000 7.5 crypto-out-of-order-is-buffered
#[test]
fn the_bound_leaves_room_for_what_rfc_9000_demands() {
    const { assert!(limits::CRYPTO_BUFFER >= 4096 && limits::CRYPTO_BUFFER <= 64 * 1024) };
    const { assert!(limits::PARTIAL_HELLO_BYTES >= 4096) };
    const { assert!(limits::PARTIAL_HELLO_BYTES <= 16 * 1024) };
}

/// A provider's session that is complete at once.
struct Complete(Negotiated);

impl Session for Complete {
    fn drive(&mut self, _: &mut PerLevel<BytesMut>, _: &mut Flight) -> Result<Status, Error> {
        Ok(Status::Complete)
    }

    fn peer_params(&self) -> Option<&[u8]> {
        None
    }

    fn negotiated(&self) -> Negotiated {
        self.0.clone()
    }

    fn peer_certificates(&self) -> Vec<CertificateDer<'static>> {
        Vec::new()
    }
}

/// Returns true if a handshake with this outcome satisfies a policy.
fn stands(policy: &KeyExchange, resumed: bool, lineage: Option<Lineage>) -> bool {
    let mut negotiated = Negotiated::default();
    negotiated.group = Some(Group::X25519MLKEM768);
    (negotiated.resumed, negotiated.lineage) = (resumed, lineage);
    let keys = initial_keys(Version::V1, &Cid::from([1; 8]), Side::Client);
    let session = Box::new(Complete(negotiated));
    let terms = Terms {
        policy: policy.clone(),
        ..Terms::default()
    };
    let mut handshake = Handshake::new(Side::Client, session, terms, Version::V1, keys);
    match handshake.drive() {
        Ok(progress) => progress.completed,
        Err(Failure::KeyExchange(_)) => false,
        Err(Failure::Transport(error)) => panic!("{error}"),
    }
}

#[test]
fn a_resumed_session_that_is_not_known_to_be_post_quantum_falls_where_that_is_required() {
    let lineages = [None, Some(Lineage::Classical), Some(Lineage::PostQuantum)];
    for lineage in lineages {
        for resumed in [false, true] {
            let known = !resumed || lineage == Some(Lineage::PostQuantum);
            assert!(stands(&KeyExchange::PreferPostQuantum, resumed, lineage));
            let required = stands(&KeyExchange::RequirePostQuantum, resumed, lineage);
            assert_eq!(required, known, "{lineage:?}, resumed: {resumed}");
        }
    }
}
