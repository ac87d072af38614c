use super::*;

#[test]
fn a_hello_retry_request_is_told_by_its_random() {
    let mut message = [&[2, 0, 0, 34, 3, 3][..], &RETRY_RANDOM].concat();
    assert!(is_hello_retry(&message));
    assert!(!is_hello_retry(&message[..37]));
    message[6] ^= 1;
    assert!(!is_hello_retry(&message));
}
