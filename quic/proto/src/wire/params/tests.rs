use std::time::Duration;

use hybriq_tls::Side;
use proptest::{collection::vec, prelude::*};

use super::{Params, PreferredAddress, VersionInformation, id, put, put_integer};
use crate::wire::{
    Reader, VarInt,
    error::Code,
    limits,
    packet::{Cid, Version, Versions},
};

fn encoded(params: &Params, side: Side) -> Vec<u8> {
    let mut bytes = Vec::new();
    params.encode(side, &mut bytes);
    bytes
}

/// One parameter.
fn parameter(id: u64, value: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    put(&mut bytes, id, value);
    bytes
}

/// One parameter that is an integer.
fn integer(id: u64, value: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    put_integer(&mut bytes, id, value);
    bytes
}

fn refused(bytes: &[u8], from: Side, reason: &str) {
    let error = Params::decode(bytes, from).expect_err("unusable parameters");
    assert_eq!(error.code, Code::TRANSPORT_PARAMETER_ERROR);
    assert!(error.reason.contains(reason), "{error}");
}

fn accepted(bytes: &[u8]) -> Params {
    Params::decode(bytes, Side::Server).expect("usable parameters")
}

fn cid() -> impl Strategy<Value = Option<Cid>> {
    proptest::option::of(vec(any::<u8>(), 0..=20).prop_map(|bytes| Cid::new(&bytes).expect("fits")))
}

fn params() -> impl Strategy<Value = Params> {
    let max = 0..=VarInt::MAX.get();
    let streams = 0..=1_u64 << 60;
    let windows = (max.clone(), max.clone(), max.clone(), max.clone());
    let counts = (
        streams.clone(),
        streams,
        2..=VarInt::MAX.get(),
        1200..=VarInt::MAX.get(),
    );
    let asked = proptest::option::of(0_u64..1 << 24);
    let times = (max, 0_u64..1 << 14, 0_u8..=20, any::<bool>(), asked);
    let ids = (cid(), cid(), cid(), any::<Option<[u8; 16]>>());
    (windows, counts, times, ids).prop_map(|(windows, counts, times, ids)| Params {
        grease_quic_bit: counts.0 % 2 == 1,
        original_dcid: ids.0,
        retry_scid: ids.1,
        initial_scid: ids.2,
        stateless_reset_token: ids.3.map(Into::into),
        max_idle_timeout: Duration::from_millis(times.0),
        max_udp_payload_size: counts.3,
        initial_max_data: windows.0,
        initial_max_stream_data_bidi_local: windows.1,
        initial_max_stream_data_bidi_remote: windows.2,
        initial_max_stream_data_uni: windows.3,
        initial_max_streams_bidi: counts.0,
        initial_max_streams_uni: counts.1,
        ack_delay_exponent: times.2,
        max_ack_delay: Duration::from_millis(times.1),
        disable_active_migration: times.3,
        active_connection_id_limit: counts.2,
        max_datagram_frame_size: windows.0 >> 40,
        reset_stream_at: windows.1 & 1 == 1,
        min_ack_delay: times
            .4
            .map(|delay| Duration::from_micros(delay.min(1000 * times.1))),
        ..Params::default()
    })
}

proptest! {
    #[test]
    fn what_a_server_sends_survives_the_wire(params in params()) {
        let bytes = encoded(&params, Side::Server);
        prop_assert_eq!(Params::decode(&bytes, Side::Server), Ok(params));
    }

    #[test]
    fn what_a_client_sends_survives_the_wire(params in params()) {
        let bytes = encoded(&params, Side::Client);
        let client = Params {
            original_dcid: None,
            retry_scid: None,
            stateless_reset_token: None,
            ..params
        };
        prop_assert_eq!(Params::decode(&bytes, Side::Client), Ok(client));
    }

    /// Proves: security 1 arbitrary-bytes-are-errors-or-frames
    #[test]
    fn arbitrary_bytes_are_parameters_or_an_error(bytes in vec(any::<u8>(), 0..400)) {
        for from in [Side::Client, Side::Server] {
            if let Err(error) = Params::decode(&bytes, from) {
                prop_assert_eq!(error.code, Code::TRANSPORT_PARAMETER_ERROR);
            }
        }
    }
}

#[test]
fn absent_parameters_have_the_defaults_of_rfc_9000() {
    let params = accepted(&[]);
    assert_eq!(params, Params::default());
    assert_eq!(params.max_udp_payload_size, 65_527);
    assert_eq!(params.ack_delay_exponent, 3);
    assert_eq!(params.max_ack_delay, Duration::from_millis(25));
    assert_eq!(params.active_connection_id_limit, 2);
    assert_eq!(params.max_idle_timeout, Duration::ZERO);
    assert!(!params.disable_active_migration);
}

