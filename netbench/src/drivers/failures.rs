//! Error codes on the wire, as categories of results.

use std::fmt;

use crate::system::outcome::{Failed, Kind};

/// Returns the failure for a transport's CONNECTION_CLOSE (RFC 9000 §20.1), by either end.
pub(crate) fn transport(code: u64, detail: impl fmt::Display) -> Failed {
    Failed::new(transport_kind(code), detail)
}

fn transport_kind(code: u64) -> Kind {
    let name = match code {
        0x00 => "NO_ERROR",
        0x01 => "INTERNAL_ERROR",
        0x02 => return Kind::Refused,
        0x03 => "FLOW_CONTROL_ERROR",
        0x04 => "STREAM_LIMIT_ERROR",
        0x05 => "STREAM_STATE_ERROR",
        0x06 => "FINAL_SIZE_ERROR",
        0x07 => "FRAME_ENCODING_ERROR",
        0x08 => "TRANSPORT_PARAMETER_ERROR",
        0x09 => "CONNECTION_ID_LIMIT_ERROR",
        0x0a => "PROTOCOL_VIOLATION",
        0x0b => "INVALID_TOKEN",
        0x0c => "APPLICATION_ERROR",
        0x0d => "CRYPTO_BUFFER_EXCEEDED",
        0x0e => "KEY_UPDATE_ERROR",
        0x0f => "AEAD_LIMIT_REACHED",
        0x10 => "NO_VIABLE_PATH",
        0x11 => "VERSION_NEGOTIATION_ERROR",
        0x100..=0x1ff => return Kind::Alert(alert_name(code as u8)),
        code => return Kind::Transport(format!("{code:#x}")),
    };
    Kind::Transport(name.to_owned())
}

/// Returns the failure for a TLS alert.
pub(crate) fn alert(code: u8, detail: impl fmt::Display) -> Failed {
    Failed::new(Kind::Alert(alert_name(code)), detail)
}

/// Returns the name of an alert in RFC 8446 §6.
fn alert_name(code: u8) -> String {
    let name = match code {
        0 => "close_notify",
        10 => "unexpected_message",
        20 => "bad_record_mac",
        22 => "record_overflow",
        40 => "handshake_failure",
        42 => "bad_certificate",
        43 => "unsupported_certificate",
        44 => "certificate_revoked",
        45 => "certificate_expired",
        46 => "certificate_unknown",
        47 => "illegal_parameter",
        48 => "unknown_ca",
        49 => "access_denied",
        50 => "decode_error",
        51 => "decrypt_error",
        70 => "protocol_version",
        71 => "insufficient_security",
        80 => "internal_error",
        86 => "inappropriate_fallback",
        90 => "user_canceled",
        109 => "missing_extension",
        110 => "unsupported_extension",
        112 => "unrecognized_name",
        113 => "bad_certificate_status_response",
        115 => "unknown_psk_identity",
        116 => "certificate_required",
        120 => "no_application_protocol",
        code => return code.to_string(),
    };
    name.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_counted_by_their_names() {
        assert_eq!(transport(2, "").kind, Kind::Refused);
        assert_eq!(
            transport(0x130, "").kind,
            Kind::Alert("unknown_ca".to_owned())
        );
        assert_eq!(
            transport(10, "").kind,
            Kind::Transport("PROTOCOL_VIOLATION".to_owned())
        );
        assert_eq!(
            transport(0x4001, "").kind,
            Kind::Transport("0x4001".to_owned())
        );
        assert_eq!(alert(255, "").kind, Kind::Alert("255".to_owned()));
    }
}
