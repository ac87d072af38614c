//! Transport parameters (RFC 9000 §18).

#![cfg_attr(not(test), warn(clippy::indexing_slicing))]

use crate::wire::ResetToken;
use std::time::Duration;

use arrayvec::ArrayVec;
use hybriq_tls::Side;

use super::{
    error::{TransportError, Violation},
    limits,
    packet::{Cid, Version, Versions, reserved_version},
};
use crate::wire::{Eof, Reader, VarInt};

mod id;
mod preferred_address;
#[cfg(test)]
mod tests;

pub use self::preferred_address::PreferredAddress;

/// Our ACK delay exponent, the default (RFC 9000 §18.2).
pub const ACK_DELAY_EXPONENT: u8 = 3;

/// The transport parameters of one end, with the defaults of RFC 9000 §18.2 for absent ones.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Params {
    /// The DCID of the client's first Initial. Server only.
    pub original_dcid: Option<Cid>,
    /// The SCID of the Retry. Server only.
    pub retry_scid: Option<Cid>,
    /// The SCID of the sender's first Initial.
    pub initial_scid: Option<Cid>,
    /// Token of a stateless reset. Server only.
    pub stateless_reset_token: Option<ResetToken>,
    /// Address that a server asks its clients to move to. Server only.
    pub preferred_address: Option<PreferredAddress>,
    /// Idle timeout; zero for none.
    pub max_idle_timeout: Duration,
    /// Largest UDP payload that the sender accepts.
    pub max_udp_payload_size: u64,
    /// Number of bytes that we may send on all streams together at first.
    pub initial_max_data: u64,
    /// First limit of bidirectional streams that the sender opens.
    pub initial_max_stream_data_bidi_local: u64,
    /// First limit of bidirectional streams that we open.
    pub initial_max_stream_data_bidi_remote: u64,
    /// First limit of unidirectional streams that we open.
    pub initial_max_stream_data_uni: u64,
    /// Number of bidirectional streams that we may open at first.
    pub initial_max_streams_bidi: u64,
    /// Number of unidirectional streams that we may open at first.
    pub initial_max_streams_uni: u64,
    /// Exponent of the sender's ACK delays.
    pub ack_delay_exponent: u8,
    /// Longest delay of the sender's ACKs.
    pub max_ack_delay: Duration,
    /// True if the sender forbids active migration.
    pub disable_active_migration: bool,
    /// Number of our connection ids that the sender stores.
    pub active_connection_id_limit: u64,
    /// Shortest ACK delay that may be requested; `None` if the sender accepts no such requests
    /// (draft-ietf-quic-ack-frequency §3).
    pub min_ack_delay: Option<Duration>,
    /// True if the sender accepts packets without the QUIC bit (RFC 9287 §3).
    pub grease_quic_bit: bool,
    /// Largest DATAGRAM frame accepted, type and length included; 0 for none (RFC 9221 §3).
    pub max_datagram_frame_size: u64,
    /// True if the sender accepts `RESET_STREAM_AT` (draft-ietf-quic-reliable-stream-reset §3).
    pub reset_stream_at: bool,
    /// Version information; `None` if it does not support version negotiation.
    pub version_information: Option<VersionInformation>,
    /// Time for which a server commits itself to post-quantum certificates, in whole seconds; zero
    /// withdraws an earlier commitment. Server only.
    ///
    /// This is the `algorithm_validity_period` of draft-sheffer-tls-pqc-continuity §3.3 in a parameter
    /// of this library, because neither rustls nor s2n-tls sends the TLS extension.
    pub post_quantum_commitment: Option<Duration>,
}

/// Version information of one end (RFC 9368 §3).
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct VersionInformation {
    /// Version chosen: by a client for its first flight, by a server for the connection.
    pub chosen: u32,
    /// From a client: versions its first flight is compatible with, the preferred one first. From a
    /// server: versions that its whole deployment supports. Only the first of a peer's are kept.
    pub available: ArrayVec<u32, { limits::AVAILABLE_VERSIONS }>,
}

impl VersionInformation {
    /// Creates our version information.
    pub fn new(chosen: Version, available: Versions) -> Self {
        let mut numbers = ArrayVec::new();
        for version in available.iter() {
            let _ = numbers.try_push(version.number());
        }
        Self {
            chosen: chosen.number(),
            available: numbers,
        }
    }

    /// Writes four bytes per version. A version that nobody supports comes first, so that peers
    /// keep ignoring unknown ones (RFC 9368 §3).
    fn encode(&self, random: u32, out: &mut Vec<u8>) {
        let numbers = [self.chosen, reserved_version(random)];
        let numbers = numbers.into_iter().chain(self.available.iter().copied());
        put_varint(out, id::VERSION_INFORMATION);
        put_varint(out, 4 * numbers.clone().count() as u64);
        for number in numbers {
            out.extend_from_slice(&number.to_be_bytes());
        }
    }

