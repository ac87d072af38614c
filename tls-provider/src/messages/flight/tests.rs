use super::*;

#[test]
fn signatures_have_the_sizes_of_their_standards() {
    let sizes = [
        (KeyAlgorithm::Rsa { bits: 2048 }, (256, 0)),
        (KeyAlgorithm::Rsa { bits: 3072 }, (384, 0)),
        (KeyAlgorithm::EcdsaP256, (72, 8)),
        (KeyAlgorithm::EcdsaP384, (104, 8)),
        (KeyAlgorithm::EcdsaP521, (139, 8)),
        (KeyAlgorithm::Ed25519, (64, 0)),
        (KeyAlgorithm::MlDsa44, (2420, 0)),
        (KeyAlgorithm::MlDsa65, (3309, 0)),
        (KeyAlgorithm::MlDsa87, (4627, 0)),
    ];
    for (key, expected) in sizes {
        assert_eq!(signature_len(key), Some(expected), "{key:?}");
    }
    assert_eq!(signature_len(KeyAlgorithm::Unknown), None);
}

#[test]
fn a_chain_that_cannot_be_read_is_not_post_quantum() {
    assert!(!is_post_quantum(&[]));
    assert!(!is_post_quantum(&[CertificateDer::from(vec![0x30, 0])]));
}
