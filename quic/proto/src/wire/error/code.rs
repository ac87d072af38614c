//! Codes of transport errors (RFC 9000 §20.1).

use std::fmt;

use hybriq_tls::Alert;

/// A transport error code (RFC 9000 §20.1).
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Code(pub u64);

macro_rules! codes {
    ($($name:ident = $value:literal, $doc:literal;)*) => {
        impl Code {
            $(#[doc = $doc] pub const $name: Self = Self($value);)*
        }

        impl fmt::Debug for Code {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                match self.0 {
                    $($value => f.write_str(stringify!($name)),)*
                    0x100..0x200 => {
                        let alert = (self.0 - 0x100) as u8;
                        match Alert(alert).name() {
                            Some(name) => write!(f, "CRYPTO_ERROR ({alert}: {name})"),
                            None => write!(f, "CRYPTO_ERROR ({alert})"),
                        }
                    }
                    code => write!(f, "{code:#x}"),
                }
            }
        }
    };
}

codes! {
    NO_ERROR = 0x00, "The connection is closed without an error.";
    INTERNAL_ERROR = 0x01, "An implementation fault.";
    CONNECTION_REFUSED = 0x02, "The server does not accept the connection.";
    FLOW_CONTROL_ERROR = 0x03, "More data than the limits allow.";
    STREAM_LIMIT_ERROR = 0x04, "More streams than the limits allow.";
    STREAM_STATE_ERROR = 0x05, "A frame for a stream that cannot take it.";
    FINAL_SIZE_ERROR = 0x06, "The final size of a stream changed.";
    FRAME_ENCODING_ERROR = 0x07, "A frame that cannot be parsed.";
    TRANSPORT_PARAMETER_ERROR = 0x08, "Transport parameters that cannot be used.";
    CONNECTION_ID_LIMIT_ERROR = 0x09, "More connection ids than allowed.";
    PROTOCOL_VIOLATION = 0x0a, "A violation without a code of its own.";
    INVALID_TOKEN = 0x0b, "A Retry token that is not valid.";
    APPLICATION_ERROR = 0x0c, "The application closed during the handshake.";
    CRYPTO_BUFFER_EXCEEDED = 0x0d, "More CRYPTO data than can be buffered.";
    KEY_UPDATE_ERROR = 0x0e, "A key update that was not allowed.";
    AEAD_LIMIT_REACHED = 0x0f, "The limit of the AEAD was reached.";
    NO_VIABLE_PATH = 0x10, "No path left.";
    VERSION_NEGOTIATION_ERROR = 0x11, "Version negotiation was tampered with (RFC 9368).";
}

impl Code {
    /// Returns the code of a TLS alert (RFC 9001 §4.8).
    pub const fn crypto(alert: u8) -> Self {
        Self(0x100 + alert as u64)
    }

    /// Returns the TLS alert, if the code carries one.
    pub const fn alert(self) -> Option<u8> {
        match self.0 {
            0x100..0x200 => Some((self.0 - 0x100) as u8),
            _ => None,
        }
    }
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}
