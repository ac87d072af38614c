//! The secret that a controller and an agent share.
//!
//! The secret is never sent. Agent and controller greet each other, each with a random number that was never
//! used before, and derive a key from the token and both greetings. From then on every line has its HMAC (RFC
//! 2104) under that key, with its direction and number; the first line of the controller is its proof.
//!
//! ```text
//!  controller                                agent
//!      │◄── Welcome { nonce } ─────────────────│   key = HMAC(token, Welcome, Hello)
//!      │─── Hello { nonce } ──────────────────►│
//!      │─── HMAC(key, 'c' 0 "") ──────────────►│   the proof: nothing is sealed before it is right
//!      │◄── HMAC(key, 'a' 0 line) line ────────│
//! ```
//! Strangers cannot start processes, and an attacker between the two can neither take over the
//! connection nor change, repeat, reorder or leave out a line. The lines are not encrypted. Whoever
//! poses as the agent or listens in can try tokens offline: a token made of words will be found.

use std::fmt;
use std::str::FromStr;

use aws_lc_rs::{hmac, rand};

use crate::system::failure::Failure;

/// Prefix under the HMAC that makes keys, so that they have no other use.
const PURPOSE: &str = "netbench control port, sealed lines";

/// A shared secret.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Token(String);

impl Token {
    /// Returns the seal for what follows these two greetings, as they were sent.
    pub(crate) fn seal(&self, end: End, welcome: &str, hello: &str) -> Seal {
        let token = hmac::Key::new(hmac::HMAC_SHA256, self.0.as_bytes());
        // No line has a line feed in it.
        let greetings = format!("{PURPOSE}\n{welcome}\n{hello}\n");
        let key = hmac::sign(&token, greetings.as_bytes());
        Seal {
            key: hmac::Key::new(hmac::HMAC_SHA256, key.as_ref()),
            end,
            closed: 0,
            opened: 0,
        }
    }
}

/// One of the two that share a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    Agent,
    Controller,
}

impl End {
    fn other(self) -> Self {
        match self {
            Self::Agent => Self::Controller,
            Self::Controller => Self::Agent,
        }
    }

    fn letter(self) -> char {
        match self {
            Self::Agent => 'a',
            Self::Controller => 'c',
        }
    }
}

/// Seals the lines of one end, and opens those of the other, in their order.
pub(crate) struct Seal {
    key: hmac::Key,
    end: End,
    closed: u64,
    opened: u64,
}

impl Seal {
    /// Returns the line with its HMAC before it.
    pub(crate) fn close(&mut self, line: &str) -> String {
        let proof = hmac::sign(&self.key, &message(self.end, self.closed, line));
        self.closed += 1;
        format!("{} {line}", hex(proof.as_ref()))
    }

    /// Returns the line without its HMAC; `None` if it is not the next line of the other end. Compares in
    /// constant time.
    pub(crate) fn open<'a>(&mut self, sealed: &'a str) -> Option<&'a str> {
        let (proof, line) = sealed.split_once(' ').unwrap_or((sealed, ""));
        let message = message(self.end.other(), self.opened, line);
        hmac::verify(&self.key, &message, &from_hex(proof)?).ok()?;
        self.opened += 1;
        Some(line)
    }
}

fn message(from: End, number: u64, line: &str) -> Vec<u8> {
    format!("{} {number} {line}", from.letter()).into_bytes()
}

/// Returns a number that was never used before.
pub(crate) fn nonce() -> Result<String, Failure> {
    let mut bytes = [0; 32];
    rand::fill(&mut bytes).map_err(|_| "the system has no random numbers")?;
    Ok(hex(&bytes))
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
    use super::{End, Seal, Token, nonce};

    const WELCOME: &str = r#"{"nonce":"1"}"#;
    const HELLO: &str = r#"{"nonce":"2"}"#;

    fn seal(token: &str, end: End, welcome: &str, hello: &str) -> Seal {
        let token: Token = token.parse().unwrap();
        token.seal(end, welcome, hello)
    }

    fn agent() -> Seal {
        seal("correct horse", End::Agent, WELCOME, HELLO)
    }

    fn controller() -> Seal {
        seal("correct horse", End::Controller, WELCOME, HELLO)
    }

    #[test]
    fn only_the_same_token_and_the_same_greetings_open_a_line() {
        let sealed = controller().close("start");
        assert_eq!(agent().open(&sealed), Some("start"));
        for (token, welcome, hello) in [
            ("battery staple", WELCOME, HELLO),
            ("correct horse", r#"{"nonce":"3"}"#, HELLO),
            ("correct horse", WELCOME, r#"{"nonce":"3"}"#),
            ("correct horse", HELLO, WELCOME),
        ] {
            let mut other = seal(token, End::Agent, welcome, hello);
            assert_eq!(other.open(&sealed), None, "{token} {welcome} {hello}");
        }
        assert_ne!(nonce().unwrap(), nonce().unwrap());
    }

    #[test]
    fn a_line_that_was_changed_repeated_reordered_or_turned_around_is_not_opened() {
        let (mut controller, mut agent) = (controller(), agent());
        let [first, second] = ["first", "second"].map(|line| controller.close(line));
        let (proof, _) = first.split_once(' ').unwrap();
        for forged in [
            "",
            "first",
            "zz first",
            "é first",
            proof,
            &format!("{proof} other"),
            &format!("{proof} first "),
            &format!("{proof}00 first"),
            &first[1..],
            // The second before the first, and a line of its own.
            &second,
            &agent.close("first"),
        ] {
            assert_eq!(agent.open(forged), None, "{forged}");
        }
        assert_eq!(agent.open(&first), Some("first"));
        assert_eq!(agent.open(&first), None);
        assert_eq!(agent.open(&second), Some("second"));
        // A line without text has a number too.
        let nothing = controller.close("");
        assert_eq!(agent.open(nothing.trim_end()), Some(""));
        assert_eq!(agent.open(nothing.trim_end()), None);
    }

    #[test]
    fn a_token_is_not_printed_and_not_short() {
        let token: Token = "correct horse".parse().unwrap();
        assert_eq!(format!("{token:?}"), "Token(…)");
        assert!("1234567".parse::<Token>().is_err());
    }
}
