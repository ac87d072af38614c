//! RFC 9000 §18: transport parameters that say what they must not.

use std::sync::{Arc, Mutex};

use hybriq::{Direction, tls::Side};
use hybriq_sim::ms;

use crate::parameters::{Parameters, code_for, duo, integer};

const TRANSPORT_PARAMETER_ERROR: Option<u64> = Some(0x08);

const BOTH: [Side; 2] = [Side::Client, Side::Server];

const ORIGINAL_DCID: u64 = 0x00;
const MAX_IDLE_TIMEOUT: u64 = 0x01;
const STATELESS_RESET_TOKEN: u64 = 0x02;
const MAX_UDP_PAYLOAD_SIZE: u64 = 0x03;
const INITIAL_MAX_DATA: u64 = 0x04;
const INITIAL_MAX_STREAMS: [u64; 2] = [0x08, 0x09];
const ACK_DELAY_EXPONENT: u64 = 0x0a;
const MAX_ACK_DELAY: u64 = 0x0b;
const DISABLE_ACTIVE_MIGRATION: u64 = 0x0c;
const PREFERRED_ADDRESS: u64 = 0x0d;
const ACTIVE_CONNECTION_ID_LIMIT: u64 = 0x0e;
const INITIAL_SCID: u64 = 0x0f;
const RETRY_SCID: u64 = 0x10;

fn is_refused(id: u64, value: &[u8]) {
    for liar in BOTH {
        let value = value.to_vec();
        let code = code_for(liar, {
            let value = value.clone();
            move |parameters| parameters.set(id, &value)
        });
        let what = format!("{id:#x} is {value:x?} for the {liar:?}");
        assert_eq!(code, TRANSPORT_PARAMETER_ERROR, "{what}");
    }
}

/// Proves: rfc9000 18.2 integers-have-bounds
/// Proves: rfc9000 7.4 invalid-parameters-close
#[test]
fn integers_out_of_their_bounds() {
    is_refused(MAX_UDP_PAYLOAD_SIZE, &integer(1199));
    is_refused(MAX_UDP_PAYLOAD_SIZE, &integer(0));
    is_refused(ACK_DELAY_EXPONENT, &integer(21));
    is_refused(MAX_ACK_DELAY, &integer(1 << 14));
}

/// Proves: rfc9000 4.6 stream-limits-are-bounded
/// Proves: rfc9000 7.4 invalid-parameters-close
#[test]
fn stream_counts_above_2_to_the_60() {
    for id in INITIAL_MAX_STREAMS {
        is_refused(id, &integer((1 << 60) + 1));
    }
}

/// Proves: rfc9000 18.2 cid-limit-is-two-at-least
#[test]
fn fewer_connection_ids_than_two() {
    is_refused(ACTIVE_CONNECTION_ID_LIMIT, &integer(0));
    is_refused(ACTIVE_CONNECTION_ID_LIMIT, &[1]);
}

/// Proves: rfc9000 18 malformed-parameters-close
/// Proves: rfc9000 7.4 invalid-parameters-close
#[test]
fn values_that_are_no_values() {
    for id in [
        MAX_IDLE_TIMEOUT,
        INITIAL_MAX_DATA,
        ACTIVE_CONNECTION_ID_LIMIT,
    ] {
        is_refused(id, &[]);
        is_refused(id, &[0x40]);
        is_refused(id, &[4, 0]);
    }
    is_refused(DISABLE_ACTIVE_MIGRATION, &[1]);
    is_refused(INITIAL_SCID, &[7; 21]);
}

/// Proves: rfc9000 18.2 client-sends-no-server-parameters
#[test]
fn parameters_of_servers_from_a_client() {
    let mut address = vec![0; 4 + 2 + 16 + 2];
    address.push(8);
    address.extend([7; 8 + 16]);
    for (id, value) in [
        (ORIGINAL_DCID, vec![7; 8]),
        (STATELESS_RESET_TOKEN, vec![7; 16]),
        (PREFERRED_ADDRESS, address),
        (RETRY_SCID, vec![7; 8]),
    ] {
        let code = code_for(Side::Client, move |parameters| parameters.push(id, &value));
        assert_eq!(code, TRANSPORT_PARAMETER_ERROR, "{id:#x}");
    }
}

