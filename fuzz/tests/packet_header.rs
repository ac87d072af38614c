//! Datagrams up to the point where their packets fail authentication.

use hybriq_proto::wire::packet::{
    Cid, Decoded, PacketNumber, Packets, Version, decode, initial_direction,
};
use hybriq_tls::Side;

#[test]
fn packet_headers() {
    let client = initial_direction(Version::V1, &Cid::EMPTY, Side::Client);
    let input = bolero::check!()
        .with_iterations(50_000)
        .with_type::<(Option<bool>, Vec<u8>)>();
    input.for_each(|(known, bytes)| {
        let mut datagram = bytes.clone();
        if let (Some(second), Some(number)) = (known, datagram.get_mut(1..5)) {
            let version = Version::ALL[usize::from(*second)];
            number.copy_from_slice(&version.number().to_be_bytes());
        }
        let routable = Packets::read(&mut datagram, 8).is_ok();
        let mut rest = &mut datagram[..];
        while let before = rest.len()
            && let Ok((packet, behind)) = decode(rest, 8)
        {
            assert!(routable && behind.len() < before);
            match packet {
                Decoded::Protected(packet) => {
                    if let Ok(packet) =
                        packet.unprotect(&client.header, Some(PacketNumber::saturating(7)))
                    {
                        packet.open(&client.packet).expect_err("nobody sealed it");
                    }
                }
                Decoded::Retry(retry) => assert!(!retry.verify(&Cid::EMPTY)),
                Decoded::VersionNegotiation(list) => assert!(list.versions().count() < before),
                Decoded::UnknownVersion { version, .. } => {
                    assert_eq!(Version::from_number(version), None);
                }
                _ => panic!("another kind of packet"),
            }
            rest = behind;
        }
    });
}
