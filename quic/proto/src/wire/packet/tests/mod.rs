mod build;
mod header;
mod number;
mod protection;
mod rfc9001;
mod rfc9369;

use hybriq_tls::{Level, Secret, Side, Suite};

use super::{DirectionKeys, Version};

/// The bytes of a string of hexadecimal digits.
pub(super) fn hex(digits: &str) -> Vec<u8> {
    let digit = |byte: u8| char::from(byte).to_digit(16).expect("a digit") as u8;
    let (pairs, odd) = digits.as_bytes().as_chunks::<2>();
    assert!(odd.is_empty(), "an odd number of digits");
    pairs
        .iter()
        .map(|[high, low]| digit(*high) << 4 | digit(*low))
        .collect()
}

const SUITES: [Suite; 3] = [
    Suite::Aes128GcmSha256,
    Suite::Aes256GcmSha384,
    Suite::ChaCha20Poly1305Sha256,
];

/// A traffic secret of the right length.
fn secret(suite: Suite) -> Secret {
    let len = if suite == Suite::Aes256GcmSha384 {
        48
    } else {
        32
    };
    Secret::new(Level::OneRtt, Side::Client, suite, &[0x42; 48][..len]).expect("fits")
}

fn keys(suite: Suite) -> DirectionKeys {
    DirectionKeys::from_secret(Version::V1, &secret(suite))
}