#[test]
fn defaults_are_not_sent_but_one_reserved_parameter_is() {
    for scid in [None, Some(Cid::EMPTY), Some(Cid::from([0xab; 8]))] {
        let bytes = encoded(
            &Params {
                initial_scid: scid,
                ..Params::default()
            },
            Side::Client,
        );
        let mut reader = Reader::new(&bytes);
        if scid.is_some() {
            assert_eq!(reader.varint(), Ok(id::INITIAL_SCID));
            reader.prefixed().expect("a connection id");
        }
        assert_eq!(
            reader.varint().expect("an id") % 31,
            27,
            "an id of the form 31 * N + 27"
        );
        reader.prefixed().expect("a value");
        assert!(reader.is_empty());
    }
}

#[test]
fn reserved_ids_have_16_bits_and_are_not_known() {
    for number in (0..10_000).chain([u32::MAX.into(), u64::MAX]) {
        let id = id::reserved(number);
        assert_eq!(id % 31, 27);
        assert!((1 << 14..1 << 16).contains(&id), "{id:#x}");
        assert_eq!(id::bit(id), None, "{id:#x}");
    }
}

/// Proves: rfc9000 7.4 invalid-parameters-close
/// Proves: security 1 transport-parameter-violations-close
#[test]
fn values_end_where_rfc_9000_18_2_says() {
    for (id, least, most) in [
        (id::MAX_UDP_PAYLOAD_SIZE, 1200, VarInt::MAX.get()),
        (id::INITIAL_MAX_DATA, 0, VarInt::MAX.get()),
        (id::INITIAL_MAX_STREAMS_BIDI, 0, 1 << 60),
        (id::INITIAL_MAX_STREAMS_UNI, 0, 1 << 60),
        (id::ACK_DELAY_EXPONENT, 0, 20),
        (id::MAX_ACK_DELAY, 0, (1 << 14) - 1),
        (id::ACTIVE_CONNECTION_ID_LIMIT, 2, VarInt::MAX.get()),
    ] {
        let name = super::id::name(id);
        accepted(&integer(id, least));
        accepted(&integer(id, most));
        if least > 0 {
            refused(&integer(id, least - 1), Side::Server, &name);
        }
        if most < VarInt::MAX.get() {
            refused(&integer(id, most + 1), Side::Server, &name);
        }
    }
}

#[test]
fn min_ack_delay_is_at_most_max_ack_delay() {
    let delays = |min, max| {
        [
            integer(id::MIN_ACK_DELAY, min),
            integer(id::MAX_ACK_DELAY, max),
        ]
    };
    let params = accepted(&delays(7000, 7).concat());
    assert_eq!(params.min_ack_delay, Some(Duration::from_millis(7)));
    let above = "min_ack_delay is above max_ack_delay";
    refused(&delays(7001, 7).concat(), Side::Client, above);
    let [min, max] = delays(7001, 7);
    refused(&[max, min].concat(), Side::Server, above);
    refused(&integer(id::MIN_ACK_DELAY, 25_001), Side::Server, above);
    refused(
        &integer(id::MIN_ACK_DELAY, VarInt::MAX.get()),
        Side::Server,
        above,
    );
    accepted(&integer(id::MIN_ACK_DELAY, 25_000));
    let twice = [integer(id::MIN_ACK_DELAY, 1), integer(id::MIN_ACK_DELAY, 1)].concat();
    refused(&twice, Side::Client, "min_ack_delay came twice");
}

#[test]
fn an_integer_may_be_long_but_must_fill_its_parameter() {
    let params = accepted(&parameter(
        id::ACK_DELAY_EXPONENT,
        &[0xc0, 0, 0, 0, 0, 0, 0, 7],
    ));
    assert_eq!(params.ack_delay_exponent, 7);
    let too_long = parameter(id::ACK_DELAY_EXPONENT, &[7, 0]);
    refused(
        &too_long,
        Side::Server,
        "ack_delay_exponent is longer than its integer",
    );
    refused(
        &parameter(id::MAX_IDLE_TIMEOUT, &[]),
        Side::Server,
        "max_idle_timeout ends early",
    );
    refused(
        &parameter(id::MAX_IDLE_TIMEOUT, &[0x40]),
        Side::Server,
        "ends early",
    );
}

#[test]
fn values_of_bytes_have_their_lengths() {
    for id in [id::ORIGINAL_DCID, id::INITIAL_SCID, id::RETRY_SCID] {
        accepted(&parameter(id, &[]));
        accepted(&parameter(id, &[1; 20]));
        refused(
            &parameter(id, &[1; 21]),
            Side::Server,
            "longer than 20 bytes",
        );
    }
    for len in [0, 15, 17] {
        let token = parameter(id::STATELESS_RESET_TOKEN, &vec![1; len]);
        refused(
            &token,
            Side::Server,
            "stateless_reset_token is not 16 bytes long",
        );
    }
    assert!(accepted(&parameter(id::DISABLE_ACTIVE_MIGRATION, &[])).disable_active_migration);
    refused(
        &parameter(id::DISABLE_ACTIVE_MIGRATION, &[1]),
        Side::Server,
        "is not empty",
    );
}

