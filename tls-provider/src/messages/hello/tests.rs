use proptest::prelude::*;

use super::{cursor::MAX_ITEMS, *};

fn vector8(body: &[u8]) -> Vec<u8> {
    [&[body.len() as u8], body].concat()
}

fn vector16(body: &[u8]) -> Vec<u8> {
    [&(body.len() as u16).to_be_bytes(), body].concat()
}

fn extension(kind: u16, body: &[u8]) -> Vec<u8> {
    [&kind.to_be_bytes()[..], &vector16(body)].concat()
}

fn message(body: &[u8]) -> Vec<u8> {
    let len = (body.len() as u32).to_be_bytes();
    [&[CLIENT_HELLO], &len[1..], body].concat()
}

/// A ClientHello with these extensions.
fn with_extensions(extensions: &[Vec<u8>]) -> Vec<u8> {
    let fixed = [
        &[3, 3][..],
        &[7; 32],
        &[0],
        &vector16(&[0x13, 0x01, 0x13, 0x03]),
        &[1, 0],
    ];
    message(&[fixed.concat(), vector16(&extensions.concat())].concat())
}

fn name(host: &[u8]) -> Vec<u8> {
    extension(
        SERVER_NAME,
        &vector16(&[&[0][..], &vector16(host)].concat()),
    )
}

fn whole() -> Vec<u8> {
    let share =
        |group: u16, len: usize| [&group.to_be_bytes()[..], &vector16(&vec![5; len])].concat();
    with_extensions(&[
        name(b"example.test"),
        extension(
            SUPPORTED_GROUPS,
            &vector16(&[0x11, 0xec, 0x00, 0x1d, 0x6a, 0x6a]),
        ),
        extension(SIGNATURE_ALGORITHMS, &vector16(&[0x04, 0x03, 0x08, 0x04])),
        extension(
            ALPN,
            &vector16(&[vector8(b"h3"), vector8(b"hq-interop")].concat()),
        ),
        extension(0x4a4a, &[]),
        extension(SUPPORTED_VERSIONS, &vector8(&[0x1a, 0x1a, 0x03, 0x04])),
        extension(
            KEY_SHARE,
            &vector16(&[share(0x11ec, 1216), share(0x001d, 32)].concat()),
        ),
        extension(QUIC_TRANSPORT_PARAMETERS, &[1, 2, 3]),
        extension(EARLY_DATA, &[]),
        extension(
            PRE_SHARED_KEY,
            &[
                vector16(&[vector16(b"ticket"), vec![0; 4]].concat()),
                vector16(&[0; 33]),
            ]
            .concat(),
        ),
    ])
}

impl ClientHello {
    /// A ClientHello in which only the groups matter.
    pub(crate) fn of_groups(groups: &[Group], shares: &[Group]) -> Self {
        let list: Vec<u8> = groups
            .iter()
            .flat_map(|group| group.0.to_be_bytes())
            .collect();
        let share = |group: &Group| [&group.0.to_be_bytes()[..], &vector16(&[5; 9])].concat();
        let shares: Vec<u8> = shares.iter().flat_map(share).collect();
        parse(&with_extensions(&[
            extension(SUPPORTED_GROUPS, &vector16(&list)),
            extension(KEY_SHARE, &vector16(&shares)),
        ]))
    }
}

fn parse(bytes: &[u8]) -> ClientHello {
    ClientHello::parse(bytes)
        .expect("well-formed")
        .expect("whole")
        .0
}

#[track_caller]
fn malformed(bytes: &[u8]) {
    let error = ClientHello::parse(bytes).expect_err("malformed");
    assert!(matches!(error, HelloError::Malformed(_)), "{error}");
    assert_eq!(Error::from(error).alert, Alert::DECODE_ERROR);
}

#[test]
fn everything_a_client_asks_for_is_read() {
    let bytes = whole();
    let hello = parse(&bytes);
    assert_eq!(hello.server_name(), Some("example.test"));
    assert_eq!(
        hello.alpn().collect::<Vec<_>>(),
        [&b"h3"[..], b"hq-interop"]
    );
    assert_eq!(
        hello.groups(),
        [Group::X25519MLKEM768, Group::X25519, Group(0x6a6a)]
    );
    let share = |group, len| KeyShare { group, len };
    assert_eq!(
        hello.key_shares(),
        [share(Group::X25519MLKEM768, 1216), share(Group::X25519, 32)]
    );
    assert_eq!(hello.cipher_suites(), [0x1301, 0x1303]);
    assert_eq!(hello.signature_schemes(), [0x0403, 0x0804]);
    assert_eq!(hello.transport_params(), Some(&[1, 2, 3][..]));
    assert_eq!(hello.random(), [7; 32]);
    assert_eq!(hello.message(), &bytes);
    assert!(hello.supports_tls13() && hello.has_ticket() && hello.wants_early_data());
    assert!(hello.offers_post_quantum());
    assert_eq!(hello.ticket(), Some(&b"ticket"[..]));
}

#[test]
fn a_ticket_that_is_cut_short_is_left_to_the_library() {
    for content in [
        vec![],
        vec![0; 20],
        vector16(&[]),
        vector16(&[0, 9, b'a']),
        [&[0, 200][..], &vector16(b"ticket")].concat(),
    ] {
        let hello = parse(&with_extensions(&[extension(PRE_SHARED_KEY, &content)]));
        assert!(hello.has_ticket());
        assert_eq!(hello.ticket(), None, "{content:?}");
    }
}

