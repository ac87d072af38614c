//! The secret that a controller and an agent share.
//!
//! The secret is never sent. The agent sends a challenge, and the controller answers with its HMAC (RFC
//! 2104) under the token. This stops strangers from starting processes; it does not hide the
//! measurements.

use std::fmt;
use std::str::FromStr;

use aws_lc_rs::{hmac, rand};

use crate::Failure;

/// Prefix of the challenge under the HMAC, so that the answer has no other use.
const PURPOSE: &[u8] = b"netbench control port";

/// A shared secret.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Token(String);

impl Token {
    /// Returns the answer to a challenge.
    pub(super) fn prove(&self, challenge: &str) -> String {
        hex(hmac::sign(&self.key(), &message(challenge)).as_ref())
    }

    /// Returns true if it is the answer to the challenge. Takes constant time.
    pub(super) fn is_proven(&self, challenge: &str, proof: &str) -> bool {
        let proof = from_hex(proof).unwrap_or_default();
        hmac::verify(&self.key(), &message(challenge), &proof).is_ok()
    }

    fn key(&self) -> hmac::Key {
        hmac::Key::new(hmac::HMAC_SHA256, self.0.as_bytes())
    }
}

/// Returns a challenge that was never used before.
pub(super) fn challenge() -> Result<String, Failure> {
    let mut bytes = [0; 32];
    rand::fill(&mut bytes).map_err(|_| "the system has no random numbers")?;
    Ok(hex(&bytes))
}

fn message(challenge: &str) -> Vec<u8> {
    [PURPOSE, challenge.as_bytes()].concat()
}

fn hex(bytes: &[u8]) -> String {
    bytes
        .iter()
        .fold(String::new(), |text, byte| format!("{text}{byte:02x}"))
}

fn from_hex(text: &str) -> Option<Vec<u8>> {
    let digits = text.as_bytes().chunks(2);
    digits
        .map(|pair| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok())
        .collect()
}

impl FromStr for Token {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.trim() {
            short if short.len() < 8 => Err("a token has at least 8 characters".to_owned()),
            token => Ok(Self(token.to_owned())),
        }
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(…)")
    }
}

#[cfg(test)]
mod tests {
    use super::{Token, challenge};

    #[test]
    fn only_the_same_token_proves_itself_and_only_for_one_challenge() {
        let token: Token = "correct horse".parse().unwrap();
        let other: Token = "battery staple".parse().unwrap();
        let (first, second) = (challenge().unwrap(), challenge().unwrap());
        let proof = token.prove(&first);
        assert!(token.is_proven(&first, &proof));
        assert!(!token.is_proven(&second, &proof));
        assert!(!other.is_proven(&first, &proof));
        for junk in ["", "zz", "é", &proof[1..], &format!("{proof}00")] {
            assert!(!token.is_proven(&first, junk), "{junk}");
        }
    }

    #[test]
    fn a_token_is_not_printed_and_not_short() {
        let token: Token = "correct horse".parse().unwrap();
        assert_eq!(format!("{token:?}"), "Token(…)");
        assert!("1234567".parse::<Token>().is_err());
    }
}
