use super::*;
use crate::ShareSizes;

#[test]
fn every_group_has_the_shares_of_its_table_entry() {
    for group in Group::ALL {
        let kx = implementation(group).expect("implemented");
        assert_eq!(u16::from(kx.name()), group.0);
        let client = kx.start().expect("a share");
        let server = kx.start_and_complete(client.pub_key()).expect("an answer");
        let sizes = ShareSizes {
            client: client.pub_key().len(),
            server: server.pub_key.len(),
        };
        assert_eq!(group.share_sizes(), Some(sizes), "{group}");
        let secret = client.complete(&server.pub_key).expect("a secret");
        assert_eq!(secret.secret_bytes(), server.secret.secret_bytes());
    }
}

#[test]
fn the_curve_comes_first_in_secp384r1mlkem1024() {
    let client = SecP384r1MlKem1024.start().expect("a share");
    let (curve, share) = client.hybrid_component().expect("a classical half");
    assert_eq!(
        (curve, share),
        (NamedGroup::secp384r1, &client.pub_key()[..POINT_LEN])
    );
    let server = SecP384r1MlKem1024
        .start_and_complete(client.pub_key())
        .expect("an answer");
    // An uncompressed point begins with 4. The secret is 48 bytes of the curve and 32 of ML-KEM.
    assert_eq!(
        (server.pub_key[0], server.secret.secret_bytes().len()),
        (4, 80)
    );
    let half = CURVE
        .start_and_complete(share)
        .expect("an answer of the curve alone");
    let secret = client
        .complete_hybrid_component(&half.pub_key)
        .expect("a secret");
    assert_eq!(secret.secret_bytes(), half.secret.secret_bytes());
}

#[test]
fn a_share_of_another_length_is_refused() {
    let good = SecP384r1MlKem1024
        .start()
        .expect("a share")
        .pub_key()
        .to_vec();
    let longer = [&good[..], &[0]].concat();
    let mut off_curve = good.clone();
    off_curve[5] ^= 1;
    for share in [
        &good[..0],
        &good[..96],
        &good[..97],
        &good[..good.len() - 1],
        &longer,
        &off_curve,
    ] {
        assert!(
            SecP384r1MlKem1024.start_and_complete(share).is_err(),
            "{} bytes",
            share.len()
        );
        let client = SecP384r1MlKem1024.start().expect("a share");
        assert!(client.complete(share).is_err(), "{} bytes", share.len());
    }
}