    fn decode(value: &[u8], from: Side) -> Result<Self, Rule> {
        if value.len() % 4 != 0 {
            return Err(Rule(Violation::VersionsLength));
        }
        let numbers = value.chunks_exact(4);
        let mut numbers =
            numbers.filter_map(|number| Some(u32::from_be_bytes(*number.first_chunk()?)));
        let chosen = numbers.next().ok_or(Rule(Violation::VersionsEmpty))?;
        if chosen == 0 || numbers.clone().any(|number| number == 0) {
            return Err(Rule(Violation::VersionZero));
        }
        if from.is_client() && numbers.clone().all(|number| number != chosen) {
            return Err(Rule(Violation::ChosenVersionNotAvailable));
        }
        Ok(Self {
            chosen,
            available: numbers.by_ref().take(limits::AVAILABLE_VERSIONS).collect(),
        })
    }
}

impl Default for Params {
    fn default() -> Self {
        Self {
            original_dcid: None,
            retry_scid: None,
            initial_scid: None,
            stateless_reset_token: None,
            preferred_address: None,
            max_idle_timeout: Duration::ZERO,
            max_udp_payload_size: 65_527,
            initial_max_data: 0,
            initial_max_stream_data_bidi_local: 0,
            initial_max_stream_data_bidi_remote: 0,
            initial_max_stream_data_uni: 0,
            initial_max_streams_bidi: 0,
            initial_max_streams_uni: 0,
            ack_delay_exponent: ACK_DELAY_EXPONENT,
            max_ack_delay: Duration::from_millis(25),
            disable_active_migration: false,
            active_connection_id_limit: 2,
            min_ack_delay: None,
            grease_quic_bit: false,
            max_datagram_frame_size: 0,
            reset_stream_at: false,
            version_information: None,
            post_quantum_commitment: None,
        }
    }
}

impl Params {
    /// Appends the parameters as `side` sends them, without default values and without those that a
    /// client must not send.
    ///
    /// Also adds a meaningless parameter, so that peers keep ignoring unknown ones (RFC 9000
    /// §18.1). It is derived from the random bytes of `initial_scid`.
    pub fn encode(&self, side: Side, out: &mut Vec<u8>) {
        let default = Self::default();
        for (&(id, value), (_, default)) in self.integers().iter().zip(default.integers()) {
            if value != default {
                put_integer(out, id, value);
            }
        }
        if let Some(delay) = self.min_ack_delay {
            let micros = u64::try_from(delay.as_micros()).unwrap_or(u64::MAX);
            put_integer(out, id::MIN_ACK_DELAY, micros);
        }
        if self.reset_stream_at {
            put(out, id::RESET_STREAM_AT, &[]);
            put(out, id::RESET_STREAM_AT_BEFORE, &[]);
        }
        if self.disable_active_migration {
            put(out, id::DISABLE_ACTIVE_MIGRATION, &[]);
        }
        if self.grease_quic_bit {
            put(out, id::GREASE_QUIC_BIT, &[]);
        }
        if let Some(cid) = &self.initial_scid {
            put(out, id::INITIAL_SCID, cid.as_bytes());
        }
        if side.is_server() {
            self.encode_server_only(out);
        }
        let random = self.initial_scid.as_ref().map_or(&[][..], Cid::as_bytes);
        let (random, _) = random.split_at(random.len().min(4));
        let number = random
            .iter()
            .fold(0, |number, byte| number << 8 | u64::from(*byte));
        if let Some(info) = &self.version_information {
            info.encode(number as u32, out);
        }
        put(out, id::reserved(number), random);
    }

    fn encode_server_only(&self, out: &mut Vec<u8>) {
        if let Some(cid) = &self.original_dcid {
            put(out, id::ORIGINAL_DCID, cid.as_bytes());
        }
        if let Some(cid) = &self.retry_scid {
            put(out, id::RETRY_SCID, cid.as_bytes());
        }
        if let Some(token) = &self.stateless_reset_token {
            put(out, id::STATELESS_RESET_TOKEN, token.as_bytes());
        }
        if let Some(address) = &self.preferred_address {
            put(out, id::PREFERRED_ADDRESS, &address.encode());
        }
        if let Some(time) = self.post_quantum_commitment {
            let seconds = u32::try_from(time.as_secs()).unwrap_or(u32::MAX);
            put(out, id::POST_QUANTUM_COMMITMENT, &seconds.to_be_bytes());
        }
    }

