//! TLS alerts: their names and what to do about them.

use std::fmt;

#[cfg(test)]
mod tests;

/// A TLS alert description (RFC 8446 §6). QUIC sends it as `CRYPTO_ERROR`, `0x0100 + alert`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Alert(pub u8);

struct Facts {
    alert: Alert,
    name: &'static str,
    /// Advice if this end raised the alert.
    raised: Option<&'static str>,
    /// Advice if the peer raised the alert.
    received: Option<&'static str>,
}

/// Advice for faults of an implementation, the same at both ends.
const BROKEN: &str = "one of the two TLS implementations is faulty; capture the handshake with a \
                      key log and report it";

const FACTS: [Facts; 29] = {
    const fn facts(
        alert: u8,
        name: &'static str,
        raised: &'static str,
        received: &'static str,
    ) -> Facts {
        Facts {
            alert: Alert(alert),
            name,
            raised: Some(raised),
            received: Some(received),
        }
    }
    const fn both(alert: u8, name: &'static str, advice: &'static str) -> Facts {
        facts(alert, name, advice, advice)
    }
    const fn plain(alert: u8, name: &'static str) -> Facts {
        Facts {
            alert: Alert(alert),
            name,
            raised: None,
            received: None,
        }
    }
    [
        plain(0, "close_notify"),
        both(10, "unexpected_message", BROKEN),
        both(20, "bad_record_mac", BROKEN),
        both(22, "record_overflow", BROKEN),
        both(
            40,
            "handshake_failure",
            "give both ends a key-exchange group, a cipher suite and a signature scheme in common",
        ),
        facts(
            42,
            "bad_certificate",
            "connect by a name that the certificate has, or have it reissued with this name",
            "give a certificate that is well-formed and has the name the peer asks for",
        ),
        facts(
            43,
            "unsupported_certificate",
            "ask the peer for a certificate with a key and a signature that this end allows",
            "give a certificate with a key and a signature that the peer allows: ask for its profile",
        ),
        facts(
            44,
            "certificate_revoked",
            "do not trust this peer; its owner must have a new certificate issued",
            "have a new certificate issued: the issuer revoked this one",
        ),
        facts(
            45,
            "certificate_expired",
            "have the peer renew its certificate, or set the clock of this machine right",
            "renew the certificate, or have the peer set its clock right",
        ),
        facts(
            46,
            "certificate_unknown",
            "look at the reason: the certificate was read but is not acceptable",
            "look into the peer's log: it read the certificate but does not accept it",
        ),
        both(47, "illegal_parameter", BROKEN),
        facts(
            48,
            "unknown_ca",
            "the certificate's issuer is not trusted: give its root with `ClientConfig::trust`, or at a \
             server with `ServerConfig::client_auth`",
            "the peer does not trust the certificate's issuer: give the root to the peer, and send \
             the whole chain",
        ),
        facts(
            49,
            "access_denied",
            "the certificate is valid, but its owner may not connect here",
            "the peer accepts only certain certificates: ask for access, or give another identity",
        ),
        both(50, "decode_error", BROKEN),
        facts(
            51,
            "decrypt_error",
            "the peer's key is not the one of its certificate, or something changed the handshake on its \
             way: check the peer's key, and capture the handshake with a key log",
            "the peer could not verify a signature of this end: give the key that belongs to the \
             certificate, see whether the peer trusts another root of the same name, and capture the \
             handshake with a key log",
        ),
        both(70, "protocol_version", "enable TLS 1.3 at both ends"),
        both(
            71,
            "insufficient_security",
            "let the two ends have a cipher suite or a group in common that both find strong enough",
        ),
        facts(
            80,
            "internal_error",
            "this is not the peer's fault: look at the reason and report it",
            "the fault is the peer's: look into its log",
        ),
        both(
            86,
            "inappropriate_fallback",
            "do not retry with an older protocol",
        ),
        plain(90, "user_canceled"),
        both(
            109,
            "missing_extension",
            "enable TLS 1.3 for QUIC at both ends",
        ),
        both(110, "unsupported_extension", BROKEN),
        facts(
            112,
            "unrecognized_name",
            "add an identity for the server name that the client asks for",
            "connect by a name that the server has a certificate for",
        ),
        both(113, "bad_certificate_status_response", BROKEN),
        both(
            115,
            "unknown_psk_identity",
            "forget the session and connect again",
        ),
        facts(
            116,
            "certificate_required",
            "give the client an identity, or make client certificates optional",
            "give this client an identity: the server asks for a certificate",
        ),
        both(
            117,
            "general_error",
            "look into the log of the end that raised it",
        ),
        both(
            120,
            "no_application_protocol",
            "give both ends an application protocol (`alpn`) in common",
        ),
        both(
            121,
            "ech_required",
            "fetch the server's current Encrypted ClientHello configuration",
        ),
    ]
};

impl Alert {
    /// `unexpected_message`.
    pub const UNEXPECTED_MESSAGE: Self = Self(10);
    /// `handshake_failure`: no common parameters, for example no common group.
    pub const HANDSHAKE_FAILURE: Self = Self(40);
    /// `bad_certificate`: also a certificate for another name.
    pub const BAD_CERTIFICATE: Self = Self(42);
    /// `unsupported_certificate`.
    pub const UNSUPPORTED_CERTIFICATE: Self = Self(43);
    /// `certificate_revoked`.
    pub const CERTIFICATE_REVOKED: Self = Self(44);
    /// `certificate_expired`.
    pub const CERTIFICATE_EXPIRED: Self = Self(45);
    /// `certificate_unknown`.
    pub const CERTIFICATE_UNKNOWN: Self = Self(46);
    /// `illegal_parameter`.
    pub const ILLEGAL_PARAMETER: Self = Self(47);
    /// `unknown_ca`.
    pub const UNKNOWN_CA: Self = Self(48);
    /// `access_denied`.
    pub const ACCESS_DENIED: Self = Self(49);
    /// `decode_error`.
    pub const DECODE_ERROR: Self = Self(50);
    /// `decrypt_error`: an incorrect signature or Finished.
    pub const DECRYPT_ERROR: Self = Self(51);
    /// `protocol_version`.
    pub const PROTOCOL_VERSION: Self = Self(70);
    /// `insufficient_security`: a peer offers less than a policy requires.
    pub const INSUFFICIENT_SECURITY: Self = Self(71);
    /// `internal_error`: always our own fault.
    pub const INTERNAL_ERROR: Self = Self(80);
    /// `missing_extension`: for example no transport parameters.
    pub const MISSING_EXTENSION: Self = Self(109);
    /// `unsupported_extension`.
    pub const UNSUPPORTED_EXTENSION: Self = Self(110);
    /// `certificate_required`.
    pub const CERTIFICATE_REQUIRED: Self = Self(116);
    /// `no_application_protocol`.
    pub const NO_APPLICATION_PROTOCOL: Self = Self(120);

    fn facts(self) -> Option<&'static Facts> {
        FACTS.iter().find(|facts| facts.alert == self)
    }

    /// Returns the name in RFC 8446 §6, or `None` for an unknown alert.
    pub fn name(self) -> Option<&'static str> {
        self.facts().map(|facts| facts.name)
    }

    /// Returns what to do when this end raised the alert.
    pub fn remedy(self) -> Option<&'static str> {
        self.facts()?.raised
    }

    /// Returns what to do when the peer raised the alert.
    pub fn remedy_for_received(self) -> Option<&'static str> {
        self.facts()?.received
    }
}

impl fmt::Display for Alert {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            Some(name) => f.write_str(name),
            None => write!(f, "TLS alert {}", self.0),
        }
    }
}
