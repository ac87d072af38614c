use proptest::prelude::*;
use rcgen::{CertificateParams, KeyPair, date_time_ymd};

use super::*;

fn certificate(from: (i32, u8, u8), until: (i32, u8, u8)) -> Vec<u8> {
    let key = KeyPair::generate().expect("a key");
    let mut params = CertificateParams::new(vec!["example.test".to_owned()]).expect("parameters");
    params.not_before = date_time_ymd(from.0, from.1, from.2);
    params.not_after = date_time_ymd(until.0, until.1, until.2);
    params
        .self_signed(&key)
        .expect("a certificate")
        .der()
        .to_vec()
}

fn at(seconds: u64) -> SystemTime {
    UNIX_EPOCH + Duration::from_secs(seconds)
}

#[test]
fn both_forms_of_time_are_read() {
    let validity = Validity::of(&certificate((2024, 2, 29), (2026, 11, 22)));
    let expected = Validity {
        not_before: 1_709_164_800,
        not_after: 1_795_305_600,
    };
    assert_eq!(validity, Some(expected));
    // From 2050 on, GeneralizedTime.
    let validity = Validity::of(&certificate((1970, 1, 1), (2100, 3, 1)));
    let expected = Validity {
        not_before: 0,
        not_after: 4_107_542_400,
    };
    assert_eq!(validity, Some(expected));
}

#[test]
fn a_certificate_is_judged_by_the_time() {
    let validity = Validity {
        not_before: 1000,
        not_after: 2000,
    };
    for good in [1000, 1500, 2000] {
        assert_eq!(validity.problem(at(good)), None);
    }
    let early = validity.problem(at(999)).expect("too early");
    assert_eq!(early, "is not valid before 1000 (now 999)");
    let late = validity.problem(at(2001 + 3 * 86_400)).expect("too late");
    assert_eq!(late, "expired 3 days ago (at 2000)");
}

#[cfg(all(unix, feature = "s2n-tls"))]
#[test]
fn the_public_key_is_found() {
    let key = KeyPair::generate().expect("a key");
    let params = CertificateParams::new(vec!["example.test".to_owned()]).expect("parameters");
    let certificate = params.self_signed(&key).expect("a certificate");
    let expected = rcgen::PublicKeyData::subject_public_key_info(&key);
    assert_eq!(public_key(certificate.der()), Some(&expected[..]));
    assert_eq!(public_key(&[0x30, 0]), None);
}

proptest! {
    #[test]
    fn whatever_is_no_certificate_is_refused_quietly(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = Validity::of(&bytes);
    }

    #[test]
    fn a_broken_certificate_is_refused_quietly(at in 0..150_usize, bits in 1..=255_u8) {
        let mut der = certificate((2024, 1, 1), (2026, 1, 1));
        der[at] ^= bits;
        let _ = Validity::of(&der);
    }
}
