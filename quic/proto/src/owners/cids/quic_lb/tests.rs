use proptest::prelude::*;

use super::*;

/// The key of the test vectors (draft-ietf-quic-load-balancers-21, appendix B.2).
const KEY: [u8; 16] = [
    0x8f, 0x95, 0xf0, 0x92, 0x45, 0x76, 0x5f, 0x80, 0x25, 0x69, 0x34, 0xe5, 0x0c, 0x66, 0x20, 0x7f,
];

/// The key of the example in section 5.4.2.
const EXAMPLE_KEY: [u8; 16] = [
    0xfd, 0xf7, 0x26, 0xa9, 0x89, 0x3e, 0xc0, 0x5c, 0x06, 0x32, 0xd3, 0x95, 0x66, 0x80, 0xba, 0xf0,
];

fn hex(text: &str) -> Vec<u8> {
    (0..text.len())
        .step_by(2)
        .map(|at| u8::from_str_radix(&text[at..at + 2], 16).unwrap())
        .collect()
}

fn config(
    rotation: u8,
    server_id: &[u8],
    nonce_len: usize,
    key: Option<[u8; 16]>,
) -> Result<QuicLb, InvalidQuicLb> {
    let plain = QuicLb::new(rotation, server_id, nonce_len, [3; 16], 77)?;
    match key {
        Some(key) => plain.with_key(key),
        None => Ok(plain),
    }
}

fn check(rotation: u8, server_id: &str, nonce: &str, key: Option<[u8; 16]>, cid: &str) {
    let (server_id, nonce, expected) = (hex(server_id), hex(nonce), hex(cid));
    let config = config(rotation, &server_id, nonce.len(), key).unwrap();
    let mut made = vec![0; config.len()];
    config.encode(&nonce, &mut made);
    assert_eq!(made, expected);
    assert_eq!(config.decode(&made).as_deref(), Some(&nonce[..]));
}

#[test]
fn ids_in_the_clear_are_those_of_the_draft() {
    check(0, "c4605e", "4504cc4f", None, "07c4605e4504cc4f");
}

#[test]
fn encrypted_ids_are_those_of_the_draft() {
    check(0, "ed793a", "ee080dbf", Some(KEY), "0720b1d07b359d3c");
    check(
        1,
        "ed793a51d49b8f5fab65",
        "ee080dbf48",
        Some(KEY),
        "2fcc381bc74cb4fbad2823a3d1f8fed2",
    );
    check(
        2,
        "ed793a51d49b8f5f",
        "ee080dbf48c0d1e5",
        Some(KEY),
        "504dd2d05a7b0de9b2b9907afb5ecf8cc3",
    );
    // The draft says rotation 3 here, but its own first octet contradicts that.
    check(
        0,
        "ed793a51d49b8f5fab",
        "ee080dbf48c0d1e55d",
        Some(KEY),
        "125779c9cc86beb3a3a4a3ca96fce4bfe0cdbc",
    );
    let cid = "0767947d29be054a";
    check(0, "31441a", "9c69c275", Some(EXAMPLE_KEY), cid);
}

#[test]
fn what_no_balancer_could_read_is_refused() {
    let refused = |rotation, id: usize, nonce| {
        let id = vec![1; id];
        let made = config(rotation, &id, nonce, Some(KEY));
        made.err()
    };
    assert_eq!(refused(7, 3, 4), Some(InvalidQuicLb::Rotation(7)));
    assert_eq!(refused(0, 0, 4), Some(InvalidQuicLb::ServerId(0)));
    assert_eq!(refused(0, 16, 4), Some(InvalidQuicLb::ServerId(16)));
    assert_eq!(refused(0, 3, 3), Some(InvalidQuicLb::Nonce(3)));
    assert_eq!(refused(0, 3, 17), Some(InvalidQuicLb::Nonce(17)));
    assert_eq!(refused(6, 15, 4), None);
    assert_eq!(refused(6, 1, 18), None);
}

#[test]
fn the_length_may_stay_out_of_the_first_octet() {
    let config = config(5, &[1, 2], 6, None).unwrap().without_length();
    let mut cid = vec![0xff; config.len()];
    config.generate(0, &mut cid);
    assert_eq!(cid[0], 5 << 5 | 0x1f);
    assert_eq!(config.worker(&cid), Some(0));
}

#[test]
fn under_a_key_no_nonce_comes_twice() {
    let config = config(0, &[1], 4, Some(KEY)).unwrap();
    let ids: std::collections::HashSet<_> = (0..10_000)
        .map(|_| {
            let mut cid = [0; 6];
            config.generate(1, &mut cid);
            cid
        })
        .collect();
    assert_eq!(ids.len(), 10_000);
}

#[test]
fn the_worker_does_not_show_in_the_clear() {
    let config = config(0, &[1], 6, None).unwrap();
    let seen: std::collections::HashSet<_> = (0..200u8)
        .map(|number| {
            let mut cid = [number; 8];
            config.generate(9, &mut cid);
            assert_eq!(config.worker(&cid), Some(9));
            cid[2]
        })
        .collect();
    assert!(seen.len() > 50, "{}", seen.len());
}

proptest! {
    /// Every worker is found again, whatever the configuration; ids of others are rejected.
    #[test]
    fn every_id_leads_to_its_worker(
        id in prop::collection::vec(any::<u8>(), 1..16),
        nonce_len in 4usize..19,
        key in any::<Option<[u8; 16]>>(),
        worker in any::<u8>(),
        fill in any::<[u8; 20]>(),
    ) {
        prop_assume!(id.len() + nonce_len <= MOST_BYTES);
        let ours = config(3, &id, nonce_len, key).unwrap();
        let mut cid = fill[..ours.len()].to_vec();
        ours.generate(worker, &mut cid);
        prop_assert_eq!(ours.worker(&cid), Some(worker));
        let mut other = id;
        other[0] ^= 1;
        let other = config(3, &other, nonce_len, key).unwrap();
        prop_assert_eq!(other.worker(&cid), None);
        let rotated = config(4, &other.server_id, nonce_len, key).unwrap();
        prop_assert_eq!(rotated.worker(&cid), None);
    }

    /// Forged ids of any length are read without harm.
    #[test]
    fn any_bytes_may_be_asked_about(bytes in prop::collection::vec(any::<u8>(), 0..21)) {
        for key in [None, Some(KEY)] {
            config(0, &[1, 2, 3], 8, key).unwrap().worker(&bytes);
        }
    }
}
