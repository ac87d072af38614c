//! The 34 transport cases of h3spec against a server, on the wire.
//!
//! [`CASES`] is the list, in the order of h3spec. Each case does to the server what h3spec does;
//! the code is the one in the CONNECTION_CLOSE that the client then read from the wire. It is the
//! exact code, although h3spec also accepts PROTOCOL_VIOLATION and INTERNAL_ERROR in its place.
//!
//! Most cases have a more thorough test of their own, with other values and for both sides:
//!
//! | cases | test |
//! |---|---|
//! | 1 | `rfc9000_04_flow_control::data_beyond_the_window_of_a_stream` |
//! | 2 | `rfc9000_04_flow_control::a_stream_beyond_the_limit` |
//! | 3 | `rfc9000_18_parameters::ids_that_are_not_told` |
//! | 4 to 7 | `rfc9000_18_parameters::parameters_of_servers_from_a_client` |
//! | 8 to 10 | `boundaries` and `rfc9000_18_parameters::integers_out_of_their_bounds` |
//! | 11 | `rfc9000_19_frames::a_frame_of_a_type_nobody_agreed_on` |
//! | 12, 14 | here alone |
//! | 13, 15 | `rfc9000_17_packet_formats::reserved_bits_of_handshake_packets`, `reserved_bits_of_1_rtt_packets` |
//! | 16, 19, 20 | `rfc9000_19_frames::frames_of_a_sender_for_a_stream_the_peer_does_not_send_on` |
//! | 17, 21, 22 | `rfc9000_19_frames::frames_of_a_receiver_for_a_stream_we_do_not_send_on` |
//! | 18 | `rfc9000_19_frames::new_token_from_a_client` |
//! | 23, 24 | `rfc9000_04_flow_control::stream_counts_above_2_to_the_60` |
//! | 25, 26 | `boundaries` |
//! | 27 | `rfc9000_19_frames::handshake_done_from_a_client` |
//! | 28, 33 | here alone |
//! | 29 | `rfc9001_06_key_update::a_tls_key_update` |
//! | 30 | `rfc9000_07_handshake::ends_without_a_common_application_protocol_part` |
//! | 31, 32 | here alone on the wire |
//! | 34 | here alone on the wire |

use hybriq::{Backend, ConnectionError, TransportConfig, error::By, tls::Side};
use hybriq_proto::{
    endpoint::Setup,
    wire::{
        frame::FrameWriter,
        packet::{PacketNumber, Space},
    },
};
use hybriq_sim::{
    Ask, Datagram, DropNth, Forge, Idle, Network, Raw, SERVER_ADDRESS, World, ms, seal_packet,
};
use hybriq_tls::Flight;

use crate::{
    duo::{Duo, client_with, early_pair, server_of},
    flights,
    forger::{client_hello_of, forge_hello, told, with_extension},
    parameters::{self, Parameters},
};

const FLOW_CONTROL_ERROR: u64 = 0x03;
const STREAM_LIMIT_ERROR: u64 = 0x04;
const STREAM_STATE_ERROR: u64 = 0x05;
const FRAME_ENCODING_ERROR: u64 = 0x07;
const TRANSPORT_PARAMETER_ERROR: u64 = 0x08;
const PROTOCOL_VIOLATION: u64 = 0x0a;
const UNEXPECTED_MESSAGE: u64 = 0x010a;
const MISSING_EXTENSION: u64 = 0x016d;
const NO_APPLICATION_PROTOCOL: u64 = 0x0178;

/// quic_transport_parameters.
const PARAMETERS: u16 = 0x39;

