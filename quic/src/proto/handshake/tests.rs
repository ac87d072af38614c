//! The bound of a CRYPTO stream, byte by byte.

use super::crypto_stream::CryptoStream;
use crate::proto::{error::Code, frame::Crypto, limits};

fn receive(stream: &mut CryptoStream, offset: usize, len: usize) -> Result<(), Code> {
    let frame = Crypto {
        offset: offset as u64,
        data: &vec![0; len],
    };
    stream.receive(&frame).map_err(|error| error.code)
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
