//! Rules that a peer can break.

use std::{borrow::Cow, fmt};

use hybriq_tls::Alert;

use super::Code;
use crate::wire::Eof;

/// Declares the rules: name, code, text, and where the rule is written. In a text, braces mark a
/// noun that an error replaces by the name of what it is about.
macro_rules! violations {
    ($($name:ident = $code:ident, $text:literal, $section:literal;)*) => {
        /// Rule of QUIC that an end broke, or limit that was exceeded, so that the other end closed
        /// the connection.
        ///
        /// [`Display`](fmt::Display) is the reason in a CONNECTION_CLOSE frame. There, the name of a
        /// frame, of a transport parameter or of a limit replaces the noun in braces.
        ///
        /// # Examples
        /// ```
        /// use hybriq_proto::wire::error::{By, ConnectionError, Violation};
        ///
        /// /// Returns true if the peer sent more than it was allowed to.
        /// fn sent_too_much(end: &ConnectionError) -> bool {
        ///     use Violation::{ConnectionDataLimit, StreamDataLimit, StreamLimit};
        ///     matches!(
        ///         end,
        ///         ConnectionError::Transport {
        ///             by: By::Local,
        ///             violation: Some(ConnectionDataLimit | StreamDataLimit | StreamLimit),
        ///             ..
        ///         }
        ///     )
        /// }
        /// ```
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum Violation {
            $(#[doc = concat!($text, " (`", stringify!($code), "`, ", $section, ").")] $name,)*
        }

        impl Violation {
            pub(super) const ALL: &[Self] = &[$(Self::$name),*];

            /// Returns the transport error code of the rule (RFC 9000 §20.1).
            pub const fn code(self) -> Code {
                match self {
                    $(Self::$name => Code::$code,)*
                }
            }

            const fn text(self) -> &'static str {
                match self {
                    $(Self::$name => $text,)*
                }
            }
        }
    };
}

