//! OCSP responses that a server staples to its certificate (RFC 6960 §4.2.1).

use super::{GENERALIZED_TIME, INTEGER, SEQUENCE, from_serial, item};

/// Largest response in bytes: one with a certificate of ML-DSA has less than half of it, and the extension of the
/// Certificate message holds 64 KiB.
const MAX_LEN: usize = 32 << 10;

const OCTET_STRING: u8 = 0x04;
const OBJECT_IDENTIFIER: u8 = 0x06;
const ENUMERATED: u8 = 0x0a;
/// The explicit tag \[0\].
const FIRST: u8 = 0xa0;
/// The forms of a ResponderID: by name, and by key.
const RESPONDER: [u8; 2] = [0xa1, 0xa2];
/// The status `good` of a certificate, without content.
const GOOD: u8 = 0x80;
/// `id-pkix-ocsp-basic`.
const BASIC: &[u8] = &[0x2b, 0x06, 0x01, 0x05, 0x05, 0x07, 0x30, 0x01, 0x01];

/// Checks that a response in DER says of a certificate that it is good. Neither its signature nor its time is checked:
/// clients do that.
///
/// # Errors
/// The text says what is wrong, and what to give instead.
pub(crate) fn check(response: &[u8], certificate: &[u8]) -> Result<(), String> {
    if response.len() > MAX_LEN {
        let len = response.len();
        return Err(format!(
            "it has {len} bytes, and at most {MAX_LEN} are sent; ask for one without extra certificates"
        ));
    }
    let malformed = "it is no OCSP response in DER; give what `openssl ocsp -respout FILE` writes";
    let (status, rest) = status(response).ok_or(malformed)?;
    if status != [0] {
        return Err(format!(
            "the responder refused to answer (status {}); ask again later",
            status.first().copied().unwrap_or_default()
        ));
    }
    let mut answers = answers(rest).ok_or(malformed)?;
    let serial = from_serial(certificate).and_then(|fields| item(fields, INTEGER));
    let (serial, _) = serial.ok_or("the certificate beside it cannot be read; give X.509")?;
    while !answers.is_empty() {
        let (answer, others) = item(answers, SEQUENCE).ok_or(malformed)?;
        answers = others;
        let (about, status) = about(answer).ok_or(malformed)?;
        if about != serial {
            continue;
        }
        return match status.first() {
            Some(&GOOD) => Ok(()),
            _ => Err(
                "it says that the certificate is revoked or unknown; get another one".to_owned(),
            ),
        };
    }
    Err("it is about another certificate; ask the responder about this one".to_owned())
}

/// Returns the status of a response, and what follows it.
fn status(response: &[u8]) -> Option<(&[u8], &[u8])> {
    let (whole, after) = item(response, SEQUENCE)?;
    item(whole, ENUMERATED).filter(|(status, _)| after.is_empty() && status.len() == 1)
}

/// Returns the SingleResponses of a BasicOCSPResponse.
fn answers(rest: &[u8]) -> Option<&[u8]> {
    let (bytes, _) = item(rest, FIRST)?;
    let (bytes, _) = item(bytes, SEQUENCE)?;
    let (kind, bytes) = item(bytes, OBJECT_IDENTIFIER)?;
    let (basic, _) = item(bytes, OCTET_STRING).filter(|_| kind == BASIC)?;
    let (basic, _) = item(basic, SEQUENCE)?;
    let (data, _) = item(basic, SEQUENCE)?;
    let data = item(data, FIRST).map_or(data, |(_version, rest)| rest);
    let (_responder, data) = RESPONDER.iter().find_map(|form| item(data, *form))?;
    let (_produced_at, data) = item(data, GENERALIZED_TIME)?;
    item(data, SEQUENCE).map(|(answers, _)| answers)
}

/// Returns the serial number that a SingleResponse is about, and the fields from its status on.
fn about(answer: &[u8]) -> Option<(&[u8], &[u8])> {
    let (id, status) = item(answer, SEQUENCE)?;
    let (_algorithm, id) = item(id, SEQUENCE)?;
    let (_name, id) = item(id, OCTET_STRING)?;
    let (_key, id) = item(id, OCTET_STRING)?;
    let (serial, _) = item(id, INTEGER)?;
    Some((serial, status))
}
