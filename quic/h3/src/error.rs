//! Rules of HTTP/3 that a peer may break, and the codes for them.

use std::fmt;

use crate::qpack;

/// An error code of HTTP/3, QPACK or WebTransport (RFC 9114 §8.1, RFC 9204 §6, draft-ietf-webtrans-http3 §9.5).
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Code(pub u64);

macro_rules! codes {
    ($($name:ident = $value:literal, $doc:literal;)*) => {
        impl Code {
            $(#[doc = $doc] pub const $name: Self = Self($value);)*

            /// Returns the name of the code in its RFC, if it has one.
            pub const fn name(self) -> Option<&'static str> {
                match self.0 {
                    $($value => Some(stringify!($name)),)*
                    _ => None,
                }
            }
        }
    };
}

codes! {
    H3_DATAGRAM_ERROR = 0x33, "A datagram or capsule that cannot be parsed (RFC 9297 §5.2).";
    H3_NO_ERROR = 0x100, "An end without an error.";
    H3_GENERAL_PROTOCOL_ERROR = 0x101, "A violation without a code of its own.";
    H3_INTERNAL_ERROR = 0x102, "A fault of this implementation.";
    H3_STREAM_CREATION_ERROR = 0x103, "A stream that the peer must not open.";
    H3_CLOSED_CRITICAL_STREAM = 0x104, "A stream ended that the connection needs.";
    H3_FRAME_UNEXPECTED = 0x105, "A frame that is not allowed here.";
    H3_FRAME_ERROR = 0x106, "A frame that cannot be parsed.";
    H3_EXCESSIVE_LOAD = 0x107, "Behaviour that may cause excessive load.";
    H3_ID_ERROR = 0x108, "An id that is used wrongly.";
    H3_SETTINGS_ERROR = 0x109, "Settings that cannot be used.";
    H3_MISSING_SETTINGS = 0x10a, "A control stream that does not begin with SETTINGS.";
    H3_REQUEST_REJECTED = 0x10b, "A request that the server did not process.";
    H3_REQUEST_CANCELLED = 0x10c, "A request or response that is not needed any more.";
    H3_REQUEST_INCOMPLETE = 0x10d, "A request that ended before it was complete.";
    H3_MESSAGE_ERROR = 0x10e, "A malformed message.";
    H3_CONNECT_ERROR = 0x10f, "A connection for CONNECT that was reset or abnormally closed.";
    H3_VERSION_FALLBACK = 0x110, "A request that must be repeated over HTTP/1.1.";
    QPACK_DECOMPRESSION_FAILED = 0x200, "A field section that cannot be decoded.";
    QPACK_ENCODER_STREAM_ERROR = 0x201, "An encoder stream that cannot be followed.";
    QPACK_DECODER_STREAM_ERROR = 0x202, "A decoder stream that cannot be followed.";
    WT_BUFFERED_STREAM_REJECTED = 0x3994_bd84, "A stream whose session is not known, and which cannot wait for it.";
    WT_SESSION_GONE = 0x170d_7b68, "A stream whose session is over.";
    WT_FLOW_CONTROL_ERROR = 0x045d_4487, "A session whose limits were broken.";
    WT_ALPN_ERROR = 0x0817_b3dd, "A session for which no protocol was agreed.";
    WT_REQUIREMENTS_NOT_MET = 0x212c_0d48, "A connection without what WebTransport needs.";
}

impl fmt::Debug for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            Some(name) => f.write_str(name),
            None => write!(f, "{:#x}", self.0),
        }
    }
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}

/// Codes of HTTP/3 that stand for those of applications. One in 31 between them is reserved (RFC 9114
/// §8.1).
const FIRST_OF_APPLICATIONS: u64 = 0x52e4_a40f_a8db;
const LAST_OF_APPLICATIONS: u64 = 0x52e5_ac98_3162;

/// Returns the code of HTTP/3 for the code of an application (draft-ietf-webtrans-http3 §4.4).
pub fn to_wire(code: u32) -> Code {
    let code = u64::from(code);
    Code(FIRST_OF_APPLICATIONS + code + code / 0x1e)
}

/// Returns the code of the application for a code of HTTP/3; `None` if it stands for none
/// (draft-ietf-webtrans-http3 §4.4).
pub fn from_wire(code: Code) -> Option<u32> {
    let code = code.0;
    if !(FIRST_OF_APPLICATIONS..=LAST_OF_APPLICATIONS).contains(&code) || (code - 0x21) % 0x1f == 0
    {
        return None;
    }
    let shifted = code - FIRST_OF_APPLICATIONS;
    u32::try_from(shifted - shifted / 0x1f).ok()
}

