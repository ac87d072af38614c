use super::*;

/// A ticket `ABC` with a nonce of two bytes and no extensions.
const MESSAGE: [u8; 22] = [
    4, 0, 0, 18, 0, 0, 0x1c, 0x20, 1, 2, 3, 4, 2, 9, 9, 0, 3, b'A', b'B', b'C', 0, 0,
];

#[test]
fn the_ticket_is_found() {
    assert_eq!(issued_ticket(&MESSAGE), Some(b"ABC".as_slice()));
    let mut newer = MESSAGE;
    newer[17..20].copy_from_slice(b"DEF");
    let two = [MESSAGE, newer].concat();
    assert_eq!(issued_ticket(&two), Some(b"DEF".as_slice()));
    assert_eq!(issued_ticket(&two[..43]), Some(b"ABC".as_slice()));
}

#[test]
fn other_messages_have_none() {
    let mut other = MESSAGE.to_vec();
    other[0] = 8;
    assert_eq!(issued_ticket(&other), None);
    let mut empty = MESSAGE.to_vec();
    empty[16] = 0;
    assert_eq!(issued_ticket(&empty), None);
}

#[test]
fn no_prefix_and_no_wrong_length_is_read_beyond() {
    for len in 0..MESSAGE.len() {
        assert_eq!(issued_ticket(&MESSAGE[..len]), None, "{len} bytes");
    }
    for at in 0..MESSAGE.len() {
        let mut wrong = MESSAGE;
        wrong[at] = 0xff;
        let found = issued_ticket(&wrong);
        assert!(found.is_none_or(|ticket| ticket.len() == 3), "byte {at}");
    }
}

/// `MESSAGE` with these extensions.
fn with_extensions(extensions: &[u8]) -> Vec<u8> {
    let mut message = MESSAGE.to_vec();
    message[3] += u8::try_from(extensions.len()).expect("short");
    message[21] = u8::try_from(extensions.len()).expect("short");
    message.extend(extensions);
    message
}

/// Proves: rfc9001 4.6.1 early-data-size-is-fixed
#[test]
fn early_data_is_unlimited_or_the_ticket_is_a_violation() {
    let other = [0, 99, 0, 1, 7];
    let sized = |size: u32| {
        let early = [&[0, 42, 0, 4][..], &size.to_be_bytes()].concat();
        with_extensions(&[&other[..], &early].concat())
    };
    assert_eq!(check(&MESSAGE), Ok(()));
    assert_eq!(check(&with_extensions(&other)), Ok(()));
    assert_eq!(check(&sized(u32::MAX)), Ok(()));
    for size in [0, 1, 16_384, u32::MAX - 1] {
        assert_eq!(check(&sized(size)).expect_err("a violation").code(), 0x0a);
    }
    let whole = sized(7);
    for len in 0..whole.len() {
        assert_eq!(check(&whole[..len]), Ok(()), "{len} bytes");
    }
}

#[test]
fn whole_messages_are_skipped_and_half_ones_wait() {
    let mut bytes = BytesMut::from(&[MESSAGE, MESSAGE].concat()[..]);
    let last = bytes.split_off(bytes.len() - 1);
    assert_eq!(skip_tickets(&mut bytes), Ok(()));
    assert_eq!(bytes.len(), MESSAGE.len() - 1);
    bytes.unsplit(last);
    assert_eq!(skip_tickets(&mut bytes), Ok(()));
    assert!(bytes.is_empty());
    for (message, code) in [
        (&[24, 0, 0, 1, 0][..], 0x010a),
        (&[13, 0, 0, 0], 0x0a),
        (&[4, 1, 0, 1], 0x0132),
    ] {
        let error = skip_tickets(&mut BytesMut::from(message)).expect_err("a violation");
        assert_eq!(error.code(), code);
    }
}
