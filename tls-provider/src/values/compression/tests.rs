use super::*;

#[test]
fn names_and_values_are_those_of_the_registry() {
    let known = CertificateCompression::ALL.map(|it| (it.iana(), it.to_string()));
    assert_eq!(known, [(2, "brotli".to_owned()), (1, "zlib".to_owned())]);
    for algorithm in CertificateCompression::ALL {
        let found = CertificateCompression::from_iana(algorithm.iana());
        assert_eq!(found, Some(algorithm));
    }
    assert_eq!(CertificateCompression::from_iana(3), None);
}

#[cfg(feature = "rustls")]
#[test]
fn a_certificate_message_tells_its_size_and_its_compression() {
    let plain = CertificateMessage::of(&[11, 0, 0, 4, 0, 0, 0, 0]).expect("a message");
    assert_eq!((plain.len, plain.uncompressed_len), (8, 8));
    assert_eq!(plain.compression, None);

    let message = [25, 0, 0, 9, 0, 2, 0, 1, 0, 0, 0, 1, 0xff];
    let small = CertificateMessage::of(&message).expect("a message");
    assert_eq!((small.len, small.uncompressed_len), (13, 4 + 256));
    assert_eq!(small.compression, Some(CertificateCompression::Brotli));

    assert_eq!(CertificateMessage::of(&[25, 0, 0, 1, 0]), None, "cut short");
    assert_eq!(CertificateMessage::of(&[8, 0, 0, 0]), None);
    assert_eq!(CertificateMessage::of(&[]), None);
}