/// What an error ends.
///
/// Exhaustive: RFC 9114 §8 has no other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// The stream: reset its sending half and stop its receiving half with the code.
    Stream,
    /// The connection: close it with the code.
    Connection,
}

macro_rules! violations {
    ($($name:ident: $scope:ident $code:ident, $text:literal, $source:literal;)*) => {
        /// A rule that the peer broke: the error of everything that a peer sends.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[non_exhaustive]
        pub enum Violation {
            $(#[doc = concat!($text, " (", $source, ").")] $name,)*
            /// A rule of QPACK (RFC 9204).
            Qpack(qpack::Error),
        }

        impl Violation {
            /// All rules but those of QPACK.
            #[cfg(test)]
            const ALL: &[Self] = &[$(Self::$name),*];

            /// Returns the code that the peer gets.
            pub const fn code(self) -> Code {
                match self {
                    $(Self::$name => Code::$code,)*
                    Self::Qpack(error) => Code(error.code()),
                }
            }

            /// Returns what the violation ends.
            pub const fn scope(self) -> Scope {
                match self {
                    $(Self::$name => Scope::$scope,)*
                    Self::Qpack(_) => Scope::Connection,
                }
            }
        }

        impl fmt::Display for Violation {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                match self {
                    $(Self::$name => f.write_str(concat!($text, " (", $source, ")")),)*
                    Self::Qpack(error) => error.fmt(f),
                }
            }
        }
    };
}

