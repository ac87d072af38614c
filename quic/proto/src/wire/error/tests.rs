//! The table of rules, and what it costs.

use std::collections::HashSet;

use super::{Code, ConnectionError, TransportError, Violation};

#[test]
fn every_rule_has_a_code_and_a_text_of_its_own() {
    let mut texts = HashSet::new();
    for rule in Violation::ALL {
        let text = rule.to_string();
        assert!(!text.is_empty() && !text.contains(['{', '}']), "{rule:?}");
        assert_ne!(rule.code(), Code::NO_ERROR, "{rule:?}");
        assert!(texts.insert(text), "two rules read as {rule:?}");
    }
    assert!(texts.len() > 80, "{} rules", texts.len());
}

/// The other end finds the rule that it broke, whatever the error is about.
#[test]
fn a_rule_is_found_by_its_code_and_reason() {
    for &rule in Violation::ALL {
        for error in [rule.into(), rule.of("max_data"), rule.of("0x1f")] {
            let TransportError { code, reason, .. } = error;
            assert_eq!(Violation::told(code, reason.as_bytes()), Some(rule));
            assert_eq!(Violation::told(Code::NO_ERROR, reason.as_bytes()), None);
        }
    }
    for unknown in ["packet without frame", "a packet without frames", ""] {
        let told = Violation::told(Code::PROTOCOL_VIOLATION, unknown.as_bytes());
        assert_eq!(told, None, "{unknown}");
    }
    assert_eq!(Violation::told(Code::PROTOCOL_VIOLATION, b"\xff"), None);
}

#[test]
fn a_name_stands_in_the_place_of_the_noun() {
    let reason = |error: TransportError| error.reason;
    let text = "parameter came twice";
    assert_eq!(
        reason(Violation::ParameterTwice.of("x")),
        text.replace("parameter", "x")
    );
    assert_eq!(
        reason(Violation::ParameterTwice.into()),
        format!("transport {text}")
    );
    let text = "ACK of a packet that was never sent";
    assert_eq!(reason(Violation::AckOfUnsent.of("x")), text);
    assert_eq!(Violation::AckOfUnsent.to_string(), text);
}

/// Results of every packet and frame carry them.
#[test]
fn errors_stay_small() {
    assert_eq!(size_of::<Violation>(), 1);
    assert_eq!(size_of::<TransportError>(), 56);
    assert_eq!(size_of::<ConnectionError>(), 64);
}
