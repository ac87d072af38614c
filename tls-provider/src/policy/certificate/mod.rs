//! Fields of certificates: the validity period and the public key (RFC 5280 §4.1).

use std::time::{Duration, SystemTime, UNIX_EPOCH};

mod algorithms;
pub(crate) mod ocsp;

#[cfg(test)]
mod tests;

pub(crate) use algorithms::signature_bits;
pub use algorithms::{CertificateAlgorithms, KeyAlgorithm, SignatureAlgorithm};

const SEQUENCE: u8 = 0x30;
const INTEGER: u8 = 0x02;
const VERSION: u8 = 0xa0;
const UTC_TIME: u8 = 0x17;
const GENERALIZED_TIME: u8 = 0x18;

/// Times between which a certificate is valid, both inclusive, in seconds since 1970.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Validity {
    not_before: i64,
    not_after: i64,
}

impl Validity {
    /// Reads the validity of a certificate; `None` if it is malformed.
    pub(crate) fn of(certificate: &[u8]) -> Option<Self> {
        let (validity, _) = item(from_validity(certificate)?, SEQUENCE)?;
        let (not_before, rest) = time(validity)?;
        let (not_after, _) = time(rest)?;
        Some(Self {
            not_before,
            not_after,
        })
    }

    /// Describes what is wrong with the certificate at a time, if anything is.
    pub(crate) fn problem(self, now: SystemTime) -> Option<String> {
        let now = now.duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO);
        let now = i64::try_from(now.as_secs()).unwrap_or(i64::MAX);
        if now > self.not_after {
            let days = (now - self.not_after) / SECONDS_A_DAY;
            let since = self.not_after;
            return Some(format!("expired {days} days ago (at {since})"));
        }
        (now < self.not_before)
            .then(|| format!("is not valid before {} (now {now})", self.not_before))
    }
}

/// Returns the DER names of a certificate's issuer and of its subject.
#[cfg(feature = "rustls")]
pub(crate) fn names(certificate: &[u8]) -> Option<(&[u8], &[u8])> {
    let (issuer, rest) = item(from_issuer(certificate)?, SEQUENCE)?;
    let (_validity, rest) = item(rest, SEQUENCE)?;
    let (subject, _) = item(rest, SEQUENCE)?;
    Some((issuer, subject))
}

/// Returns the fields of a certificate starting at its validity.
fn from_validity(certificate: &[u8]) -> Option<&[u8]> {
    let (_issuer, rest) = item(from_issuer(certificate)?, SEQUENCE)?;
    Some(rest)
}

/// Returns the fields of a certificate starting at its issuer.
fn from_issuer(certificate: &[u8]) -> Option<&[u8]> {
    let (_serial, rest) = item(from_serial(certificate)?, INTEGER)?;
    let (_algorithm, rest) = item(rest, SEQUENCE)?;
    Some(rest)
}

/// Returns the fields of a certificate starting at its serial number.
fn from_serial(certificate: &[u8]) -> Option<&[u8]> {
    let (certificate, _) = item(certificate, SEQUENCE)?;
    let (body, _) = item(certificate, SEQUENCE)?;
    Some(item(body, VERSION).map_or(body, |(_, rest)| rest))
}

/// Returns the DER SubjectPublicKeyInfo of a certificate.
#[cfg(all(unix, feature = "s2n-tls"))]
pub(crate) fn public_key(certificate: &[u8]) -> Option<&[u8]> {
    let (_validity, rest) = item(from_validity(certificate)?, SEQUENCE)?;
    let (_subject, key) = item(rest, SEQUENCE)?;
    let (_, after) = item(key, SEQUENCE)?;
    key.get(..key.len() - after.len())
}

/// Says which keys can be used instead of this one. ML-DSA private keys have several forms, and
/// drafts had others (RFC 9881 §6).
#[cfg(any(feature = "rustls", all(unix, feature = "s2n-tls")))]
pub(crate) fn key_remedy(private_key: &[u8]) -> &'static str {
    if algorithms::is_ml_dsa_key(private_key) {
        "give the ML-DSA key as its seed, its expanded form or both, as RFC 9881 writes them \
         (`openssl pkey -in KEY -out NEW` of OpenSSL 3.5 converts others)"
    } else {
        "give an X.509 chain and its key of ECDSA, RSA or ML-DSA, or of Ed25519 for rustls"
    }
}

/// Splits one DER item of this kind off the front: its content and the rest.
fn item(der: &[u8], kind: u8) -> Option<(&[u8], &[u8])> {
    let (&found, rest) = der.split_first()?;
    let (&first, rest) = rest.split_first()?;
    let (len, rest) = if first < 0x80 {
        (usize::from(first), rest)
    } else {
        let bytes = usize::from(first & 0x7f);
        if bytes == 0 || bytes > 4 {
            return None;
        }
        let (len, rest) = rest.split_at_checked(bytes)?;
        let len = len
            .iter()
            .fold(0_u64, |len, byte| len << 8 | u64::from(*byte));
        (usize::try_from(len).ok()?, rest)
    };
    if found != kind {
        return None;
    }
    rest.split_at_checked(len)
}

/// Splits one time off the front.
fn time(der: &[u8]) -> Option<(i64, &[u8])> {
    if let Some((text, rest)) = item(der, GENERALIZED_TIME) {
        let (year, text) = text.split_at_checked(4)?;
        return Some((seconds(digits(year)?, text)?, rest));
    }
    let (text, rest) = item(der, UTC_TIME)?;
    let (year, text) = text.split_at_checked(2)?;
    let year = digits(year)?;
    let century = if year < 50 { 2000 } else { 1900 };
    Some((seconds(century + year, text)?, rest))
}

fn digits(text: &[u8]) -> Option<i64> {
    text.iter().try_fold(0, |number, byte| {
        byte.is_ascii_digit()
            .then(|| number * 10 + i64::from(byte - b'0'))
    })
}

const SECONDS_A_DAY: i64 = 86_400;

/// Reads `MMDDhhmmssZ` in a given year.
fn seconds(year: i64, text: &[u8]) -> Option<i64> {
    let [fields @ .., b'Z'] = text else {
        return None;
    };
    if fields.len() != 10 {
        return None;
    }
    let mut fields = fields.chunks(2).map(digits);
    let mut next = |low: i64, high: i64| {
        let value = fields.next()??;
        (low..=high).contains(&value).then_some(value)
    };
    let (month, day) = (next(1, 12)?, next(1, 31)?);
    let (hour, minute, second) = (next(0, 23)?, next(0, 59)?, next(0, 60)?);
    let days = days_since_1970(year, month, day);
    Some(days * SECONDS_A_DAY + hour * 3600 + minute * 60 + second)
}

/// Counts the days of the Gregorian calendar. Years begin in March, so that the leap day is last.
fn days_since_1970(year: i64, month: i64, day: i64) -> i64 {
    let year = if month > 2 { year } else { year - 1 };
    let days_of_months = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    let leap_days = year.div_euclid(4) - year.div_euclid(100) + year.div_euclid(400);
    // 719,468 days lie between March of the year 0 and 1970.
    365 * year + leap_days + days_of_months - 719_468
}
