//! A datagram up to the point where its packets turn out not to be authentic.

use hybriq::proto::packet::{Cid, Decoded, VERSION_1, decode, initial_direction, peek};
use hybriq_tls::Side;

#[test]
fn packet_headers() {
    let client = initial_direction(VERSION_1, &Cid::EMPTY, Side::Client);
    let input = bolero::check!()
        .with_iterations(50_000)
        .with_type::<(bool, Vec<u8>)>();
    input.for_each(|(known_version, bytes)| {
        let mut datagram = bytes.clone();
        if *known_version && let Some(version) = datagram.get_mut(1..5) {
            version.copy_from_slice(&VERSION_1.to_be_bytes());
        }
        let routable = peek(&datagram, 8).is_some();
        let mut rest = &mut datagram[..];
        while let before = rest.len()
            && let Ok((packet, behind)) = decode(rest, 8)
        {
            assert!(routable && behind.len() < before);
            match packet {
                Decoded::Protected(packet) => {
                    if let Ok(packet) = packet.unprotect(&client.header, Some(7)) {
                        packet.open(&client.packet).expect_err("nobody sealed it");
                    }
                }
                Decoded::Retry(retry) => assert!(!retry.verify(&Cid::EMPTY)),
                Decoded::VersionNegotiation(list) => assert!(list.versions().count() < before),
                Decoded::UnknownVersion { version, .. } => assert_ne!(version, VERSION_1),
            }
            rest = behind;
        }
    });
}
