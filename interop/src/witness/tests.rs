//! Tests of the witness with the vectors of RFC 9001.

use hybriq::Group;

use super::{
    ClientHello, ServerHello,
    hello::{client_hellos, server_hellos},
    initial::{Direction, Reading, Stream},
};

/// RFC 9001 §A.3: a server's Initial packet that answers a client's Initial packet to
/// 0x8394c8f03e515708 with an ACK and a ServerHello.
const SERVER_INITIAL: &str = "cf000000010008f067a5502a4262b5004075c0d95a482cd0991cd25b0aac406a5816\
    b6394100f37a1c69797554780bb38cc5a99f5ede4cf73c3ec2493a1839b3dbcba3f6ea46c5b7684df3548e7ddeb9c3bf\
    9c73cc3f3bded74b562bfb19fb84022f8ef4cdd93795d77d06edbb7aaf2f58891850abbdca3d20398c276456cbc42158\
    407dd074ee";
/// Header of the packet that it answers, without a payload that could be opened.
const CLIENT_INITIAL: &str =
    "c000000001088394c8f03e51570800001800000000000000000000000000000000000000000000000000";

fn bytes(hex: &str) -> Vec<u8> {
    let digits: Vec<_> = hex.chars().filter_map(|digit| digit.to_digit(16)).collect();
    digits
        .chunks(2)
        .map(|pair| (pair[0] * 16 + pair[1]) as u8)
        .collect()
}

fn message(kind: u8, body: &[&[u8]]) -> Vec<u8> {
    let body = body.concat();
    let mut message = vec![kind, 0, (body.len() >> 8) as u8, body.len() as u8];
    message.extend(body);
    message
}

#[test]
fn the_rfcs_server_initial_shows_its_group() {
    let mut reading = Reading::default();
    reading.on_datagram(Direction::ToServer, &bytes(CLIENT_INITIAL));
    reading.on_datagram(Direction::ToClient, &bytes(SERVER_INITIAL));
    let sighting = reading.sighting();
    assert_eq!(
        sighting.server_hellos,
        [ServerHello {
            group: Group::X25519,
            retry: false,
            resumed: false,
        }]
    );
    assert_eq!(
        (sighting.client_datagrams, sighting.server_datagrams),
        (1, 1)
    );
}

#[test]
fn a_packet_that_was_tampered_with_shows_nothing() {
    let mut packet = bytes(SERVER_INITIAL);
    packet[60] ^= 1;
    let mut reading = Reading::default();
    reading.on_datagram(Direction::ToServer, &bytes(CLIENT_INITIAL));
    reading.on_datagram(Direction::ToClient, &packet);
    assert_eq!(reading.sighting().server_hellos, []);
}

#[test]
fn crypto_frames_are_read_in_any_order_and_slicing() {
    let mut stream = Stream::default();
    stream.insert(4, b"efgh");
    assert_eq!(stream.prefix(), b"");
    stream.insert(0, b"ab");
    stream.insert(0, b"abc");
    assert_eq!(stream.prefix(), b"abc");
    stream.insert(2, b"cdef");
    stream.insert(9, b"never");
    assert_eq!(stream.prefix(), b"abcdefgh");
}

#[test]
fn a_client_hello_tells_its_groups_and_its_shares() {
    let hello = message(
        1,
        &[
            &[3, 3],
            &[7; 32],
            &[0],
            &[0, 2, 0x13, 0x01],
            &[1, 0],
            &[0, 21],
            &[0, 10, 0, 6, 0, 4, 0x00, 0x1d, 0x11, 0xec],
            &[0, 51, 0, 7, 0, 5, 0x00, 0x1d, 0, 1, 9],
        ],
    );
    assert_eq!(
        client_hellos(&hello),
        [ClientHello {
            groups: vec![Group::X25519, Group::X25519MLKEM768],
            shares: vec![Group::X25519]
        }]
    );
    assert_eq!(client_hellos(&hello[..hello.len() - 1]), []);
}

#[test]
fn a_hello_retry_request_is_told_from_a_server_hello() {
    let retry_random = bytes("cf21ad74e59a6111be1d8c021e65b891c2a211167abb8c5e079e09e2c8a8339c");
    let hello = |random: &[u8], share: &[u8]| {
        let len = [0, share.len() as u8];
        let extensions = [0, 4 + share.len() as u8];
        message(
            2,
            &[
                &[3, 3],
                random,
                &[0],
                &[0x13, 0x01, 0],
                &extensions,
                &[0, 51],
                &len,
                share,
            ],
        )
    };
    let mut stream = hello(&retry_random, &[0x11, 0xec]);
    stream.extend(hello(&[1; 32], &[0x11, 0xec, 0, 1, 7]));
    let group = Group::X25519MLKEM768;
    assert_eq!(
        server_hellos(&stream),
        [
            ServerHello {
                group,
                retry: true,
                resumed: false,
            },
            ServerHello {
                group,
                retry: false,
                resumed: false,
            }
        ]
    );
}