/// A client's misdeed.
#[derive(Clone, Copy)]
enum Deed {
    /// Frames in a 1-RTT packet.
    Frames(&'static [u8]),
    /// Frames in a Handshake packet.
    HandshakeFrames(&'static [u8]),
    /// A 1-RTT packet without frames.
    NoFrames,
    /// Reserved bits that are set in a packet of this space.
    ReservedBits(Space),
    /// Changed transport parameters.
    Params(fn(&mut Parameters)),
    /// Changed handshake messages.
    Messages(fn(&mut Flight)),
    /// An application protocol that the server does not know.
    Protocol,
    /// A ClientHello whose transport parameters are replaced by this extension.
    Extension(&'static [u8]),
    /// Frames in a 0-RTT packet.
    EarlyFrames(&'static [u8]),
}

use Deed::{
    EarlyFrames, Extension, Frames, HandshakeFrames, Messages, NoFrames, Params, Protocol,
    ReservedBits,
};

/// Section, misdeed in words, misdeed, and the code that answers it.
type Case = (&'static str, &'static str, Deed, u64);

/// 2^60 + 1 as a variable-length integer.
macro_rules! above_2_to_the_60 {
    ($ty:expr) => {
        &[$ty, 0xd0, 0, 0, 0, 0, 0, 0, 1]
    };
}

const PREFERRED_ADDRESS: &[u8] = &[
    127, 0, 0, 1, 1, 187, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 8, 0, 1, 2, 3, 4,
    5, 6, 7, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15,
];

fn integer(params: &mut Parameters, id: u64, value: u64) {
    params.set(id, &parameters::integer(value));
}

#[rustfmt::skip]
const CASES: [Case; 34] = [
    ("Transport 4.1", "a STREAM frame with a large offset", Frames(&[0x0f, 0, 0x85, 0xf5, 0xe1, 0, 1, 7]), FLOW_CONTROL_ERROR),
    ("Transport 4.6", "a stream id above the limit", Frames(&[0x0b, 0xbb, 0x9a, 0xca, 0, 1, 7]), STREAM_LIMIT_ERROR),
    ("Transport 7.3", "no initial_source_connection_id", Params(|it| it.remove(0x0f)), TRANSPORT_PARAMETER_ERROR),
    ("Transport 18.2", "original_destination_connection_id", Params(|it| it.push(0x00, b"DUMMY")), TRANSPORT_PARAMETER_ERROR),
    ("Transport 18.2", "preferred_address", Params(|it| it.push(0x0d, PREFERRED_ADDRESS)), TRANSPORT_PARAMETER_ERROR),
    ("Transport 18.2", "retry_source_connection_id", Params(|it| it.push(0x10, b"DUMMY")), TRANSPORT_PARAMETER_ERROR),
    ("Transport 18.2", "stateless_reset_token", Params(|it| it.push(0x02, b"DUMMY")), TRANSPORT_PARAMETER_ERROR),
    ("Transport 7.4", "max_udp_payload_size below 1200", Params(|it| integer(it, 0x03, 1090)), TRANSPORT_PARAMETER_ERROR),
    ("Transport 7.4", "ack_delay_exponent above 20", Params(|it| integer(it, 0x0a, 30)), TRANSPORT_PARAMETER_ERROR),
    ("Transport 7.4", "max_ack_delay of 2^14 or more", Params(|it| integer(it, 0x0b, 1 << 15)), TRANSPORT_PARAMETER_ERROR),
    ("Transport 12.4", "a frame of an unknown type", Frames(&[0x20]), FRAME_ENCODING_ERROR),
    ("Transport 12.4", "a packet without frames", NoFrames, PROTOCOL_VIOLATION),
    ("Transport 17.2", "reserved bits of a Handshake packet", ReservedBits(Space::Handshake), PROTOCOL_VIOLATION),
    ("Transport 17.2.4", "PATH_CHALLENGE in a Handshake packet", HandshakeFrames(b"\x1a01234567"), PROTOCOL_VIOLATION),
    ("Transport 17.2", "reserved bits of a 1-RTT packet", ReservedBits(Space::Data), PROTOCOL_VIOLATION),
    ("Transport 19.4", "RESET_STREAM for a send-only stream", Frames(&[0x04, 3, 0, 0]), STREAM_STATE_ERROR),
    ("Transport 19.5", "STOP_SENDING for a stream that does not exist", Frames(&[0x05, 0x40, 101, 0]), STREAM_STATE_ERROR),
    ("Transport 19.7", "NEW_TOKEN", Frames(b"\x07\x05DUMMY"), PROTOCOL_VIOLATION),
    ("Transport 19.8", "STREAM for a stream that the server did not open", Frames(&[0x0a, 1, 0]), STREAM_STATE_ERROR),
    ("Transport 19.8", "STREAM for a send-only stream", Frames(&[0x0a, 3, 0]), STREAM_STATE_ERROR),
    ("Transport 19.10", "MAX_STREAM_DATA for a stream that does not exist", Frames(&[0x11, 0x40, 101, 0x80, 0x0f, 0x42, 0x40]), STREAM_STATE_ERROR),
    ("Transport 19.10", "MAX_STREAM_DATA for a receive-only stream", Frames(&[0x11, 2, 0x80, 0x0f, 0x42, 0x40]), STREAM_STATE_ERROR),
    ("Transport 19.11", "MAX_STREAMS above 2^60", Frames(above_2_to_the_60!(0x12)), FRAME_ENCODING_ERROR),
    ("Transport 19.14", "STREAMS_BLOCKED above 2^60", Frames(above_2_to_the_60!(0x16)), FRAME_ENCODING_ERROR),
    ("Transport 19.15", "NEW_CONNECTION_ID that retires more than it may", Frames(b"\x18\x05\x0f\x08ABCDEFGHabcdefghijklmnop"), FRAME_ENCODING_ERROR),
    ("Transport 19.15", "NEW_CONNECTION_ID with an empty id", Frames(b"\x18\x05\x00\x00abcdefghijklmnop"), FRAME_ENCODING_ERROR),
    ("Transport 19.20", "HANDSHAKE_DONE", Frames(&[0x1e]), PROTOCOL_VIOLATION),
    ("TLS 6", "KeyUpdate in Handshake packets", Messages(|it| after_finished(it, &[24, 0, 0, 1, 1])), UNEXPECTED_MESSAGE),
    ("TLS 6", "KeyUpdate in 1-RTT packets", Frames(&[0x06, 0, 5, 24, 0, 0, 1, 1]), UNEXPECTED_MESSAGE),
    ("TLS 8.1", "no common application protocol", Protocol, NO_APPLICATION_PROTOCOL),
    ("TLS 8.2", "no quic_transport_parameters", Extension(&[]), MISSING_EXTENSION),
    ("TLS 8.2", "the draft's quic_transport_parameters alone", Extension(&[0xff, 0xa5, 0, 0]), MISSING_EXTENSION),
    ("TLS 8.3", "EndOfEarlyData", Messages(|it| before_finished(it, &[5, 0, 0, 0])), UNEXPECTED_MESSAGE),
    ("TLS 8.3", "CRYPTO in 0-RTT packets", EarlyFrames(&[0x06, 0, 6, 8, 0, 0, 2, 0, 0]), PROTOCOL_VIOLATION),
];

fn after_finished(flight: &mut Flight, message: &[u8]) {
    if !flight.crypto.handshake.is_empty() {
        flight.crypto.handshake.extend_from_slice(message);
    }
}

fn before_finished(flight: &mut Flight, message: &[u8]) {
    if !flight.crypto.handshake.is_empty() {
        let finished = flight.crypto.handshake.split();
        flight.crypto.handshake.extend_from_slice(message);
        flight.crypto.handshake.extend_from_slice(&finished);
    }
}

impl Deed {
    /// Returns the code with which the server closed, as the client read it.
    fn answer(self, backend: Backend) -> Option<u64> {
        let transport = TransportConfig::new;
        let server = server_of(backend, transport());
        let client = client_with(backend, transport(), |options| options);
        let code = |duo: Duo| duo.verdict(Side::Server).map(|verdict| verdict.code);
        match self {
            Self::Frames(frames) => {
                let mut duo = Duo::between(&client, server);
                duo.send_raw(Side::Client, frames);
                code(duo)
            }
            Self::NoFrames => {
                let mut duo = Duo::between(&client, server);
                let packet = without_frames(&mut duo);
                duo.put(Side::Client, packet);
                code(duo)
            }
            Self::ReservedBits(Space::Data) => {
                let mut duo = Duo::between(&client, server);
                let connection = duo.connection(Side::Client);
                let packet = connection.forge_with_reserved_bits(Space::Data, 40);
                duo.put(Side::Client, packet);
                code(duo)
            }
            Self::ReservedBits(space) => {
                let mut duo = without_finished(&client, server);
                let connection = duo.connection(Side::Client);
                let packet = connection.forge_with_reserved_bits(space, 1200);
                duo.put(Side::Client, packet);
                code(duo)
            }
            Self::HandshakeFrames(frames) => {
                let mut duo = without_finished(&client, server);
                let connection = duo.connection(Side::Client);
                let fill = |out: &mut FrameWriter<'_>| assert!(out.write(&Raw(frames)));
                let packet = connection.forge(Space::Handshake, |_| (), 1200, fill);
                duo.put(Side::Client, packet);
                code(duo)
            }
            Self::Params(change) => {
                code(Duo::between(&parameters::changing(client, change), server))
            }
            Self::Messages(change) => {
                code(Duo::between(&flights::changing(client, change), server))
            }
            Self::Protocol => {
                let dummy = client_with(backend, transport(), |it| it.alpn(["dummy"]));
                code(Duo::between(&dummy, server))
            }
            Self::Extension(by) => {
                let (hello, scid) = client_hello_of(&client);
                let mut world = World::new(Network::new(1), server);
                forge_hello(&mut world, &with_extension(&hello, PARAMETERS, by), scid);
                world.run_for(ms(10));
                told(&world)
            }
            Self::EarlyFrames(frames) => early(frames),
        }
    }
}

/// Returns two ends after the client's TLS completed and its Finished was lost.
fn without_finished(client: &Setup, server: Setup) -> Duo {
    // The ClientHello takes two datagrams.
    let network = Network::new(1).toward(Side::Server, DropNth::new([2]));
    let mut world = World::new(network.delay(ms(10)), server);
    world.connect(client, Idle);
    let complete = |world: &World| world.client(0).handshake.is_some();
    assert!(world.run_until(ms(2000), complete));
    Duo { world }
}

/// Returns a 1-RTT packet without frames. Its number has four bytes, so that the packet needs no
/// PADDING for its sample.
fn without_frames(duo: &mut Duo) -> Vec<u8> {
    let connection = duo.connection(Side::Client);
    let (_, header, keys) = connection.forge_parts(Space::Data).unwrap();
    seal_packet(&header, PacketNumber::saturating(1 << 24), keys, |_| 0)
}

/// Returns the code that a client reads after it sent frames in a 0-RTT packet.
fn early(frames: &[u8]) -> Option<u64> {
    let (client, server) = early_pair(TransportConfig::new(), TransportConfig::new());
    let mut world = World::new(Network::new(1).delay(ms(10)), server);
    world.connect(&client, Ask::one_byte());
    world.run_for(ms(2000));
    let again = world.connect(&client, Idle);
    world.run_for(ms(0));
    let connection = world.client_connection(again);
    let packet = connection.forge(
        Space::Data,
        |_| (),
        0,
        |out| assert!(out.write(&Raw(frames))),
    );
    let address = world.client_host(again).address;
    world.inject(Side::Server, Datagram::new(address, SERVER_ADDRESS, packet));
    world.run_for(ms(2000));
    match world.client(again).close_reason() {
        Some(ConnectionError::Transport {
            by: By::Peer, code, ..
        }) => Some(code.0),
        _ => None,
    }
}

fn answers_are_right(backend: Backend) {
    let wrong: Vec<_> = CASES
        .into_iter()
        .enumerate()
        // s2n-tls has no 0-RTT data.
        .filter(|(_, case)| backend == Backend::Rustls || !matches!(case.2, Deed::EarlyFrames(_)))
        .filter_map(|(index, (section, what, deed, code))| {
            let answer = deed.answer(backend);
            (answer != Some(code)).then(|| {
                format!(
                    "{}: {section}, {what}: {answer:x?}, not {code:#x}",
                    index + 1
                )
            })
        })
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Proves: security 10 h3spec-cases-close
/// Proves: rfc9001 8.3 end-of-early-data-closes
/// Proves: rfc9001 8.3 crypto-in-0rtt-closes
/// Proves: rfc9001 8.2 parameters-are-required
/// Proves: rfc9001 6 tls-key-update-closes
/// Proves: rfc9000 12.4 packets-without-frames-close
#[test]
fn every_case_closes_with_its_code_over_rustls() {
    answers_are_right(Backend::Rustls);
}

/// Proves: security 10 h3spec-cases-close
/// Proves: rfc9001 8.3 end-of-early-data-closes
#[test]
fn every_case_closes_with_its_code_over_s2n_tls() {
    answers_are_right(Backend::S2nTls);
}