#[test]
fn a_client_that_asks_for_nothing_is_well_formed() {
    let bare = [
        &[3, 3][..],
        &[7; 32],
        &[0],
        &vector16(&[0x13, 0x01]),
        &[1, 0],
    ]
    .concat();
    for bytes in [message(&bare), with_extensions(&[])] {
        let hello = parse(&bytes);
        assert_eq!(hello.server_name(), None);
        assert_eq!(hello.alpn().count(), 0);
        assert_eq!(hello.transport_params(), None);
        assert!(hello.groups().is_empty() && hello.key_shares().is_empty());
        assert!(!hello.supports_tls13() && !hello.has_ticket() && !hello.offers_post_quantum());
    }
}

#[test]
fn every_prefix_asks_for_more_and_bytes_behind_are_left() {
    let bytes = whole();
    for len in 0..bytes.len() {
        assert!(
            ClientHello::parse(&bytes[..len])
                .expect("a prefix")
                .is_none(),
            "{len} bytes"
        );
        let known = ClientHello::message_len(&bytes[..len]).expect("a prefix");
        assert_eq!(known, (len >= 4).then_some(bytes.len()));
    }
    let more = [&bytes[..], &[20, 0, 0]].concat();
    let (_, len) = ClientHello::parse(&more)
        .expect("well-formed")
        .expect("whole");
    assert_eq!(len, bytes.len());
}

/// A message that ends too early, although its header gives this length.
#[test]
fn every_truncation_is_malformed() {
    let bytes = whole();
    // Without extensions it is a ClientHello of an old version.
    let bare = 4 + 2 + 32 + 1 + 6 + 2;
    for len in (4..bytes.len()).filter(|len| *len != bare) {
        malformed(&message(&bytes[4..len]));
    }
}

#[test]
fn another_message_and_a_huge_one_are_told_from_the_header() {
    for kind in (0..=255).filter(|kind| *kind != CLIENT_HELLO) {
        let error = ClientHello::parse(&[kind]).expect_err("another message");
        assert_eq!(
            (error, error.alert()),
            (HelloError::NotClientHello, Alert::UNEXPECTED_MESSAGE)
        );
    }
    assert_eq!(
        ClientHello::message_len(&[1, 1, 0, 0]),
        Ok(Some(4 + 65_536))
    );
    let error = ClientHello::parse(&[1, 1, 0, 1]).expect_err("too long");
    assert_eq!(
        (error, error.alert()),
        (HelloError::TooLong, Alert::DECODE_ERROR)
    );
}

#[test]
fn an_extension_comes_once() {
    malformed(&with_extensions(&[name(b"a"), name(b"b")]));
    parse(&with_extensions(&[
        extension(0x4a4a, &[]),
        extension(0x5a5a, &[]),
    ]));
}

#[test]
fn a_server_name_is_one_ascii_name() {
    malformed(&with_extensions(&[name(b"")]));
    malformed(&with_extensions(&[name("ü".as_bytes())]));
    let entry = [&[0][..], &vector16(b"a")].concat();
    malformed(&with_extensions(&[extension(
        SERVER_NAME,
        &vector16(&entry.repeat(2)),
    )]));
    malformed(&with_extensions(&[extension(
        SERVER_NAME,
        &[vector16(&entry), vec![0]].concat(),
    )]));
    // Names of other types are skipped.
    let other = [&[9][..], &vector16(b"x"), &entry].concat();
    let hello = parse(&with_extensions(&[extension(
        SERVER_NAME,
        &vector16(&other),
    )]));
    assert_eq!(hello.server_name(), Some("a"));
}

#[test]
fn lists_are_whole_and_bounded() {
    malformed(&with_extensions(&[extension(
        SUPPORTED_GROUPS,
        &vector16(&[0, 29, 0]),
    )]));
    malformed(&with_extensions(&[extension(ALPN, &vector16(&[0]))]));
    malformed(&with_extensions(&[extension(ALPN, &vector16(&[2, b'h']))]));
    let groups = |count: usize| {
        with_extensions(&[extension(
            SUPPORTED_GROUPS,
            &vector16(&[0, 29].repeat(count)),
        )])
    };
    assert_eq!(parse(&groups(MAX_ITEMS)).groups().len(), MAX_ITEMS);
    malformed(&groups(MAX_ITEMS + 1));
    let shares = |count: usize| {
        with_extensions(&[extension(
            KEY_SHARE,
            &vector16(&[0, 29, 0, 0].repeat(count)),
        )])
    };
    assert_eq!(parse(&shares(MAX_ITEMS)).key_shares().len(), MAX_ITEMS);
    malformed(&shares(MAX_ITEMS + 1));
    let names =
        |count: usize| with_extensions(&[extension(ALPN, &vector16(&[1, b'x'].repeat(count)))]);
    assert_eq!(parse(&names(MAX_ITEMS)).alpn().count(), MAX_ITEMS);
    malformed(&names(MAX_ITEMS + 1));
}

#[test]
fn debug_output_is_short() {
    assert!(format!("{:?}", parse(&whole())).len() < 300);
}

proptest! {
    #[test]
    fn arbitrary_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..2000)) {
        let _ = ClientHello::parse(&bytes);
        let _ = ClientHello::parse(&message(&bytes));
        let _ = ClientHello::parse(&with_extensions(&[bytes]));
    }

    #[test]
    fn a_changed_byte_never_panics(position in any::<prop::sample::Index>(), value in any::<u8>()) {
        let mut bytes = whole();
        let at = position.index(bytes.len());
        bytes[at] = value;
        if let Ok(Some((hello, len))) = ClientHello::parse(&bytes) {
            prop_assert!(len <= bytes.len());
            let _ = (hello.server_name(), hello.alpn().count(), hello.transport_params());
        }
    }
}