violations! {
    // Streams.
    SecondControlStream: Connection H3_STREAM_CREATION_ERROR, "a second control stream", "RFC 9114 §6.2.1";
    SecondQpackStream: Connection H3_STREAM_CREATION_ERROR, "a second QPACK stream of one kind", "RFC 9204 §4.2";
    PushStreamOfClient: Connection H3_STREAM_CREATION_ERROR, "a push stream opened by a client", "RFC 9114 §6.2.2";
    PushNotAllowed: Connection H3_ID_ERROR, "a push, which this client does not allow", "RFC 9114 §4.6";
    StreamOfServer: Connection H3_STREAM_CREATION_ERROR, "a bidirectional stream opened by a server", "RFC 9114 §6.1";
    CriticalStreamClosed: Connection H3_CLOSED_CRITICAL_STREAM, "the end of a stream that the connection needs", "RFC 9114 §6.2.1";
    CriticalStreamUnread: Connection H3_EXCESSIVE_LOAD, "a critical stream that is not read, although more is asked for", "RFC 9114 §10.5";
    UnknownStream: Stream H3_STREAM_CREATION_ERROR, "a stream of an unknown type", "RFC 9114 §6.2";
    // Frames.
    FrameNotAllowed: Connection H3_FRAME_UNEXPECTED, "a frame that is not allowed here", "RFC 9114 §7.2";
    FrameOfHttp2: Connection H3_FRAME_UNEXPECTED, "a frame of HTTP/2 that HTTP/3 forbids", "RFC 9114 §7.2.8";
    FrameLength: Connection H3_FRAME_ERROR, "a frame whose length does not fit its content", "RFC 9114 §7.1";
    FrameCut: Connection H3_FRAME_ERROR, "a stream that ends inside a frame", "RFC 9114 §7.1";
    ControlFrameTooLong: Connection H3_EXCESSIVE_LOAD, "a frame of the control stream that is too long", "RFC 9114 §10.5";
    MissingSettings: Connection H3_MISSING_SETTINGS, "a control stream that does not begin with SETTINGS", "RFC 9114 §6.2.1";
    // Settings.
    SettingTwice: Connection H3_SETTINGS_ERROR, "a setting that comes twice", "RFC 9114 §7.2.4";
    SettingOfHttp2: Connection H3_SETTINGS_ERROR, "a setting of HTTP/2 that HTTP/3 forbids", "RFC 9114 §7.2.4.1";
    SettingValue: Connection H3_SETTINGS_ERROR, "a setting with a value that it cannot have", "RFC 9297 §2.1.1, RFC 8441 §3";
    SettingTakenBack: Connection H3_SETTINGS_ERROR, "settings that take back what 0-RTT data relied on", "RFC 9114 §7.2.4.2";
    DatagramsWithoutTransport: Connection H3_SETTINGS_ERROR, "HTTP Datagrams without datagrams of QUIC", "RFC 9297 §2.1.1";
    // Ids.
    GoawayId: Connection H3_ID_ERROR, "a GOAWAY with an id that is no request's", "RFC 9114 §5.2";
    GoawayIncreased: Connection H3_ID_ERROR, "a GOAWAY with a larger id than before", "RFC 9114 §5.2";
    MaxPushIdReduced: Connection H3_ID_ERROR, "a MAX_PUSH_ID that is smaller than before", "RFC 9114 §7.2.7";
    UnknownPush: Connection H3_ID_ERROR, "an id of a push that was not promised", "RFC 9114 §7.2.3";
    PriorityOfNoRequest: Connection H3_ID_ERROR, "a PRIORITY_UPDATE for a stream that carries no request", "RFC 9218 §7.2";
    PriorityBeyondLimit: Connection H3_ID_ERROR, "a PRIORITY_UPDATE for a stream beyond the limit", "RFC 9218 §7.2";
    SessionSignalLate: Connection H3_FRAME_ERROR, "the signal of a session's stream behind its start", "draft-ietf-webtrans-http3 §4.3";
    SessionId: Connection H3_ID_ERROR, "a session of a stream that carries no request", "draft-ietf-webtrans-http3 §4";
    // Datagrams.
    DatagramBeyondLimit: Connection H3_ID_ERROR, "an HTTP Datagram for a stream beyond the limit", "RFC 9297 §2.1";
    DatagramId: Connection H3_DATAGRAM_ERROR, "an HTTP Datagram whose stream id cannot be", "RFC 9297 §2.1";
    DatagramCapsuleTooLong: Stream H3_MESSAGE_ERROR, "a DATAGRAM capsule with more than its protocol allows", "RFC 9297 §3.5, RFC 9298 §5";
    // Sessions of WebTransport.
    CapsuleLength: Stream H3_MESSAGE_ERROR, "a capsule whose length does not fit its content", "RFC 9297 §3.3";
    CapsuleCut: Stream H3_MESSAGE_ERROR, "a stream that ends inside a capsule", "RFC 9297 §3.3";
    CapsuleAfterClose: Stream H3_MESSAGE_ERROR, "data behind the capsule that closes a session", "draft-ietf-webtrans-http3 §6";
    CapsuleOfStream: Stream WT_FLOW_CONTROL_ERROR, "a capsule for a limit of one stream, which the transport has", "draft-ietf-webtrans-http3 §5.4";
    SessionStreamsTooMany: Stream H3_DATAGRAM_ERROR, "a limit of more streams than there can be", "draft-ietf-webtrans-http3 §5.6.2";
    SessionLimitReduced: Stream WT_FLOW_CONTROL_ERROR, "a limit of a session that is smaller than before", "draft-ietf-webtrans-http3 §5.6.2, §5.6.4";
    SessionStreamLimit: Stream WT_FLOW_CONTROL_ERROR, "more streams of a session than allowed", "draft-ietf-webtrans-http3 §5.6.2";
    SessionDataLimit: Stream WT_FLOW_CONTROL_ERROR, "more data of a session than allowed", "draft-ietf-webtrans-http3 §5.6.4";
    SessionRequirements: Stream H3_MESSAGE_ERROR, "a session of a client without the settings that it needs", "draft-ietf-webtrans-http3 §3.1";
    ProtocolNotOffered: Stream WT_ALPN_ERROR, "a protocol of a session that was not offered, or none", "draft-ietf-webtrans-http3 §3.3";
    // Messages.
    RequestIncomplete: Stream H3_REQUEST_INCOMPLETE, "a request that ends before its head", "RFC 9114 §4.1";
    ResponseIncomplete: Stream H3_MESSAGE_ERROR, "a response that ends before its final head", "RFC 9114 §4.1";
    SectionTooLarge: Stream H3_EXCESSIVE_LOAD, "a field section that is larger than allowed", "RFC 9114 §4.2.2";
    PseudoFieldUnknown: Stream H3_MESSAGE_ERROR, "a pseudo-header field that the message must not have", "RFC 9114 §4.3";
    PseudoFieldTwice: Stream H3_MESSAGE_ERROR, "a pseudo-header field that comes twice", "RFC 9114 §4.3";
    PseudoFieldLate: Stream H3_MESSAGE_ERROR, "a pseudo-header field behind another field", "RFC 9114 §4.3";
    PseudoFieldMissing: Stream H3_MESSAGE_ERROR, "a message without a pseudo-header field that it needs", "RFC 9114 §4.3.1, §4.3.2";
    PseudoFieldOfConnect: Stream H3_MESSAGE_ERROR, "a CONNECT with other pseudo-header fields than it has", "RFC 9114 §4.4";
    PseudoFieldInTrailers: Stream H3_MESSAGE_ERROR, "a pseudo-header field in trailers", "RFC 9114 §4.3";
    FieldName: Stream H3_MESSAGE_ERROR, "a field name with a character that is not allowed", "RFC 9114 §4.2";
    FieldValue: Stream H3_MESSAGE_ERROR, "a field value with a character that is not allowed", "RFC 9114 §10.3";
    FieldOfConnection: Stream H3_MESSAGE_ERROR, "a field of a connection, which HTTP/3 does not have", "RFC 9114 §4.2";
    Te: Stream H3_MESSAGE_ERROR, "a field te with another value than trailers", "RFC 9114 §4.2";
    MethodInvalid: Stream H3_MESSAGE_ERROR, "a method that is no token", "RFC 9110 §9.1";
    SchemeInvalid: Stream H3_MESSAGE_ERROR, "a scheme that cannot be", "RFC 3986 §3.1";
    AuthorityInvalid: Stream H3_MESSAGE_ERROR, "an authority that cannot be", "RFC 9114 §4.3.1";
    AuthorityMissing: Stream H3_MESSAGE_ERROR, "a request without an authority", "RFC 9114 §4.3.1";
    Userinfo: Stream H3_MESSAGE_ERROR, "an authority with userinfo", "RFC 9114 §4.3.1";
    HostTwice: Stream H3_MESSAGE_ERROR, "two fields host", "RFC 9110 §7.2";
    HostDiffers: Stream H3_MESSAGE_ERROR, "a field host that differs from :authority", "RFC 9114 §4.3.1";
    PathInvalid: Stream H3_MESSAGE_ERROR, "a path that cannot be", "RFC 9114 §4.3.1";
    StatusInvalid: Stream H3_MESSAGE_ERROR, "a status that cannot be", "RFC 9114 §4.3.2";
    SwitchingProtocols: Stream H3_MESSAGE_ERROR, "a status 101, which HTTP/3 does not have", "RFC 9114 §4.5";
    ContentLengthInvalid: Stream H3_MESSAGE_ERROR, "a content-length that is no number, or another one beside it", "RFC 9110 §8.6";
    ContentLengthDiffers: Stream H3_MESSAGE_ERROR, "content that is not as long as its content-length", "RFC 9114 §4.1.2";
    ContentNotAllowed: Stream H3_MESSAGE_ERROR, "content in a response that has none", "RFC 9110 §6.4.1";
}