/// Proves: rfc9000 18.2 reset-token-has-16-bytes
#[test]
fn a_reset_token_of_another_length() {
    for len in [0, 15, 17] {
        let code = code_for(Side::Server, move |parameters| {
            parameters.set(STATELESS_RESET_TOKEN, &vec![7; len]);
        });
        assert_eq!(code, TRANSPORT_PARAMETER_ERROR, "{len}");
    }
}

/// Proves: rfc9000 18.2 preferred-address-has-an-id
#[test]
fn a_preferred_address_without_an_id() {
    let address = |cid_len: u8, behind: usize| {
        let mut value = vec![203, 0, 113, 1, 0x11, 0x51];
        value.extend([0; 18]);
        value.push(cid_len);
        value.resize(value.len() + behind, 7);
        value
    };
    for value in [
        address(0, 16),
        address(21, 21 + 16),
        address(8, 8 + 15),
        address(8, 8 + 17),
        address(8, 0)[..24].to_vec(),
    ] {
        let code = code_for(Side::Server, move |parameters| {
            parameters.set(PREFERRED_ADDRESS, &value);
        });
        assert_eq!(code, TRANSPORT_PARAMETER_ERROR);
    }
}

/// Proves: rfc9000 7.4 parameters-come-once
#[test]
fn a_parameter_that_comes_twice() {
    for liar in BOTH {
        for id in [INITIAL_MAX_DATA, INITIAL_SCID, 0x1234] {
            let code = code_for(liar, move |parameters| {
                let known = parameters.0.iter().find(|(other, _)| *other == id);
                let value = known.map_or(vec![7], |(_, value)| value.clone());
                parameters.set(id, &value);
                parameters.push(id, &value);
            });
            assert_eq!(code, TRANSPORT_PARAMETER_ERROR, "{id:#x} from {liar:?}");
        }
    }
}

/// Proves: rfc9000 7.4 parameters-come-once
/// Proves: rfc9000 18.2 client-sends-no-server-parameters
#[test]
fn our_own_parameters() {
    for side in BOTH {
        let said = Arc::new(Mutex::new(Vec::new()));
        let keep = said.clone();
        let duo = duo(side, move |parameters| {
            keep.lock().unwrap().clone_from(&parameters.0);
        });
        duo.assert_alive();
        let mut ids: Vec<_> = said.lock().unwrap().iter().map(|(id, _)| *id).collect();
        let count = ids.len();
        ids.sort_unstable();
        ids.dedup();
        assert_eq!(ids.len(), count, "none twice");
        let of_servers = [
            ORIGINAL_DCID,
            STATELESS_RESET_TOKEN,
            PREFERRED_ADDRESS,
            RETRY_SCID,
        ];
        let told = of_servers.iter().any(|id| ids.contains(id));
        assert_eq!(told, side.is_server());
        assert!(ids.contains(&INITIAL_SCID));
    }
}

/// Proves: rfc9000 7.3 missing-id-parameters-close
#[test]
fn ids_that_are_not_told() {
    for (liar, id) in [
        (Side::Client, INITIAL_SCID),
        (Side::Server, INITIAL_SCID),
        (Side::Server, ORIGINAL_DCID),
    ] {
        let code = code_for(liar, move |parameters| parameters.remove(id));
        assert_eq!(code, TRANSPORT_PARAMETER_ERROR, "{id:#x} from {liar:?}");
    }
}

