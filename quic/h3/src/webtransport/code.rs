//! Codes of applications as codes of HTTP/3 (draft-ietf-webtrans-http3 §4.4).

use crate::error::Code;

/// Codes of HTTP/3 that stand for those of applications. One in 31 between them is reserved (RFC 9114
/// §8.1).
const FIRST: u64 = 0x52e4_a40f_a8db;
const LAST: u64 = 0x52e5_ac98_3162;

/// Returns the code of HTTP/3 for the code of an application (draft-ietf-webtrans-http3 §4.4).
pub fn to_wire(code: u32) -> Code {
    let code = u64::from(code);
    Code(FIRST + code + code / 0x1e)
}

/// Returns the code of the application for a code of HTTP/3; `None` if it stands for none
/// (draft-ietf-webtrans-http3 §4.4).
pub fn from_wire(code: Code) -> Option<u32> {
    let code = code.0;
    if !(FIRST..=LAST).contains(&code) || (code - 0x21) % 0x1f == 0 {
        return None;
    }
    let shifted = code - FIRST;
    u32::try_from(shifted - shifted / 0x1f).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_of_applications_have_codes_of_http_3() {
        for (code, wire) in [
            (0, FIRST),
            (1, FIRST + 1),
            (0x1d, FIRST + 0x1d),
            (0x1e, FIRST + 0x1f),
            (u32::MAX, LAST),
        ] {
            assert_eq!(to_wire(code), Code(wire));
            assert_eq!(from_wire(Code(wire)), Some(code));
        }
    }

    #[test]
    fn other_codes_are_none_of_applications() {
        let gone = Code::WT_SESSION_GONE.0;
        for code in [0, 0x100, gone, FIRST - 1, FIRST + 0x1e, LAST + 1] {
            assert_eq!(from_wire(Code(code)), None, "{code:#x}");
        }
    }
}