    /// Returns the parameters that consist of one integer.
    fn integers(&self) -> [(u64, u64); 12] {
        [
            (id::MAX_IDLE_TIMEOUT, millis(self.max_idle_timeout)),
            (id::MAX_UDP_PAYLOAD_SIZE, self.max_udp_payload_size),
            (id::INITIAL_MAX_DATA, self.initial_max_data),
            (
                id::INITIAL_MAX_STREAM_DATA_BIDI_LOCAL,
                self.initial_max_stream_data_bidi_local,
            ),
            (
                id::INITIAL_MAX_STREAM_DATA_BIDI_REMOTE,
                self.initial_max_stream_data_bidi_remote,
            ),
            (
                id::INITIAL_MAX_STREAM_DATA_UNI,
                self.initial_max_stream_data_uni,
            ),
            (id::INITIAL_MAX_STREAMS_BIDI, self.initial_max_streams_bidi),
            (id::INITIAL_MAX_STREAMS_UNI, self.initial_max_streams_uni),
            (id::ACK_DELAY_EXPONENT, u64::from(self.ack_delay_exponent)),
            (id::MAX_ACK_DELAY, millis(self.max_ack_delay)),
            (
                id::ACTIVE_CONNECTION_ID_LIMIT,
                self.active_connection_id_limit,
            ),
            (id::MAX_DATAGRAM_FRAME_SIZE, self.max_datagram_frame_size),
        ]
    }

    /// Reads the parameters that `from` sent.
    ///
    /// The caller must check the connection ids in them (RFC 9000 §7.3).
    ///
    /// # Errors
    /// `TRANSPORT_PARAMETER_ERROR` for a value that is malformed or out of range, and for a
    /// parameter that is repeated or that a client must not send. The first
    /// [`UNKNOWN_PARAMS`](limits::UNKNOWN_PARAMS) unknown parameters are checked for repetitions,
    /// too.
    pub fn decode(bytes: &[u8], from: Side) -> Result<Self, TransportError> {
        let mut params = Self::default();
        let mut seen = Seen::default();
        let mut reader = Reader::new(bytes);
        while !reader.is_empty() {
            let cut = |Eof| Violation::ParametersEndEarly;
            let id = reader.varint().map_err(cut)?;
            let value = reader.prefixed().map_err(cut)?;
            seen.insert(id)?;
            if from.is_client() && id::is_server_only(id) {
                return Err(Violation::ParameterFromClient.of(id::name(id)));
            }
            params
                .set(id, value, from)
                .map_err(|Rule(violation)| violation.of(id::name(id)))?;
        }
        if params
            .min_ack_delay
            .is_some_and(|least| least > params.max_ack_delay)
        {
            return Err(Violation::MinAckDelayTooLarge.into());
        }
        Ok(params)
    }

