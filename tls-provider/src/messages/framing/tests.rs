use super::*;

#[test]
fn whole_messages_are_taken_one_by_one() {
    let mut bytes = BytesMut::from(&[8, 0, 0, 2, 1, 2, 20, 0, 0, 1][..]);
    let first = take(&mut bytes).expect("a message").expect("whole");
    assert_eq!(&first[..], [8, 0, 0, 2, 1, 2]);
    assert_eq!(take(&mut bytes), Ok(None));
    assert_eq!(&bytes[..], [20, 0, 0, 1], "a part stays where it is");
}

#[test]
fn a_message_has_64_kib_at_most() {
    assert_eq!(take(&mut BytesMut::from(&[11, 1, 0, 0][..])), Ok(None));
    let error = take(&mut BytesMut::from(&[11, 1, 0, 1][..])).expect_err("too long");
    assert_eq!(error.alert, Alert::DECODE_ERROR);
}

#[cfg(feature = "rustls")]
#[test]
fn a_hello_retry_request_is_told_by_its_random() {
    let mut message = [&[2, 0, 0, 34, 3, 3][..], &RETRY_RANDOM].concat();
    assert!(is_hello_retry(&message));
    assert!(!is_hello_retry(&message[..37]));
    message[6] ^= 1;
    assert!(!is_hello_retry(&message));
}