#[test]
fn a_preferred_address_is_checked() {
    let address = |cid_len: u8| {
        [
            &[0; 24][..],
            &[cid_len],
            &vec![1; usize::from(cid_len)],
            &[2; 16],
        ]
        .concat()
    };
    accepted(&parameter(id::PREFERRED_ADDRESS, &address(1)));
    accepted(&parameter(id::PREFERRED_ADDRESS, &address(20)));
    let refuse = |value: &[u8], reason| {
        refused(
            &parameter(id::PREFERRED_ADDRESS, value),
            Side::Server,
            reason,
        );
    };
    refuse(&address(0), "has an empty connection id");
    refuse(&address(21), "longer than 20 bytes");
    refuse(&[&address(8)[..], &[0]].concat(), "is too long");
    for cut in 0..address(8).len() {
        refuse(&address(8)[..cut], "ends early");
    }
}

/// Proves: rfc9000 18.2 preferred-address-of-one-family
#[test]
fn a_preferred_address_comes_back_as_it_was_sent() {
    let both = PreferredAddress {
        v4: Some("192.0.2.1:443".parse().unwrap()),
        v6: Some("[2001:db8::1]:4433".parse().unwrap()),
        cid: Cid::from([7; 8]),
        reset_token: [9; 16].into(),
    };
    let only_v4 = PreferredAddress { v6: None, ..both };
    let only_v6 = PreferredAddress { v4: None, ..both };
    for address in [both, only_v4, only_v6] {
        let params = Params {
            preferred_address: Some(address),
            ..Params::default()
        };
        let mut bytes = Vec::new();
        params.encode(Side::Server, &mut bytes);
        let decoded = Params::decode(&bytes, Side::Server).unwrap();
        assert_eq!(decoded.preferred_address, Some(address));
        bytes.clear();
        params.encode(Side::Client, &mut bytes);
        let decoded = Params::decode(&bytes, Side::Client).unwrap();
        assert_eq!(decoded.preferred_address, None, "only a server has one");
    }
}

/// Proves: rfc9000 18.2 client-sends-no-server-parameters
/// Proves: security 1 transport-parameter-violations-close
#[test]
fn a_client_must_not_send_what_only_servers_know() {
    for (id, value) in [
        (id::ORIGINAL_DCID, &[0; 8][..]),
        (id::STATELESS_RESET_TOKEN, &[0; 16]),
        (id::PREFERRED_ADDRESS, &[1; 24 + 1 + 1 + 16]),
        (id::RETRY_SCID, &[0; 8]),
    ] {
        let bytes = parameter(id, value);
        accepted(&bytes);
        refused(
            &bytes,
            Side::Client,
            &format!("client sent {}", super::id::name(id)),
        );
    }
}

/// Proves: rfc9000 7.4 parameters-come-once
/// Proves: security 1 transport-parameter-violations-close
#[test]
fn a_parameter_comes_once() {
    let known = integer(id::INITIAL_MAX_DATA, 5);
    refused(
        &[&known[..], &known].concat(),
        Side::Client,
        "initial_max_data came twice",
    );
    let unknown = parameter(0x1234, b"x");
    let other = parameter(0x1235, b"x");
    accepted(&[&unknown[..], &other].concat());
    let bytes = [&unknown[..], &other, &unknown].concat();
    refused(
        &bytes,
        Side::Client,
        "transport parameter 0x1234 came twice",
    );
    // However many unknown ones come between.
    let mut bytes = parameter(id::RESET_STREAM_AT, b"");
    for n in 0..=limits::UNKNOWN_PARAMS as u64 {
        bytes.extend(parameter(31 * n + 27, b"?"));
    }
    bytes.extend(parameter(id::RESET_STREAM_AT, b""));
    refused(&bytes, Side::Client, "reset_stream_at came twice");
}

/// Proves: rfc9000 7.4.2 unknown-parameters-are-ignored
#[test]
fn unknown_parameters_are_ignored_however_many() {
    let many = |count: u64| {
        (0..count)
            .flat_map(|n| parameter(31 * n + 27, b"?"))
            .collect::<Vec<_>>()
    };
    let bound = limits::UNKNOWN_PARAMS as u64;
    for count in [bound, bound + 1, 20 * bound] {
        assert_eq!(accepted(&many(count)), Params::default());
    }
}

