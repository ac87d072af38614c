//! Tests of the numeric limits of the RFCs: each is tried one below, at, and one above.
//!
//! A line of the table is a test: the value goes onto the wire, and the outcome is what the other
//! end did. To add a limit, add its line. A value that the encoding cannot express is
//! `Impossible` and not tried.

mod probe;

use hybriq::{tls::Side, transport::Version};

use crate::{
    invariants::{UNKNOWN, long},
    rfc9001_04_tls::{crypto, ticket},
};
use probe::{
    WHOLE_LENGTH, active_cids, amplification, byte, close_reason, data_sent, datagram_to_keep,
    datagram_to_send, datagrams_sent, far_number, first_datagram, first_initial, frame, frames,
    frames_from, initial_crypto, largest_sent, length_field, new_cid_of, parameter, payload_of,
    preferred_address, reset, retired, retry_token, stranger, stream, streams_opened, value_from,
    varint, version_information,
};

/// Reaction of the receiver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Outcome {
    /// The value was accepted, and the connection continues.
    Fine,
    /// The receiver closed with this code.
    Closes(u64),
    /// The datagram was dropped, or nothing was sent.
    Ignored,
    /// The datagram was taken for a stateless reset.
    Resets,
    /// The value cannot be written.
    Impossible,
}

use Outcome::{Closes, Fine, Ignored, Impossible, Resets};

const FLOW_CONTROL: Outcome = Closes(0x03);
const STREAM_LIMIT: Outcome = Closes(0x04);
const ENCODING: Outcome = Closes(0x07);
const PARAMETER: Outcome = Closes(0x08);
const CID_LIMIT: Outcome = Closes(0x09);
const VIOLATION: Outcome = Closes(0x0a);
const CRYPTO_BUFFER: Outcome = Closes(0x0d);

/// Largest value of a variable-length integer.
const LARGEST: u64 = (1 << 62) - 1;
/// Largest stream limit.
const STREAMS: u64 = 1 << 60;
/// Window of a stream with the usual configuration.
const STREAM_WINDOW: u64 = 1 << 20;
/// Window of a connection with the usual configuration.
const WINDOW: u64 = STREAM_WINDOW + STREAM_WINDOW / 2;

/// Tries a limit and its neighbours.
fn try_around(name: &str, limit: u64, probe: impl Fn(u64) -> Outcome, expected: [Outcome; 3]) {
    let values = [limit.checked_sub(1), Some(limit), limit.checked_add(1)];
    for (value, expected) in values.into_iter().zip(expected) {
        if let (Some(value), true) = (value, expected != Impossible) {
            let found = probe(value);
            assert_eq!(
                found, expected,
                "{name}: {value}, where the limit is {limit}"
            );
        }
    }
}

