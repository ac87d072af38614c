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