/// Proves: security 1 transport-parameter-violations-close
#[test]
fn cut_parameters_are_refused() {
    let bytes = parameter(id::INITIAL_SCID, &[1; 8]);
    for cut in 1..bytes.len() {
        refused(&bytes[..cut], Side::Client, "cut short");
    }
}

/// Proves: rfc9287 3 grease-parameter-is-empty
#[test]
fn grease_quic_bit_is_empty() {
    assert!(accepted(&parameter(id::GREASE_QUIC_BIT, &[])).grease_quic_bit);
    assert!(!accepted(&[]).grease_quic_bit);
    for side in [Side::Client, Side::Server] {
        let wrong = "grease_quic_bit is not empty";
        refused(&parameter(id::GREASE_QUIC_BIT, &[0]), side, wrong);
    }
}

fn versions(numbers: &[u32]) -> Vec<u8> {
    let value: Vec<u8> = numbers.iter().flat_map(|it| it.to_be_bytes()).collect();
    parameter(id::VERSION_INFORMATION, &value)
}

/// Proves: rfc9368 3 client-lists-its-chosen-version
#[test]
fn version_information_survives_the_wire_with_a_version_nobody_speaks() {
    let params = Params {
        initial_scid: Some(Cid::from([7, 6, 5, 4, 3, 2, 1, 0])),
        version_information: Some(VersionInformation::new(Version::V1, Versions::DEFAULT)),
        ..Params::default()
    };
    for side in [Side::Client, Side::Server] {
        let decoded = Params::decode(&encoded(&params, side), side).expect("usable");
        let info = decoded.version_information.expect("there");
        assert_eq!(info.chosen, 1);
        let [reserved, rest @ ..] = &info.available[..] else {
            panic!("nothing available")
        };
        assert_eq!(reserved & 0x0f0f_0f0f, 0x0a0a_0a0a);
        assert_eq!(rest, [0x6b33_43cf, 1]);
    }
}

/// Proves: rfc9368 3 malformed-version-information-closes
#[test]
fn malformed_version_information_is_refused() {
    for from in [Side::Client, Side::Server] {
        refused(&parameter(id::VERSION_INFORMATION, &[]), from, "is empty");
        for len in [1, 3, 5, 7] {
            let cut = parameter(id::VERSION_INFORMATION, &[1, 1, 1, 1, 1, 1, 1][..len]);
            refused(&cut, from, "is not made of versions");
        }
        refused(&versions(&[0, 1]), from, "has a version 0");
        refused(&versions(&[1, 1, 0]), from, "has a version 0");
        let twice = [versions(&[1, 1]), versions(&[1, 1])].concat();
        refused(&twice, from, "came twice");
    }
}

/// Proves: rfc9368 4 unlisted-chosen-version-closes
#[test]
fn a_clients_chosen_version_is_among_the_available_ones() {
    let rule = "has a Chosen Version that is not available";
    refused(&versions(&[1]), Side::Client, rule);
    refused(&versions(&[1, 2, 3]), Side::Client, rule);
    let server = accepted(&versions(&[1])).version_information;
    assert_eq!(server.map(|info| info.available.len()), Some(0));
}

/// Proves: rfc9368 3 unknown-versions-are-ignored
#[test]
fn of_many_available_versions_a_few_are_looked_at() {
    let mut numbers = vec![1];
    numbers.extend(1..1000);
    let params = Params::decode(&versions(&numbers), Side::Client).expect("usable");
    let info = params.version_information.expect("there");
    assert_eq!(info.available.len(), limits::AVAILABLE_VERSIONS);
}

#[test]
fn a_servers_commitment_survives_the_wire_and_no_client_sends_one() {
    for (seconds, told) in [(0, 0), (86_400, 86_400), (1 << 40, u32::MAX.into())] {
        let params = Params {
            post_quantum_commitment: Some(Duration::from_secs(seconds)),
            ..Params::default()
        };
        let decoded = accepted(&encoded(&params, Side::Server));
        let expected = Some(Duration::from_secs(told));
        assert_eq!(decoded.post_quantum_commitment, expected);
        let bytes = encoded(&params, Side::Client);
        let decoded = Params::decode(&bytes, Side::Client).expect("usable parameters");
        assert_eq!(decoded.post_quantum_commitment, None);
    }
    for len in [0, 3, 5] {
        let bytes = parameter(id::POST_QUANTUM_COMMITMENT, &[0; 5][..len]);
        refused(
            &bytes,
            Side::Server,
            "post_quantum_commitment is not 4 bytes long",
        );
    }
    let bytes = parameter(id::POST_QUANTUM_COMMITMENT, &[0; 4]);
    refused(&bytes, Side::Client, "client sent post_quantum_commitment");
    // Parameters of this form have no meaning (RFC 9000 §18.1).
    assert_ne!(id::POST_QUANTUM_COMMITMENT % 31, 27);
}