/// Makes a test of each line `fn name(value) around limit => what is tried, [below, at, above];`.
macro_rules! boundaries {
    ($(
        $(#[$doc:meta])*
        fn $name:ident($value:ident) around $limit:expr => $probe:expr, $expected:expr;
    )*) => {
        $(
            $(#[$doc])*
            #[test]
            fn $name() {
                try_around(stringify!($name), $limit, |$value| $probe, $expected);
            }
        )*
    };
}

// RFC 9000 §7.4, §18.2: transport parameters.
boundaries! {
    /// Proves: rfc9000 18.2 integers-have-bounds
    fn max_udp_payload_size(n) around 1200 => parameter(0x03, n), [PARAMETER, Fine, Fine];

    /// Proves: rfc9000 18.2 integers-have-bounds
    fn max_udp_payload_size_of_any_datagram(n) around 65_527 => parameter(0x03, n), [Fine, Fine, Fine];

    /// Proves: rfc9000 18.2 integers-have-bounds
    fn ack_delay_exponent(n) around 20 => parameter(0x0a, n), [Fine, Fine, PARAMETER];

    /// Proves: rfc9000 18.2 integers-have-bounds
    fn max_ack_delay(n) around (1 << 14) - 1 => parameter(0x0b, n), [Fine, Fine, PARAMETER];

    /// Proves: rfc9000 18.2 cid-limit-is-two-at-least
    fn active_connection_id_limit(n) around 2 => parameter(0x0e, n), [PARAMETER, Fine, Fine];

    /// Proves: rfc9000 4.6 stream-limits-are-bounded
    fn initial_max_streams_bidi(n) around STREAMS => parameter(0x08, n), [Fine, Fine, PARAMETER];

    /// Proves: rfc9000 4.6 stream-limits-are-bounded
    fn initial_max_streams_uni(n) around STREAMS => parameter(0x09, n), [Fine, Fine, PARAMETER];

    /// Proves: rfc9000 18.2 integers-have-bounds
    fn initial_max_data(n) around LARGEST => parameter(0x04, n), [Fine, Fine, Impossible];

    /// Proves: rfc9000 18.2 reset-token-has-16-bytes
    fn bytes_of_stateless_reset_token(n) around 16 =>
        value_from(Side::Server, 0x02, vec![7; n as usize]), [PARAMETER, Fine, PARAMETER];

    /// Proves: rfc9000 18.2 preferred-address-has-an-id
    fn shortest_id_of_preferred_address(n) around 1 => preferred_address(n, 16), [PARAMETER, Fine, Fine];

    /// Proves: rfc9000 18.2 preferred-address-has-an-id
    fn longest_id_of_preferred_address(n) around 20 => preferred_address(n, 16), [Fine, Fine, PARAMETER];

    /// Proves: rfc9000 18 malformed-parameters-close
    fn token_of_preferred_address(n) around 16 => preferred_address(8, n), [PARAMETER, Fine, PARAMETER];

    /// Proves: rfc9000 18 malformed-parameters-close
    fn bytes_of_disable_active_migration(n) around 0 =>
        value_from(Side::Server, 0x0c, vec![0; n as usize]), [Impossible, Fine, PARAMETER];
}

// RFC 9000 §4: limits.
boundaries! {
    /// Proves: rfc9000 4.1 receiver-closes-on-overrun
    fn data_of_a_stream(n) around STREAM_WINDOW =>
        frames_from(Side::Client, &byte(2, n)), [Fine, Fine, FLOW_CONTROL];

    /// Proves: rfc9000 4.1 receiver-closes-on-overrun
    fn data_of_all_streams(n) around WINDOW =>
        frames_from(Side::Client, &[byte(2, STREAM_WINDOW), byte(6, n - STREAM_WINDOW)].concat()),
        [Fine, Fine, FLOW_CONTROL];

    /// Proves: rfc9000 4.5 final-size-counts
    fn final_size_of_a_stream(n) around STREAM_WINDOW =>
        frames_from(Side::Client, &frame(0x04, &[2, 0, n], &[])), [Fine, Fine, FLOW_CONTROL];

    /// Proves: rfc9000 4.5 final-size-is-final
    fn final_size_and_data(n) around 10 =>
        frames_from(Side::Client, &[byte(2, 10), frame(0x04, &[2, 0, n], &[])].concat()),
        [Closes(0x06), Fine, Fine];

    /// Proves: rfc9000 4.6 stream-beyond-limit-closes
    fn bidirectional_streams(n) around 100 => stream(n, 0), [Fine, Fine, STREAM_LIMIT];

    /// Proves: rfc9000 4.6 stream-beyond-limit-closes
    fn unidirectional_streams(n) around 100 => stream(n, 2), [Fine, Fine, STREAM_LIMIT];

    /// Proves: rfc9000 4.6 stream-limits-are-bounded
    fn max_streams_bidi(n) around STREAMS => frames(&frame(0x12, &[n], &[])), [Fine, Fine, ENCODING];

    /// Proves: rfc9000 4.6 stream-limits-are-bounded
    fn max_streams_uni(n) around STREAMS => frames(&frame(0x13, &[n], &[])), [Fine, Fine, ENCODING];

    /// Proves: rfc9000 19.14 streams-blocked-is-bounded
    fn streams_blocked_bidi(n) around STREAMS => frames(&frame(0x16, &[n], &[])), [Fine, Fine, ENCODING];

    /// Proves: rfc9000 19.14 streams-blocked-is-bounded
    fn streams_blocked_uni(n) around STREAMS => frames(&frame(0x17, &[n], &[])), [Fine, Fine, ENCODING];
}

// RFC 9000 §4, §14: limits of the peer, which we keep.
boundaries! {
    /// Proves: rfc9000 4.6 opener-obeys-the-limit
    fn streams_of_ours(n) around 10 => streams_opened(n), [Fine, Fine, Fine];

    /// Proves: rfc9000 2.2 sender-stays-within-limits
    fn data_of_ours(n) around 1000 => data_sent(0x04, n), [Fine, Fine, Fine];

    /// Proves: rfc9000 2.2 sender-stays-within-limits
    fn data_of_ours_on_a_stream(n) around 1000 => data_sent(0x07, n), [Fine, Fine, Fine];

    /// Proves: rfc9000 18.2 max-udp-payload-size-of-the-peer-is-kept
    fn datagrams_of_ours(n) around 1300 => datagrams_sent(n), [Fine, Fine, Fine];
}

// RFC 9000 §19: fields of frames.
boundaries! {
    /// Proves: rfc9000 19.8 stream-offset-is-bounded
    fn end_of_stream_data(n) around LARGEST =>
        frames_from(Side::Client, &byte(2, n)), [FLOW_CONTROL, FLOW_CONTROL, ENCODING];

    /// Proves: rfc9000 19.6 crypto-offset-is-bounded
    fn end_of_crypto_data(n) around LARGEST =>
        frames_from(Side::Server, &frame(0x06, &[n - 1, 1], &[7])), [CRYPTO_BUFFER, CRYPTO_BUFFER, ENCODING];

    /// Proves: rfc9000 4.1 receiver-closes-on-overrun
    fn final_size(n) around LARGEST =>
        frames_from(Side::Client, &frame(0x04, &[2, 0, n], &[])), [FLOW_CONTROL, FLOW_CONTROL, Impossible];

    /// Proves: rfc9000 19.7 empty-new-token-closes
    fn shortest_token(n) around 1 =>
        frames_from(Side::Server, &frame(0x07, &[n], &vec![7; n as usize])), [ENCODING, Fine, Fine];

    /// Proves: rfc9000 12.4 cut-frames-close
    fn token_and_its_length(n) around 5 =>
        frames_from(Side::Server, &frame(0x07, &[n], &[0; 5])), [Fine, Fine, ENCODING];

    /// Proves: rfc9000 12.4 cut-frames-close
    fn stream_data_and_its_length(n) around 5 =>
        frames_from(Side::Client, &frame(0x0a, &[2, n], &[0; 5])), [Fine, Fine, ENCODING];

    /// Proves: rfc9000 19.15 new-cid-length-is-checked
    fn shortest_new_id(n) around 1 => new_cid_of(n), [ENCODING, Fine, Fine];

    /// Proves: rfc9000 19.15 new-cid-length-is-checked
    fn longest_new_id(n) around 20 => new_cid_of(n), [Fine, Fine, ENCODING];

    /// Proves: rfc9000 19.15 retire-prior-to-is-checked
    fn retire_prior_to(n) around 5 =>
        frames(&frame(0x18, &[5, n, 8], &[9; 8 + 16])), [Fine, Fine, ENCODING];

    /// Proves: rfc9000 12.4 cut-frames-close
    fn token_of_new_id(n) around 16 =>
        frames(&frame(0x18, &[9, 9, 8], &[&[9; 8][..], &vec![0; n as usize]].concat())),
        [ENCODING, Fine, Fine];

    /// Proves: rfc9000 5.1.1 more-ids-than-our-limit-close
    fn ids_of_the_peer(n) around 4 => active_cids(n), [Fine, Fine, CID_LIMIT];

    /// Proves: rfc9000 19.16 retire-of-unknown-closes
    fn retired_id(n) around 3 => retired(n), [Fine, Fine, VIOLATION];

    /// Proves: rfc9000 19.3.1 negative-ack-ranges-close
    fn first_ack_range(n) around 1 => frames_from(Side::Client, &frame(0x02, &[1, 0, 0, n], &[])), [Fine, Fine, ENCODING];

    /// Proves: rfc9000 19.3 ack-of-unsent-closes
    fn acknowledged_packet(n) around largest_sent() =>
        frames_from(Side::Client, &frame(0x02, &[n, 0, 0, 0], &[])), [Fine, Fine, VIOLATION];

    /// Proves: rfc9000 19.3 any-ack-delay-is-taken
    fn ack_delay(n) around LARGEST => frames(&frame(0x02, &[0, n, 0, 0], &[])), [Fine, Fine, Impossible];

    /// Proves: rfc9000 12.4 cut-frames-close
    fn path_challenge_data(n) around 8 => frames(&frame(0x1a, &[], &vec![0; n as usize])), [ENCODING, Fine, Fine];

    /// Proves: rfc9000 12.4 cut-frames-close
    fn path_response_data(n) around 8 => frames(&frame(0x1b, &[], &vec![0; n as usize])), [ENCODING, Fine, Fine];
}

// RFC 9000 §16: lengths of integers.
boundaries! {
    /// Proves: rfc9000 16 integers-have-four-lengths
    fn integers_of_one_byte(n) around 0x3f => frames(&frame(0x10, &[n], &[])), [Fine, Fine, Fine];

    /// Proves: rfc9000 16 integers-have-four-lengths
    fn integers_of_two_bytes(n) around 0x3fff => frames(&frame(0x10, &[n], &[])), [Fine, Fine, Fine];

    /// Proves: rfc9000 16 integers-have-four-lengths
    fn integers_of_four_bytes(n) around 0x3fff_ffff => frames(&frame(0x10, &[n], &[])), [Fine, Fine, Fine];

    /// Proves: rfc9000 16 integers-have-four-lengths
    fn integers_of_eight_bytes(n) around LARGEST => frames(&frame(0x10, &[n], &[])), [Fine, Fine, Impossible];

    /// Proves: rfc9000 12.4 cut-frames-close
    fn bytes_of_an_integer(n) around 8 =>
        frames(&[&[0x10][..], &[&varint(LARGEST)[..], &[0]].concat()[..n as usize]].concat()),
        [ENCODING, Fine, Fine];
}

// RFC 9000 §5, §7, §8, §10, §12, §14, §17: datagrams and packets.
boundaries! {
    /// Proves: rfc9000 14.1 small-initials-are-dropped
    fn first_datagram_of_a_client(n) around 1200 => first_datagram(n), [Ignored, Fine, Fine];

    /// Proves: rfc9000 8 three-times-what-came
    fn bytes_before_validation(n) around 1200 => amplification(n), [Ignored, Fine, Fine];

    /// Proves: rfc9000 5.2.2 small-packets-of-unknown-versions-are-dropped
    fn datagram_of_an_unknown_version(n) around 1200 =>
        stranger(long(UNKNOWN, &[1; 8], &[2; 8], n as usize)), [Ignored, Fine, Fine];

    /// Proves: rfc9000 7.2 short-first-dcids-are-dropped
    fn shortest_first_id(n) around 8 => first_initial(Version::V1, n, 8), [Ignored, Fine, Fine];

    /// Proves: rfc9000 17.2 long-ids-are-dropped
    fn longest_first_id(n) around 20 => first_initial(Version::V1, n, 8), [Fine, Fine, Ignored];

    /// Proves: rfc9000 17.2 long-ids-are-dropped
    fn longest_id_of_a_client(n) around 20 => first_initial(Version::V1, 8, n), [Fine, Fine, Ignored];

    /// Proves: rfc8999 5.3 ids-of-other-versions
    fn longest_id_of_an_unknown_version(n) around 255 =>
        stranger(long(UNKNOWN, &vec![1; n as usize], &[2; 8], 1200)), [Fine, Fine, Impossible];

    /// Proves: rfc9000 10.3 small-packets-are-dropped
    fn stateless_reset(n) around 21 => reset(n), [Ignored, Resets, Resets];

    /// Proves: rfc9000 12.4 packets-without-frames-close
    fn bytes_of_frames(n) around 1 => payload_of(n), [VIOLATION, Fine, Fine];
}

// RFC 9000 §12, §17, RFC 9368, RFC 9369: headers, packet numbers and versions.
boundaries! {
    /// Proves: rfc9000 7.2 short-first-dcids-are-dropped
    fn shortest_first_id_of_version_2(n) around 8 => first_initial(Version::V2, n, 8), [Ignored, Fine, Fine];

    /// Proves: rfc9000 17.2 long-ids-are-dropped
    fn longest_first_id_of_version_2(n) around 20 => first_initial(Version::V2, n, 8), [Fine, Fine, Ignored];

    /// Proves: rfc9001 5.5 packets-that-do-not-open-are-dropped
    fn length_of_an_initial(n) around WHOLE_LENGTH => length_field(n), [Ignored, Fine, Ignored];

    /// Proves: rfc9000 17.1 packet-numbers-are-expanded
    fn packet_number_of_one_byte(n) around 1 << 7 => far_number(1, n), [Fine, Fine, Ignored];

    /// Proves: rfc9000 17.1 packet-numbers-are-expanded
    fn packet_number_of_two_bytes(n) around 1 << 15 => far_number(2, n), [Fine, Fine, Ignored];

    /// Proves: rfc9000 17.1 packet-numbers-are-expanded
    fn packet_number_of_three_bytes(n) around 1 << 23 => far_number(3, n), [Fine, Fine, Ignored];

    /// Proves: rfc9000 17.1 packet-numbers-are-expanded
    fn packet_number_of_four_bytes(n) around 1 << 31 => far_number(4, n), [Fine, Fine, Ignored];

    /// Proves: rfc9000 17.2.5.2 empty-retry-token-is-dropped
    fn shortest_retry_token(n) around 1 => retry_token(n), [Ignored, Fine, Fine];

    /// Proves: rfc9000 12.4 cut-frames-close
    fn reason_and_its_length(n) around 5 => close_reason(n), [Fine, Fine, ENCODING];

    /// Proves: rfc9000 18 malformed-parameters-close
    fn bytes_of_version_information(n) around 8 => version_information(n), [PARAMETER, Fine, PARAMETER];
}

// RFC 9000 §7.5, RFC 9001 §4: handshakes. The RFC asks for 4096 bytes; we keep more.
boundaries! {
    /// Proves: rfc9000 7.5 crypto-out-of-order-is-buffered
    fn crypto_data_that_must_be_kept(n) around 4096 => initial_crypto(n), [Fine, Fine, Fine];

    /// Proves: rfc9000 7.5 crypto-overflow-closes
    fn crypto_data_of_a_client_hello(n) around 16 * 1024 => initial_crypto(n), [Fine, Fine, CRYPTO_BUFFER];

    /// Proves: rfc9000 7.5 crypto-overflow-closes
    fn crypto_data_after_the_handshake(n) around 64 * 1024 =>
        frames_from(Side::Server, &frame(0x06, &[n - 1, 1], &[7])), [Fine, Fine, CRYPTO_BUFFER];

    /// Proves: rfc9001 4.6.1 early-data-size-is-fixed
    fn early_data_of_a_ticket(n) around u32::MAX.into() =>
        frames_from(Side::Server, &crypto(0, &ticket(u32::try_from(n).ok()))), [VIOLATION, Fine, Impossible];
}

// RFC 9221 §3.
boundaries! {
    /// Proves: rfc9221 3 datagrams-fit-the-limit
    fn datagram_frame_for_the_peer(n) around 100 => datagram_to_send(n), [Fine, Fine, Ignored];

    /// Proves: rfc9221 3 unannounced-datagrams-close
    fn bytes_kept_for_datagrams(n) around 1 => datagram_to_keep(n), [VIOLATION, Fine, Fine];

    /// Proves: rfc9000 12.4 cut-frames-close
    fn datagram_and_its_length(n) around 5 => frames(&frame(0x31, &[n], &[0; 5])), [Fine, Fine, ENCODING];
}