violations! {
    // Packets and their keys.
    PacketWithoutFrames = PROTOCOL_VIOLATION, "packet without frames", "RFC 9000 §12.4";
    ReservedBits = PROTOCOL_VIOLATION, "reserved bits of a packet header are set", "RFC 9000 §17.2, §17.3.1";
    InvalidRetryToken = INVALID_TOKEN, "the Retry token is not valid", "RFC 9000 §8.1.2";
    OldKeys = KEY_UPDATE_ERROR, "a packet under old keys that follows one under new keys", "RFC 9001 §6.4";
    AckUnderOldKeys = KEY_UPDATE_ERROR, "a packet under old keys acknowledges one under new keys", "RFC 9001 §6.2";
    SecondKeyUpdate = KEY_UPDATE_ERROR, "a second key update before the first was acknowledged", "RFC 9001 §6.1";
    EarlyKeyUpdate = KEY_UPDATE_ERROR, "a key update before the handshake was confirmed", "RFC 9001 §6";
    NoKeyUpdate = AEAD_LIMIT_REACHED, "the peer followed no key update before the keys were spent", "RFC 9001 §6.6";
    TooManyForgeries = AEAD_LIMIT_REACHED, "too many packets failed authentication", "RFC 9001 §6.6";

    // Any frame.
    FrameTypeEndsEarly = FRAME_ENCODING_ERROR, "cut frame type", "RFC 9000 §12.4";
    FrameTypeTooLong = PROTOCOL_VIOLATION, "frame type not in its shortest form", "RFC 9000 §12.4";
    UnknownFrame = FRAME_ENCODING_ERROR, "frame of unknown type {0x…}", "RFC 9000 §12.4";
    FrameEndsEarly = FRAME_ENCODING_ERROR, "{frame} ends before its fields do", "RFC 9000 §12.4";
    FrameInWrongPacket = PROTOCOL_VIOLATION, "frame not allowed in this type of packet", "RFC 9000 §12.4";
    FrameInInitial = PROTOCOL_VIOLATION, "frame not allowed in an Initial packet", "RFC 9000 §17.2.2";
    FrameFromClient = PROTOCOL_VIOLATION, "{frame} from a client", "RFC 9000 §19.7, §19.20";
    EmptyNewToken = FRAME_ENCODING_ERROR, "NEW_TOKEN with an empty token", "RFC 9000 §19.7";

    // Acknowledgements.
    AckBelowZero = FRAME_ENCODING_ERROR, "ACK range reaches below packet number 0", "RFC 9000 §19.3.1";
    AckOfUnsent = PROTOCOL_VIOLATION, "ACK of a packet that was never sent", "RFC 9000 §13.1";
    AckOfSkipped = PROTOCOL_VIOLATION, "ACK of a packet number that was skipped", "RFC 9000 §21.4";
    AckFrequencyNotAccepted = FRAME_ENCODING_ERROR, "frame of an extension that was not announced by min_ack_delay", "draft-ietf-quic-ack-frequency §3";
    AckDelayTooShort = PROTOCOL_VIOLATION, "ACK_FREQUENCY asks for a delay below min_ack_delay", "draft-ietf-quic-ack-frequency §4";
    AckDelayTooLong = PROTOCOL_VIOLATION, "ACK_FREQUENCY asks for a delay of 2^14 ms or more", "draft-ietf-quic-ack-frequency §4";

    // The handshake.
    ClientHelloTooLarge = CRYPTO_BUFFER_EXCEEDED, "ClientHello larger than 16 KiB, or in too many pieces", "RFC 9000 §7.5";
    CryptoBufferFull = CRYPTO_BUFFER_EXCEEDED, "CRYPTO data beyond the buffer of 64 KiB", "RFC 9000 §7.5";
    CryptoPieces = CRYPTO_BUFFER_EXCEEDED, "CRYPTO data in too many pieces", "RFC 9000 §7.5";
    CryptoBeyondOffsets = FRAME_ENCODING_ERROR, "CRYPTO data reaches beyond offset 2^62 - 1", "RFC 9000 §19.6";
    CryptoAtPastLevel = PROTOCOL_VIOLATION, "new CRYPTO data at an encryption level that is over", "RFC 9001 §4.1.3";
    CryptoFromClient = UNEXPECTED_MESSAGE, "CRYPTO in a 1-RTT packet: a client has no TLS message to send there", "RFC 9001 §4.4, §6";
    EarlyDataLimit = PROTOCOL_VIOLATION, "0-RTT was accepted with a lower {limit} than before", "RFC 9000 §7.4.1";

    // Streams and datagrams.
    StreamBeyondOffsets = FRAME_ENCODING_ERROR, "STREAM data reaches beyond offset 2^62 - 1", "RFC 9000 §19.8";
    StreamOffset = FLOW_CONTROL_ERROR, "data beyond offset 2^62 - 1", "RFC 9000 §19.8";
    StreamDataLimit = FLOW_CONTROL_ERROR, "data beyond the limit of the stream", "RFC 9000 §4.1";
    ConnectionDataLimit = FLOW_CONTROL_ERROR, "data beyond the limit of the connection", "RFC 9000 §4.1";
    StreamLimit = STREAM_LIMIT_ERROR, "a stream beyond the limit for streams", "RFC 9000 §4.6";
    StreamPieces = INTERNAL_ERROR, "stream data in too many separate pieces", "RFC 9000 §21.7";
    StreamOnlySends = STREAM_STATE_ERROR, "a frame of a sender for a stream that only we send on", "RFC 9000 §19.4, §19.8, §19.13";
    StreamOnlyReceives = STREAM_STATE_ERROR, "a frame of a receiver for a stream that only the peer sends on", "RFC 9000 §19.5, §19.10";
    StreamNotOpened = STREAM_STATE_ERROR, "a frame for a stream that we did not open yet", "RFC 9000 §19.5, §19.8, §19.10";
    DataBeyondFinalSize = FINAL_SIZE_ERROR, "data beyond the final size of the stream", "RFC 9000 §4.5";
    FinalSizeChanged = FINAL_SIZE_ERROR, "the final size changed", "RFC 9000 §4.5";
    FinalSizeBelowReceived = FINAL_SIZE_ERROR, "a final size below what was received", "RFC 9000 §4.5";
    ResetCodeChanged = STREAM_STATE_ERROR, "the code of a reset changed", "draft-ietf-quic-reliable-stream-reset §5";
    ReliableSizeBeyondFinal = FRAME_ENCODING_ERROR, "RESET_STREAM_AT has a reliable size above the final size", "draft-ietf-quic-reliable-stream-reset §4";
    MaxStreamsTooLarge = FRAME_ENCODING_ERROR, "MAX_STREAMS above 2^60", "RFC 9000 §19.11";
    StreamsBlockedTooLarge = FRAME_ENCODING_ERROR, "STREAMS_BLOCKED above 2^60", "RFC 9000 §19.14";
    DatagramNotAccepted = PROTOCOL_VIOLATION, "DATAGRAM, which this end does not accept", "RFC 9221 §3";
    DatagramTooLarge = PROTOCOL_VIOLATION, "DATAGRAM is larger than max_datagram_frame_size", "RFC 9221 §3";

    // Connection ids.
    NewCidLength = FRAME_ENCODING_ERROR, "NEW_CONNECTION_ID with an id of 0 or more than 20 bytes", "RFC 9000 §19.15";
    NewCidRetiresItself = FRAME_ENCODING_ERROR, "NEW_CONNECTION_ID retires its own sequence number", "RFC 9000 §19.15";
    NewCidRetiresAll = PROTOCOL_VIOLATION, "NEW_CONNECTION_ID that retires every connection id", "RFC 9000 §5.1.2";
    NewCidContradicts = PROTOCOL_VIOLATION, "NEW_CONNECTION_ID contradicts an earlier one", "RFC 9000 §19.15";
    NewCidWithoutCids = PROTOCOL_VIOLATION, "NEW_CONNECTION_ID from a peer with zero-length connection ids", "RFC 9000 §19.15";
    TooManyCids = CONNECTION_ID_LIMIT_ERROR, "more connection ids than active_connection_id_limit", "RFC 9000 §5.1.1";
    TooManyRetirements = CONNECTION_ID_LIMIT_ERROR, "more connection ids to retire than RETIRE_CONNECTION_ID frames were acknowledged", "RFC 9000 §5.1.2";
    RetiresUnknownCid = PROTOCOL_VIOLATION, "RETIRE_CONNECTION_ID for a sequence number that was never issued", "RFC 9000 §19.16";
    RetiresOwnCid = PROTOCOL_VIOLATION, "RETIRE_CONNECTION_ID for the connection id of its own packet", "RFC 9000 §19.16";
    RetiresWithoutCids = PROTOCOL_VIOLATION, "RETIRE_CONNECTION_ID although our connection ids have no bytes", "RFC 9000 §19.16";

    // Transport parameters.
    NoParameters = MISSING_EXTENSION, "no transport parameters", "RFC 9001 §8.2";
    ParametersEndEarly = TRANSPORT_PARAMETER_ERROR, "transport parameters are cut short", "RFC 9000 §18";
    ParameterTwice = TRANSPORT_PARAMETER_ERROR, "{transport parameter} came twice", "RFC 9000 §7.4";
    ParameterFromClient = TRANSPORT_PARAMETER_ERROR, "client sent {a parameter of servers}", "RFC 9000 §18.2";
    ParameterEndsEarly = TRANSPORT_PARAMETER_ERROR, "{transport parameter} ends early", "RFC 9000 §18";
    ParameterTooLong = TRANSPORT_PARAMETER_ERROR, "{transport parameter} is too long", "RFC 9000 §18.2";
    ParameterNotEmpty = TRANSPORT_PARAMETER_ERROR, "{transport parameter} is not empty", "RFC 9000 §18.2";
    ParameterBeyondInteger = TRANSPORT_PARAMETER_ERROR, "{transport parameter} is longer than its integer", "RFC 9000 §18.2";
    ParameterCidLength = TRANSPORT_PARAMETER_ERROR, "{transport parameter} is longer than 20 bytes", "RFC 9000 §18.2";
    ParameterStreams = TRANSPORT_PARAMETER_ERROR, "{limit of streams} is above 2^60", "RFC 9000 §18.2";
    ResetTokenLength = TRANSPORT_PARAMETER_ERROR, "stateless_reset_token is not 16 bytes long", "RFC 9000 §18.2";
    MaxUdpPayloadTooSmall = TRANSPORT_PARAMETER_ERROR, "max_udp_payload_size is below 1200", "RFC 9000 §18.2";
    AckDelayExponentTooLarge = TRANSPORT_PARAMETER_ERROR, "ack_delay_exponent is above 20", "RFC 9000 §18.2";
    MaxAckDelayTooLarge = TRANSPORT_PARAMETER_ERROR, "max_ack_delay is 2^14 or more", "RFC 9000 §18.2";
    MinAckDelayTooLarge = TRANSPORT_PARAMETER_ERROR, "min_ack_delay is above max_ack_delay", "draft-ietf-quic-ack-frequency §3";
    CidLimitTooSmall = TRANSPORT_PARAMETER_ERROR, "active_connection_id_limit is below 2", "RFC 9000 §18.2";
    PreferredAddressWithoutCid = TRANSPORT_PARAMETER_ERROR, "preferred_address has an empty connection id", "RFC 9000 §18.2";
    PreferredAddressWithoutCids = TRANSPORT_PARAMETER_ERROR, "preferred_address of a server with zero-length connection ids", "RFC 9000 §18.2";
    PreferredAddressCidInUse = TRANSPORT_PARAMETER_ERROR, "preferred_address with an id that is in use", "RFC 9000 §5.1.1";
    CommitmentLength = TRANSPORT_PARAMETER_ERROR, "post_quantum_commitment is not 4 bytes long", "draft-sheffer-tls-pqc-continuity §3.3";
    InitialSourceCid = TRANSPORT_PARAMETER_ERROR, "initial_source_connection_id is not the one of the Initial packets", "RFC 9000 §7.3";
    OriginalDestinationCid = TRANSPORT_PARAMETER_ERROR, "original_destination_connection_id is not the one that was used", "RFC 9000 §7.3";
    RetrySourceCid = TRANSPORT_PARAMETER_ERROR, "retry_source_connection_id is not the one of a Retry", "RFC 9000 §7.3";

    // Versions.
    VersionsLength = TRANSPORT_PARAMETER_ERROR, "version_information is not made of versions", "RFC 9368 §3";
    VersionsEmpty = TRANSPORT_PARAMETER_ERROR, "version_information is empty", "RFC 9368 §3";
    VersionZero = TRANSPORT_PARAMETER_ERROR, "version_information has a version 0", "RFC 9368 §3";
    ChosenVersionNotAvailable = TRANSPORT_PARAMETER_ERROR, "version_information has a Chosen Version that is not available", "RFC 9368 §3";
    NoVersions = VERSION_NEGOTIATION_ERROR, "version_information is missing", "RFC 9368 §4";
    ClientChosenVersion = VERSION_NEGOTIATION_ERROR, "the client's Chosen Version is not the version of its first flight", "RFC 9368 §4";
    ServerChosenVersion = VERSION_NEGOTIATION_ERROR, "the server's Chosen Version is not the version of its packets", "RFC 9368 §4";
    NoAvailableVersions = VERSION_NEGOTIATION_ERROR, "the server has no Available Versions after Version Negotiation", "RFC 9368 §4";
    BetterVersionLeftOut = VERSION_NEGOTIATION_ERROR, "Version Negotiation left out a better version of the server's", "RFC 9368 §4";
    NoCommonVersion = VERSION_NEGOTIATION_ERROR, "none of the client's versions is supported here", "RFC 9368 §2.3";
}

