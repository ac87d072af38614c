//! The vectors of RFC 9369 appendix A. The frames are those of RFC 9001 appendix A.

use hybriq_tls::{Level, Secret, Side, Suite};

use super::{
    hex,
    rfc9001::{CLIENT_FRAMES, DCID, SERVER_FRAMES, opened, protected},
};
use crate::{
    testing::pn,
    wire::packet::{
        Cid, Decoded, DirectionKeys, Kind, Packets, Retry, Version, decode, initial_keys,
        next_packet_key,
    },
};

/// A.2: the protected packet.
const CLIENT_INITIAL: &str = "\
    d76b3343cf088394c8f03e5157080000449ea0c95e82ffe67b6abcdb4298b485dd04de806071bf03\
    dceebfa162e75d6c96058bdbfb127cdfcbf903388e99ad049f9a3dd4425ae4d0992cfff18ecf0fdb\
    5a842d09747052f17ac2053d21f57c5d250f2c4f0e0202b70785b7946e992e58a59ac52dea6774d4\
    f03b55545243cf1a12834e3f249a78d395e0d18f4d766004f1a2674802a747eaa901c3f10cda5500\
    cb9122faa9f1df66c392079a1b40f0de1c6054196a11cbea40afb6ef5253cd6818f6625efce3b6de\
    f6ba7e4b37a40f7732e093daa7d52190935b8da58976ff3312ae50b187c1433c0f028edcc4c2838b\
    6a9bfc226ca4b4530e7a4ccee1bfa2a3d396ae5a3fb512384b2fdd851f784a65e03f2c4fbe11a53c\
    7777c023462239dd6f7521a3f6c7d5dd3ec9b3f233773d4b46d23cc375eb198c63301c21801f6520\
    bcfb7966fc49b393f0061d974a2706df8c4a9449f11d7f3d2dcbb90c6b877045636e7c0c0fe4eb0f\
    697545460c806910d2c355f1d253bc9d2452aaa549e27a1fac7cf4ed77f322e8fa894b6a83810a34\
    b361901751a6f5eb65a0326e07de7c1216ccce2d0193f958bb3850a833f7ae432b65bc5a53975c15\
    5aa4bcb4f7b2c4e54df16efaf6ddea94e2c50b4cd1dfe06017e0e9d02900cffe1935e0491d77ffb4\
    fdf85290fdd893d577b1131a610ef6a5c32b2ee0293617a37cbb08b847741c3b8017c25ca9052ca1\
    079d8b78aebd47876d330a30f6a8c6d61dd1ab5589329de714d19d61370f8149748c72f132f0fc99\
    f34d766c6938597040d8f9e2bb522ff99c63a344d6a2ae8aa8e51b7b90a4a806105fcbca31506c44\
    6151adfeceb51b91abfe43960977c87471cf9ad4074d30e10d6a7f03c63bd5d4317f68ff325ba3bd\
    80bf4dc8b52a0ba031758022eb025cdd770b44d6d6cf0670f4e990b22347a7db848265e3e5eb72df\
    e8299ad7481a408322cac55786e52f633b2fb6b614eaed18d703dd84045a274ae8bfa73379661388\
    d6991fe39b0d93debb41700b41f90a15c4d526250235ddcd6776fc77bc97e7a417ebcb31600d01e5\
    7f32162a8560cacc7e27a096d37a1a86952ec71bd89a3e9a30a2a26162984d7740f81193e8238e61\
    f6b5b984d4d3dfa033c1bb7e4f0037febf406d91c0dccf32acf423cfa1e7071010d3f270121b493c\
    e85054ef58bada42310138fe081adb04e2bd901f2f13458b3d6758158197107c14ebb193230cd115\
    7380aa79cae1374a7c1e5bbcb80ee23e06ebfde206bfb0fcbc0edc4ebec309661bdd908d532eb0c6\
    adc38b7ca7331dce8dfce39ab71e7c32d318d136b6100671a1ae6a6600e3899f31f0eed19e3417d1\
    34b90c9058f8632c798d4490da4987307cba922d61c39805d072b589bd52fdf1e86215c2d54e6670\
    e07383a27bbffb5addf47d66aa85a0c6f9f32e59d85a44dd5d3b22dc2be80919b490437ae4f36a0a\
    e55edf1d0b5cb4e9a3ecabee93dfc6e38d209d0fa6536d27a5d6fbb17641cde27525d61093f1b280\
    72d111b2b4ae5f89d5974ee12e5cf7d5da4d6a31123041f33e61407e76cffcdcfd7e19ba58cf4b53\
    6f4c4938ae79324dc402894b44faf8afbab35282ab659d13c93f70412e85cb199a37ddec60054547\
    3cfb5a05e08d0b209973b2172b4d21fb69745a262ccde96ba18b2faa745b6fe189cf772a9f84cbfc";

/// A.3: the protected packet.
const SERVER_INITIAL: &str = "\
    dc6b3343cf0008f067a5502a4262b5004075d92faaf16f05d8a4398c47089698baeea26b91eb761d\
    9b89237bbf87263017915358230035f7fd3945d88965cf17f9af6e16886c61bfc703106fbaf3cb4c\
    fa52382dd16a393e42757507698075b2c984c707f0a0812d8cd5a6881eaf21ceda98f4bd23f6fe1a\
    3e2c43edd9ce7ca84bed8521e2e140";