impl std::error::Error for Violation {}

impl From<qpack::Error> for Violation {
    fn from(error: qpack::Error) -> Self {
        Self::Qpack(error)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn each_violation_has_a_text_of_its_own_and_names_its_source() {
        let texts: HashSet<_> = Violation::ALL.iter().map(ToString::to_string).collect();
        assert_eq!(texts.len(), Violation::ALL.len());
        assert!(texts.iter().all(|text| text.ends_with(')')), "{texts:?}");
    }

    /// RFC 9114 §4.1.2: a malformed message is an error of its stream.
    #[test]
    fn malformed_messages_end_their_stream_alone() {
        for violation in Violation::ALL {
            let is_message = violation.code() == Code::H3_MESSAGE_ERROR;
            assert!(
                !is_message || violation.scope() == Scope::Stream,
                "{violation}"
            );
        }
    }

    #[test]
    fn codes_of_applications_have_codes_of_http_3() {
        for (code, wire) in [
            (0, FIRST_OF_APPLICATIONS),
            (1, FIRST_OF_APPLICATIONS + 1),
            (0x1d, FIRST_OF_APPLICATIONS + 0x1d),
            (0x1e, FIRST_OF_APPLICATIONS + 0x1f),
            (u32::MAX, LAST_OF_APPLICATIONS),
        ] {
            assert_eq!(to_wire(code), Code(wire));
            assert_eq!(from_wire(Code(wire)), Some(code));
        }
    }

    #[test]
    fn other_codes_are_none_of_applications() {
        let gone = Code::WT_SESSION_GONE.0;
        for code in [
            0,
            0x100,
            gone,
            FIRST_OF_APPLICATIONS - 1,
            FIRST_OF_APPLICATIONS + 0x1e,
            LAST_OF_APPLICATIONS + 1,
        ] {
            assert_eq!(from_wire(Code(code)), None, "{code:#x}");
        }
    }
}