/// Proves: rfc9000 7.3 ids-are-confirmed
#[test]
fn ids_that_are_not_those_of_the_wire() {
    for (liar, id) in [
        (Side::Client, INITIAL_SCID),
        (Side::Server, INITIAL_SCID),
        (Side::Server, ORIGINAL_DCID),
        // There was no Retry.
        (Side::Server, RETRY_SCID),
    ] {
        for other in [&[][..], &[7; 8], &[7; 20]] {
            let code = code_for(liar, move |parameters| parameters.set(id, other));
            assert_eq!(code, TRANSPORT_PARAMETER_ERROR, "{id:#x} from {liar:?}");
        }
    }
}

/// The two ends understand each other: each gets what the other says on a stream.
fn talk(liar: Side, change: impl Fn(&mut Parameters) + Send + Sync + 'static) {
    let mut duo = duo(liar, change);
    duo.assert_alive();
    for side in BOTH {
        let streams = duo.connection(side).streams();
        let id = streams.open(Direction::Uni).unwrap();
        streams.write(id, &[7; 100]).unwrap();
        duo.world.run_for(ms(200));
        let totals = duo.connection(side.peer()).streams().totals();
        assert_eq!(totals.bytes_received, 100);
    }
    duo.assert_alive();
}

/// Proves: rfc9000 7.4.2 unknown-parameters-are-ignored
#[test]
fn parameters_nobody_knows() {
    for liar in BOTH {
        talk(liar, |parameters| {
            for number in 0..100 {
                parameters.push(31 * (number << 50 | number) + 27, &[0xff; 3]);
            }
            parameters.push((1 << 62) - 1, &[]);
            parameters.push(0x3fff, &[0; 300]);
        });
    }
}

/// Proves: rfc9000 18.2 integers-have-bounds
#[test]
fn integers_at_their_bounds() {
    const MOST: u64 = (1 << 62) - 1;
    for liar in BOTH {
        talk(liar, |parameters| {
            for (id, value) in [
                (MAX_IDLE_TIMEOUT, MOST),
                (MAX_UDP_PAYLOAD_SIZE, MOST),
                (INITIAL_MAX_DATA, MOST),
                (0x05, MOST),
                (0x06, MOST),
                (0x07, MOST),
                (0x08, 1 << 60),
                (0x09, 1 << 60),
                (ACK_DELAY_EXPONENT, 20),
                (MAX_ACK_DELAY, (1 << 14) - 1),
                (ACTIVE_CONNECTION_ID_LIMIT, MOST),
                (0x20, MOST),
            ] {
                parameters.set(id, &integer(value));
            }
        });
        talk(liar, |parameters| {
            parameters.set(MAX_UDP_PAYLOAD_SIZE, &integer(1200));
            parameters.set(ACTIVE_CONNECTION_ID_LIMIT, &[2]);
            parameters.set(ACK_DELAY_EXPONENT, &[0]);
            parameters.set(MAX_ACK_DELAY, &[0]);
            parameters.set(MAX_IDLE_TIMEOUT, &[0]);
            // Asks for longer delays than that.
            parameters.remove(0xff04_de1b);
        });
    }
}

/// Proves: rfc9000 18.2 absent-limits-are-zero
#[test]
fn limits_that_are_not_told() {
    for liar in BOTH {
        let mut without_streams = duo(liar, |parameters| {
            for id in INITIAL_MAX_STREAMS {
                parameters.remove(id);
            }
        });
        without_streams.assert_alive();
        let streams = without_streams.connection(liar.peer()).streams();
        for direction in [Direction::Bidi, Direction::Uni] {
            assert!(streams.open(direction).is_none());
        }
        let mut without_data = duo(liar, |parameters| parameters.remove(INITIAL_MAX_DATA));
        let streams = without_data.connection(liar.peer()).streams();
        let id = streams.open(Direction::Uni).unwrap();
        let _ = streams.write(id, &[7; 100]);
        without_data.world.run_for(ms(200));
        without_data.assert_alive();
        let totals = without_data.connection(liar).streams().totals();
        assert_eq!(totals.bytes_received, 0);
    }
}