/// A.4: the packet with its tag.
const RETRY: &str = "cf6b3343cf0008f067a5502a4262b5746f6b656ec8646ce8bfe33952d955543665dcc7b6";

/// Proves: rfc9369 3.1 version-number
/// Proves: rfc9369 3.2 packet-types-differ
/// Proves: rfc9369 3.3.1 salt-differs
#[test]
fn a_1_and_a_2_the_client_initial() {
    let mut payload = hex(CLIENT_FRAMES);
    payload.resize(1162, 0);
    let dcid = Cid::from(DCID);
    let client = initial_keys(Version::V2, &dcid, Side::Client).local;
    let server = initial_keys(Version::V2, &dcid, Side::Server).peer;

    let sample = hex("ffe67b6abcdb4298b485dd04de806071");
    let mask = client.header.mask(sample.first_chunk().expect("16 bytes"));
    assert_eq!(mask.to_vec(), hex("94a0c95e80"));

    let header = "d36b3343cf088394c8f03e5157080000449e00000002";
    assert_eq!(protected(header, 2, &payload, &client), hex(CLIENT_INITIAL));
    let mut initial = hex(CLIENT_INITIAL);
    let kind = Packets::read(&mut initial, 8).map(|packets| packets.kind());
    assert_eq!(kind, Ok(Some(Kind::Initial)));
    let read = opened(Version::V2, CLIENT_INITIAL, &server, ("", 2));
    assert_eq!(read, payload);
}

#[test]
fn a_3_the_server_initial() {
    let payload = hex(SERVER_FRAMES);
    let dcid = Cid::from(DCID);
    let server = initial_keys(Version::V2, &dcid, Side::Server).local;
    let client = initial_keys(Version::V2, &dcid, Side::Client).peer;

    let sample = hex("6f05d8a4398c47089698baeea26b91eb");
    let mask = server.header.mask(sample.first_chunk().expect("16 bytes"));
    assert_eq!(mask.to_vec(), hex("4dd92e91ea"));

    let header = "d16b3343cf0008f067a5502a4262b50040750001";
    assert_eq!(protected(header, 1, &payload, &server), hex(SERVER_INITIAL));
    let scid = "f067a5502a4262b5";
    let read = opened(Version::V2, SERVER_INITIAL, &client, (scid, 1));
    assert_eq!(read, payload);
}

/// Proves: rfc9369 3.3.3 retry-key-differs
#[test]
fn a_4_the_retry() {
    let mut packet = hex(RETRY);
    let expected = packet.clone();
    let kind = Packets::read(&mut packet, 8).map(|packets| packets.kind());
    assert_eq!(kind, Ok(None));
    let (Decoded::Retry(retry), rest) = decode(&mut packet, 8).expect("a packet") else {
        panic!("no Retry")
    };
    assert!(rest.is_empty());
    assert_eq!((retry.version, retry.token), (Version::V2, &b"token"[..]));
    assert!(retry.verify(&Cid::from(DCID)));
    assert!(!retry.verify(&Cid::from([0; 8])));

    let retry = Retry::new(Version::V2, Cid::EMPTY, retry.scid, b"token");
    let mut buffer = [0; 1200];
    let len = retry.encode(&Cid::from(DCID), 0x0f, &mut buffer);
    assert_eq!(len.map(|len| &buffer[..len]), Some(&expected[..]));
}

/// The tag of one version is not valid in the other.
#[test]
fn a_retry_under_another_version_is_not_genuine() {
    let mut packet = hex(RETRY);
    packet[..5].copy_from_slice(&[0xff, 0, 0, 0, 1]);
    let (Decoded::Retry(retry), _) = decode(&mut packet, 8).expect("a packet") else {
        panic!("no Retry")
    };
    assert_eq!(retry.version, Version::V1);
    assert!(!retry.verify(&Cid::from(DCID)));
}

/// Proves: rfc9369 3.3.2 labels-differ
#[test]
fn a_5_the_chacha20_short_header() {
    let secret = hex("9ac312a7f877468ebe69422748ad00a15443f18203a07d6060f688f30f21632b");
    let suite = Suite::ChaCha20Poly1305Sha256;
    let mut secret =
        Secret::new(Level::OneRtt, Side::Server, suite, &secret).expect("48 bytes at most");
    let keys = DirectionKeys::from_secret(Version::V2, &secret);

    let sample = hex("e7b6b932bc27d786f4bc2bb20f2162ba");
    let mask = keys.header.mask(sample.first_chunk().expect("16 bytes"));
    assert_eq!(mask.to_vec(), hex("97580e32bf"));

    let number = pn(654_360_564);
    let expected = hex("5558b1c60ae7b6b932bc27d786f4bc2bb20f2162ba");
    assert_eq!(
        protected("4200bff4", number.get(), &[0x01], &keys),
        expected
    );

    let mut packet = expected;
    let (Decoded::Protected(packet), _) = decode(&mut packet, 0).expect("a packet") else {
        panic!("not protected")
    };
    assert_eq!((packet.kind, packet.version), (Kind::OneRtt, None));
    let packet = packet
        .unprotect(&keys.header, number.checked_sub(1))
        .expect("a sample");
    assert_eq!(packet.open(&keys.packet).expect("authentic"), [0x01]);

    next_packet_key(Version::V2, &mut secret);
    let updated = "c69374c49e3d2a9466fa689e49d476db5d0dfbc87d32ceeaa6343fd0ae4c7d88";
    assert_eq!(secret.as_bytes(), hex(updated));
}
