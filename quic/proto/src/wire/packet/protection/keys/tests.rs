use hybriq_tls::{Level, Secret, Side, Suite};

use super::{Expand, Expander, initial_secret, next_packet_key};
use crate::{
    testing::pn,
    wire::packet::{Cid, DirectionKeys, Version, tests::hex},
};

/// Checks the output of the expander for a label.
fn check(expander: &Expander, label: &str, expected: &str) {
    let expected = hex(expected);
    let mut out = vec![0; expected.len()];
    expander.fill(label.as_bytes(), &mut out);
    assert_eq!(out, expected, "{label}");
}

/// Without a FIPS module, the other tests see only HMAC; with one, only the module's HKDF.
#[test]
fn a_module_and_hmac_derive_the_same_keys() {
    for (suite, len) in [
        (Suite::Aes128GcmSha256, 32),
        (Suite::Aes256GcmSha384, 48),
        (Suite::ChaCha20Poly1305Sha256, 32),
    ] {
        let secret = &[7; 48][..len];
        let [module, hmac] = [Expand::of_module, Expand::of_hmac].map(|of| Expander {
            secret: of(suite, secret),
            suite,
        });
        let used = Expander::new(suite, secret).secret;
        assert_eq!(matches!(used, Expand::Hkdf(_)), hybriq_tls::is_fips());
        assert_eq!(module.secret(b"quicv2 ku"), hmac.secret(b"quicv2 ku"));
        assert_eq!(module.key(b"quic key"), hmac.key(b"quic key"));
    }
}

/// Proves: rfc9001 5.2 initial-keys-are-those-of-the-rfc
#[test]
fn the_initial_keys_are_those_of_rfc_9001_appendix_a_1() {
    let dcid = Cid::from([0x83, 0x94, 0xc8, 0xf0, 0x3e, 0x51, 0x57, 0x08]);
    let suite = Suite::Aes128GcmSha256;
    let initial = initial_secret(Version::V1, &dcid);
    let client = "c00cf151ca5be075ed0ebfb5c80323c42d6b7db67881289af4008f1f6c357aea";
    let server = "3c199828fd139efd216c155ad844cc81fb82fa8d7446fa7d78be803acdda951b";
    check(&initial, "client in", client);
    check(&initial, "server in", server);

    let client = Expander::new(suite, &hex(client));
    check(&client, "quic key", "1f369613dd76d5467730efcbe3b1a22d");
    check(&client, "quic iv", "fa044b2f42a3fd3b46fb255c");
    check(&client, "quic hp", "9f50449e04a0e810283a1e9933adedd2");

    let server = Expander::new(suite, &hex(server));
    check(&server, "quic key", "cf3a5331653c364c88f0f379b6067e37");
    check(&server, "quic iv", "0ac1493ca1905853b0bba03e");
    check(&server, "quic hp", "c206b8d9b9f0f37644430b490eeaa314");
}

#[test]
fn the_chacha20_keys_are_those_of_rfc_9001_appendix_a_5() {
    let secret = hex("9ac312a7f877468ebe69422748ad00a15443f18203a07d6060f688f30f21632b");
    let suite = Suite::ChaCha20Poly1305Sha256;
    let expander = Expander::new(suite, &secret);
    let key = "c6d98ff3441c3fe1b2182094f69caa2ed4b716b65488960a7a984979fb23e1c8";
    let header = "25a282b9e82f06f21f488917a4fc8f1b73573685608597d0efcb076b0ab7a7a4";
    let next = "1223504755036d556342ee9361d253421a826c9ecdf3c7148684b36b714881f9";
    check(&expander, "quic key", key);
    check(&expander, "quic iv", "e0459b3474bdd0e44a41c144");
    check(&expander, "quic hp", header);
    check(&expander, "quic ku", next);

    let mut secret = Secret::new(Level::OneRtt, Side::Client, suite, &secret).expect("32 bytes");
    let updated = next_packet_key(Version::V1, &mut secret);
    assert_eq!(secret.as_bytes(), hex(next));
    assert_eq!(
        (secret.level(), secret.writer()),
        (Level::OneRtt, Side::Client)
    );

    // The key after the update is the packet key of the new secret.
    let direct = DirectionKeys::from_secret(Version::V1, &secret).packet;
    let [mut one, mut other] = [[0x5a; 32]; 2];
    let [mut tag_one, mut tag_other] = [[0; 16]; 2];
    updated
        .seal(pn(7), b"header", &mut one, &mut tag_one)
        .expect("sealed");
    direct
        .seal(pn(7), b"header", &mut other, &mut tag_other)
        .expect("sealed");
    assert_eq!((one, tag_one), (other, tag_other));
}
