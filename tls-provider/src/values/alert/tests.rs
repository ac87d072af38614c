use super::*;
use crate::Error;

/// The alerts of RFC 8446 §6 and those that later RFCs added to TLS 1.3.
#[test]
fn every_alert_of_tls_1_3_has_its_name() {
    for (code, name) in [
        (0, "close_notify"),
        (10, "unexpected_message"),
        (20, "bad_record_mac"),
        (22, "record_overflow"),
        (40, "handshake_failure"),
        (42, "bad_certificate"),
        (43, "unsupported_certificate"),
        (44, "certificate_revoked"),
        (45, "certificate_expired"),
        (46, "certificate_unknown"),
        (47, "illegal_parameter"),
        (48, "unknown_ca"),
        (49, "access_denied"),
        (50, "decode_error"),
        (51, "decrypt_error"),
        (70, "protocol_version"),
        (71, "insufficient_security"),
        (80, "internal_error"),
        (86, "inappropriate_fallback"),
        (90, "user_canceled"),
        (109, "missing_extension"),
        (110, "unsupported_extension"),
        (112, "unrecognized_name"),
        (113, "bad_certificate_status_response"),
        (115, "unknown_psk_identity"),
        (116, "certificate_required"),
        (117, "general_error"),
        (120, "no_application_protocol"),
        (121, "ech_required"),
    ] {
        assert_eq!(Alert(code).name(), Some(name));
        assert_eq!(Alert(code).to_string(), name);
    }
    assert_eq!(FACTS.len(), 29);
    assert_eq!(Alert(1).name(), None);
    assert_eq!(Alert(1).to_string(), "TLS alert 1");
}

#[test]
fn every_failure_has_a_remedy_at_both_ends() {
    for facts in &FACTS {
        let ends_without_fault = matches!(facts.name, "close_notify" | "user_canceled");
        assert_eq!(
            facts.alert.remedy().is_none(),
            ends_without_fault,
            "{}",
            facts.name
        );
        assert_eq!(
            facts.alert.remedy_for_received().is_none(),
            ends_without_fault
        );
    }
}

/// What a user can do depends on the end; only faults of an implementation have the same advice at
/// both.
#[test]
fn advice_about_certificates_is_for_the_end_that_gets_it() {
    for alert in [42, 43, 44, 45, 46, 48, 49, 51, 80, 112, 116].map(Alert) {
        assert_ne!(alert.remedy(), alert.remedy_for_received(), "{alert}");
    }
}

#[test]
fn an_error_names_the_alert_and_the_remedy() {
    let error = Error::new(Alert::UNKNOWN_CA, "invalid peer certificate: UnknownIssuer");
    assert_eq!(
        error.to_string(),
        "unknown_ca: invalid peer certificate: UnknownIssuer; the certificate's issuer is not \
         trusted: give its root with `ClientConfig::trust`, or at a server with \
         `ServerConfig::client_auth`"
    );
    let error = Error::new(Alert::BAD_CERTIFICATE, "it is upside down; turn it");
    assert_eq!(
        error.to_string(),
        "bad_certificate: it is upside down; turn it"
    );
    let error = Error::protocol_violation("too early");
    assert_eq!(error.to_string(), "PROTOCOL_VIOLATION: too early");
}