impl Code {
    const UNEXPECTED_MESSAGE: Self = Self::crypto(Alert::UNEXPECTED_MESSAGE.0);
    const MISSING_EXTENSION: Self = Self::crypto(Alert::MISSING_EXTENSION.0);
}

impl Violation {
    /// Returns the rule that a peer's CONNECTION_CLOSE names, if the peer uses our texts.
    pub(crate) fn told(code: Code, reason: &[u8]) -> Option<Self> {
        let reason = std::str::from_utf8(reason).ok()?;
        let mut rules = Self::ALL.iter().copied();
        rules.find(|rule| rule.code() == code && rule.reads(reason))
    }

    /// Returns true if the reason is the text, whatever stands for its noun.
    fn reads(self, reason: &str) -> bool {
        match self.parts() {
            Some([before, _, after]) => reason
                .strip_prefix(before)
                .is_some_and(|rest| rest.ends_with(after)),
            None => reason == self.text(),
        }
    }

    /// Returns the noun that a name replaces, if there is one.
    pub(super) fn noun(self) -> &'static str {
        self.parts().map_or("", |[_, noun, _]| noun)
    }

    /// Returns the text before the noun, the noun, and the text after it.
    fn parts(self) -> Option<[&'static str; 3]> {
        let (before, rest) = self.text().split_once('{')?;
        let (noun, after) = rest.split_once('}')?;
        Some([before, noun, after])
    }

    /// Returns the reason, with the name of what it is about in the place of the noun.
    pub(super) fn reason(self, name: impl fmt::Display) -> Cow<'static, str> {
        match self.parts() {
            Some([before, _, after]) => format!("{before}{name}{after}").into(),
            None => self.text().into(),
        }
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.reason(self.noun()))
    }
}

impl std::error::Error for Violation {}

// For the decoders of the core: `Eof` is a type of its readers.
#[doc(hidden)]
impl From<Eof> for Violation {
    fn from(Eof: Eof) -> Self {
        Self::FrameEndsEarly
    }
}