    fn set(&mut self, id: u64, value: &[u8], from: Side) -> Result<(), Rule> {
        match id {
            id::ORIGINAL_DCID => self.original_dcid = Some(cid(value)?),
            id::MAX_IDLE_TIMEOUT => {
                self.max_idle_timeout = Duration::from_millis(integer(value)?);
            }
            id::STATELESS_RESET_TOKEN => {
                let token = value
                    .try_into()
                    .map_err(|_| Rule(Violation::ResetTokenLength))?;
                self.stateless_reset_token = Some(ResetToken::new(token));
            }
            id::MAX_UDP_PAYLOAD_SIZE => {
                let least = limits::MIN_DATAGRAM as u64;
                self.max_udp_payload_size =
                    within(least.., value, Violation::MaxUdpPayloadTooSmall)?;
            }
            id::INITIAL_MAX_DATA => self.initial_max_data = integer(value)?,
            id::INITIAL_MAX_STREAM_DATA_BIDI_LOCAL => {
                self.initial_max_stream_data_bidi_local = integer(value)?;
            }
            id::INITIAL_MAX_STREAM_DATA_BIDI_REMOTE => {
                self.initial_max_stream_data_bidi_remote = integer(value)?;
            }
            id::INITIAL_MAX_STREAM_DATA_UNI => self.initial_max_stream_data_uni = integer(value)?,
            id::INITIAL_MAX_STREAMS_BIDI => {
                self.initial_max_streams_bidi =
                    within(..=1 << 60, value, Violation::ParameterStreams)?;
            }
            id::INITIAL_MAX_STREAMS_UNI => {
                self.initial_max_streams_uni =
                    within(..=1 << 60, value, Violation::ParameterStreams)?;
            }
            id::ACK_DELAY_EXPONENT => {
                self.ack_delay_exponent =
                    within(..=20, value, Violation::AckDelayExponentTooLarge)? as u8;
            }
            id::MAX_ACK_DELAY => {
                let delay = within(..1 << 14, value, Violation::MaxAckDelayTooLarge)?;
                self.max_ack_delay = Duration::from_millis(delay);
            }
            id::DISABLE_ACTIVE_MIGRATION if value.is_empty() => {
                self.disable_active_migration = true;
            }
            id::RESET_STREAM_AT | id::RESET_STREAM_AT_BEFORE if value.is_empty() => {
                self.reset_stream_at = true;
            }
            id::DISABLE_ACTIVE_MIGRATION | id::RESET_STREAM_AT | id::RESET_STREAM_AT_BEFORE => {
                return Err(Rule(Violation::ParameterNotEmpty));
            }
            id::PREFERRED_ADDRESS => {
                self.preferred_address = Some(PreferredAddress::decode(value)?);
            }
            id::ACTIVE_CONNECTION_ID_LIMIT => {
                self.active_connection_id_limit = within(2.., value, Violation::CidLimitTooSmall)?;
            }
            id::MIN_ACK_DELAY => {
                self.min_ack_delay = Some(Duration::from_micros(integer(value)?));
            }
            id::GREASE_QUIC_BIT if value.is_empty() => self.grease_quic_bit = true,
            id::GREASE_QUIC_BIT => return Err(Rule(Violation::ParameterNotEmpty)),
            id::MAX_DATAGRAM_FRAME_SIZE => self.max_datagram_frame_size = integer(value)?,
            id::VERSION_INFORMATION => {
                self.version_information = Some(VersionInformation::decode(value, from)?);
            }
            id::POST_QUANTUM_COMMITMENT => {
                let seconds = value
                    .try_into()
                    .map_err(|_| Rule(Violation::CommitmentLength))?;
                let seconds = u32::from_be_bytes(seconds).into();
                self.post_quantum_commitment = Some(Duration::from_secs(seconds));
            }
            id::INITIAL_SCID => self.initial_scid = Some(cid(value)?),
            id::RETRY_SCID => self.retry_scid = Some(cid(value)?),
            _ => {}
        }
        Ok(())
    }
}

/// Rule that the value of a parameter breaks. Here, an early end is that of a parameter, not of a frame.
struct Rule(Violation);

impl From<Eof> for Rule {
    fn from(Eof: Eof) -> Self {
        Self(Violation::ParameterEndsEarly)
    }
}

/// Record of the parameters already read.
#[derive(Default)]
struct Seen {
    known: u32,
    unknown: ArrayVec<u64, { limits::UNKNOWN_PARAMS }>,
}

impl Seen {
    fn insert(&mut self, id: u64) -> Result<(), TransportError> {
        let is_new = if let Some(bit) = id::bit(id) {
            let is_new = self.known & bit == 0;
            self.known |= bit;
            is_new
        } else {
            let is_new = !self.unknown.contains(&id);
            // Unknown parameters are ignored, however many there are (RFC 9000 §7.4.2).
            let _ = self.unknown.try_push(id);
            is_new
        };
        if is_new {
            Ok(())
        } else {
            Err(Violation::ParameterTwice.of(id::name(id)))
        }
    }
}

/// Reads a value that is one variable-length integer, in any of its forms.
fn integer(value: &[u8]) -> Result<u64, Rule> {
    let mut reader = Reader::new(value);
    let integer = reader.varint()?;
    if reader.is_empty() {
        Ok(integer)
    } else {
        Err(Rule(Violation::ParameterBeyondInteger))
    }
}

fn within(
    range: impl std::ops::RangeBounds<u64>,
    value: &[u8],
    violation: Violation,
) -> Result<u64, Rule> {
    let integer = integer(value)?;
    if range.contains(&integer) {
        Ok(integer)
    } else {
        Err(Rule(violation))
    }
}

fn cid(value: &[u8]) -> Result<Cid, Rule> {
    Cid::new(value).ok_or(Rule(Violation::ParameterCidLength))
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

fn put(out: &mut Vec<u8>, id: u64, value: &[u8]) {
    put_varint(out, id);
    put_varint(out, value.len() as u64);
    out.extend_from_slice(value);
}

fn put_integer(out: &mut Vec<u8>, id: u64, value: u64) {
    let value = VarInt::saturating(value);
    put_varint(out, id);
    put_varint(out, value.size() as u64);
    put_varint(out, value.get());
}

fn put_varint(out: &mut Vec<u8>, value: u64) {
    let mut buffer = [0; 8];
    let mut writer = crate::wire::Writer::new(&mut buffer);
    writer.varint(value);
    out.extend_from_slice(writer.written());
}
