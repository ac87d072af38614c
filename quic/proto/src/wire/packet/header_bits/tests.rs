use super::*;
use crate::{testing::pn, wire::packet::PacketNumber};

/// Bits that spin, found by trying seeds.
fn spinning(side: Side) -> HeaderBits {
    (0..1000)
        .map(|seed| HeaderBits::new(side, seed, SpinBit::On))
        .find(|bits| bits.spins)
        .unwrap()
}

#[test]
fn a_server_repeats_the_bit_and_a_client_inverts_it() {
    let (mut client, mut server) = (spinning(Side::Client), spinning(Side::Server));
    assert_eq!([client.spin(), server.spin()], [SpinValue::Zero; 2]);
    let mut edges = 0;
    for pn in 0..10 {
        let before = client.spin();
        server.on_packet(PacketNumber::saturating(pn), client.spin());
        client.on_packet(PacketNumber::saturating(pn), server.spin());
        edges += u32::from(client.spin() != before);
    }
    assert_eq!(edges, 10, "once a round trip");
}

#[test]
fn only_the_newest_packet_is_followed() {
    let mut server = spinning(Side::Server);
    server.on_packet(pn(5), SpinValue::One);
    server.on_packet(pn(4), SpinValue::Zero);
    assert_eq!(server.spin(), SpinValue::One);
    server.on_packet(pn(6), SpinValue::Zero);
    assert_eq!(server.spin(), SpinValue::Zero);
}

/// Proves: rfc9000 17.4 spin-bit-can-be-off
#[test]
fn one_path_in_sixteen_does_not_spin_though_it_may() {
    let spins = |allowed| {
        let bits = (0..16_000).map(|seed| HeaderBits::new(Side::Client, seed, allowed));
        bits.filter(|bits| bits.spins).count()
    };
    assert_eq!(spins(SpinBit::Off), 0);
    let spinning = spins(SpinBit::On);
    assert!((14_800..=15_200).contains(&spinning), "{spinning}");
}

#[test]
fn where_it_does_not_spin_the_bit_is_random_for_each_id() {
    let mut bits = HeaderBits::new(Side::Client, 1, SpinBit::Off);
    let mut set = 0;
    for _ in 0..1000 {
        let spin = bits.spin();
        bits.on_packet(pn(7), spin.inverted());
        assert_eq!(bits.spin(), spin, "it does not follow");
        set += u32::from(spin == SpinValue::One);
        bits.on_new_path();
    }
    assert!((400..600).contains(&set), "{set}");
}

#[test]
fn a_new_path_starts_from_the_beginning() {
    let mut server = spinning(Side::Server);
    server.on_packet(pn(100), SpinValue::One);
    server.on_new_path();
    if server.spins {
        assert_eq!(server.spin(), SpinValue::Zero);
    }
    server.spins = true;
    server.on_packet(pn(3), SpinValue::One);
    assert_eq!(
        server.spin(),
        SpinValue::One,
        "an earlier number counts on another path"
    );
}

/// Proves: rfc9287 3.1 bit-is-cleared-only-for-those-who-asked
#[test]
fn the_quic_bit_is_cleared_at_random_for_those_who_asked() {
    let mut bits = HeaderBits::new(Side::Client, 5, SpinBit::Off);
    assert!((0..100).all(|_| !bits.clears_quic_bit()));
    bits.on_greased_peer();
    let cleared = (0..1000).filter(|_| bits.clears_quic_bit()).count();
    assert!((400..600).contains(&cleared), "{cleared}");
}
