//! HKDF for the key schedule of rustls.

use std::sync::{LazyLock, OnceLock};

use ::rustls::Tls13CipherSuite;
use ::rustls::crypto::hmac::Tag;
use ::rustls::crypto::tls13::{Hkdf, HkdfExpander, OkmBlock, OutputLengthError};
use aws_lc_rs::hmac;
use zeroize::{Zeroize, Zeroizing};

/// Bytes of the largest hash, SHA-384.
const MAX_HASH: usize = 48;

/// Bytes of the input of a block with the longest `HkdfLabel` (RFC 8446 §7.1), after a hash and before a
/// number.
const MAX_INPUT: usize = MAX_HASH + (2 + 1 + 255 + 1 + 255) + 1;

/// Labels of keys for records and packets, and of the secrets after a key update.
const KEYS: [&[u8]; 10] = [
    b"key",
    b"iv",
    b"quic key",
    b"quic iv",
    b"quic hp",
    b"quic ku",
    b"quicv2 key",
    b"quicv2 iv",
    b"quicv2 hp",
    b"quicv2 ku",
];

/// Outputs of the key schedule that are computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outputs {
    /// All, as TCP needs them.
    All,
    /// All but [`KEYS`], which are zeros: for suites that build nothing from them. QUIC has no records,
    /// and the transport derives the keys of packets itself.
    Secrets,
}

/// Returns the HKDF for the key schedule of a suite.
///
/// That of rustls extracts a secret again for each output that is expanded from it, and sets up the
/// key of HMAC twice each time: eight compressions of the hash where two suffice. A FIPS module's HKDF
/// is kept, because the module must compute it.
pub(super) fn of(suite: &Tls13CipherSuite, outputs: Outputs) -> &'static dyn Hkdf {
    if crate::is_fips() {
        return suite.hkdf_provider;
    }
    let is_sha384 = suite.common.hash_provider.output_len() == MAX_HASH;
    match (outputs, is_sha384) {
        (Outputs::All, false) => &ALL_BY_SHA256,
        (Outputs::All, true) => &ALL_BY_SHA384,
        (Outputs::Secrets, false) => &SECRETS_BY_SHA256,
        (Outputs::Secrets, true) => &SECRETS_BY_SHA384,
    }
}

static ALL_BY_SHA256: OverHmac = OverHmac::new(hmac::HMAC_SHA256, Outputs::All);
static ALL_BY_SHA384: OverHmac = OverHmac::new(hmac::HMAC_SHA384, Outputs::All);
static SECRETS_BY_SHA256: OverHmac = OverHmac::new(hmac::HMAC_SHA256, Outputs::Secrets);
static SECRETS_BY_SHA384: OverHmac = OverHmac::new(hmac::HMAC_SHA384, Outputs::Secrets);

/// The Early Secrets without a PSK, which are the same in all handshakes (RFC 8446 §7.1).
static EARLY_BY_SHA256: LazyLock<hmac::Key> = LazyLock::new(|| early(hmac::HMAC_SHA256));
static EARLY_BY_SHA384: LazyLock<hmac::Key> = LazyLock::new(|| early(hmac::HMAC_SHA384));

fn early(hash: hmac::Algorithm) -> hmac::Key {
    hmac::Key::new(hash, extract(hash, None, zeros(hash)).as_ref())
}

/// Returns as many zeros as the hash has bytes.
fn zeros(hash: hmac::Algorithm) -> &'static [u8] {
    const ZEROS: &[u8] = &[0; MAX_HASH];
    ZEROS.split_at(hash.digest_algorithm().output_len()).0
}

/// Computes HKDF-Extract. Without a salt, the salt is zeros (RFC 5869 §2.2).
fn extract(hash: hmac::Algorithm, salt: Option<&[u8]>, secret: &[u8]) -> OkmBlock {
    let salt = hmac::Key::new(hash, salt.unwrap_or_else(|| zeros(hash)));
    let mut extracted = Zeroizing::new([0; MAX_HASH]);
    let extracted = hmac::sign_to_buffer(&salt, secret, &mut *extracted)
        .expect("the hash fits into the buffer");
    OkmBlock::new(extracted)
}

/// HKDF (RFC 5869) over HMAC.
struct OverHmac {
    hash: hmac::Algorithm,
    outputs: Outputs,
}

impl OverHmac {
    const fn new(hash: hmac::Algorithm, outputs: Outputs) -> Self {
        Self { hash, outputs }
    }

    fn expander(&self, secret: OkmBlock, key: OnceLock<hmac::Key>) -> Box<dyn HkdfExpander> {
        Box::new(Expander {
            hash: self.hash,
            outputs: self.outputs,
            secret,
            key,
        })
    }
}

impl Hkdf for OverHmac {
    fn extract_from_zero_ikm(&self, salt: Option<&[u8]>) -> Box<dyn HkdfExpander> {
        if salt.is_some() {
            return self.extract_from_secret(salt, zeros(self.hash));
        }
        let early = if self.hash == hmac::HMAC_SHA256 {
            &EARLY_BY_SHA256
        } else {
            &EARLY_BY_SHA384
        };
        self.expander(OkmBlock::new(&[]), OnceLock::from((*early).clone()))
    }

    fn extract_from_secret(&self, salt: Option<&[u8]>, secret: &[u8]) -> Box<dyn HkdfExpander> {
        self.expander(extract(self.hash, salt, secret), OnceLock::new())
    }

    fn expander_for_okm(&self, okm: &OkmBlock) -> Box<dyn HkdfExpander> {
        self.expander(okm.clone(), OnceLock::new())
    }

    fn hmac_sign(&self, key: &OkmBlock, message: &[u8]) -> Tag {
        Tag::new(hmac::sign(&hmac::Key::new(self.hash, key.as_ref()), message).as_ref())
    }
}

/// A secret from which outputs are expanded.
struct Expander {
    hash: hmac::Algorithm,
    outputs: Outputs,
    secret: OkmBlock,
    /// The secret as a key of HMAC, from the first output on.
    key: OnceLock<hmac::Key>,
}

impl Expander {
    /// Computes HKDF-Expand: each block is the HMAC of the block before, `info` and the block's number
    /// (RFC 5869 §2.3).
    fn fill(&self, info: &[&[u8]], output: &mut [u8]) {
        if self.is_unused(info) {
            output.fill(0);
            return;
        }
        let set_up = || hmac::Key::new(self.hash, self.secret.as_ref());
        let key = self.key.get_or_init(set_up);
        let hash_len = self.hash_len();
        let len = hash_len + info.iter().map(|part| part.len()).sum::<usize>() + 1;
        let (mut usual, mut longer) = ([0; MAX_INPUT], Vec::new());
        let input = if let Some(input) = usual.get_mut(..len) {
            input
        } else {
            // The label of an exporter is the application's, and may be too long for an `HkdfLabel`.
            longer.resize(len, 0);
            longer.as_mut_slice()
        };
        let mut rest = input.split_at_mut(hash_len).1;
        for part in info {
            let (place, after) = rest.split_at_mut(part.len());
            place.copy_from_slice(part);
            rest = after;
        }
        let mut block = Zeroizing::new([0; MAX_HASH]);
        for (number, chunk) in (1..=u8::MAX).zip(output.chunks_mut(hash_len)) {
            if let Some(last) = input.last_mut() {
                *last = number;
            }
            let input_of_block = input.split_at(if number == 1 { hash_len } else { 0 }).1;
            let block = hmac::sign_to_buffer(key, input_of_block, &mut *block)
                .expect("the hash fits into the buffer");
            chunk.copy_from_slice(block.split_at(chunk.len()).0);
            input.split_at_mut(hash_len).0.copy_from_slice(block);
        }
        input.split_at_mut(hash_len).0.zeroize();
    }

    /// Returns true if nothing is built from an output with this `info`. rustls passes the parts of an
    /// `HkdfLabel` one by one; another division would only have the output computed.
    fn is_unused(&self, info: &[&[u8]]) -> bool {
        let label = info.get(3).filter(|_| self.outputs == Outputs::Secrets);
        label.is_some_and(|label| KEYS.contains(label))
    }
}

impl HkdfExpander for Expander {
    fn expand_slice(&self, info: &[&[u8]], output: &mut [u8]) -> Result<(), OutputLengthError> {
        if output.len() > usize::from(u8::MAX) * self.hash_len() {
            return Err(OutputLengthError);
        }
        self.fill(info, output);
        Ok(())
    }

    fn expand_block(&self, info: &[&[u8]]) -> OkmBlock {
        let mut block = Zeroizing::new([0; MAX_HASH]);
        let block = block.split_at_mut(self.hash_len()).0;
        self.fill(info, block);
        OkmBlock::new(block)
    }

    fn hash_len(&self) -> usize {
        self.hash.digest_algorithm().output_len()
    }
}

#[cfg(test)]
mod tests {
    use ::rustls::crypto::aws_lc_rs::cipher_suite;
    use ::rustls::crypto::tls13::{Hkdf, OkmBlock};

    use super::{
        ALL_BY_SHA256, ALL_BY_SHA384, KEYS, OverHmac, SECRETS_BY_SHA256, SECRETS_BY_SHA384,
    };

    const LABEL: &[u8] = b"s ap traffic";
    /// Longer than an `HkdfLabel` can have it.
    const LONG: &[u8] = &[b'l'; 600];

    /// The parts of an `HkdfLabel`, as rustls passes them.
    fn parts(label: &[u8]) -> [&[u8]; 6] {
        [&[0, 32], &[18], b"tls13 ", label, &[32], &[9; 32]]
    }

    /// Outputs of every call.
    fn outputs(hkdf: &dyn Hkdf, label: &[u8]) -> Vec<Vec<u8>> {
        let secret = OkmBlock::new(&[7; 32]);
        let expanders = [
            hkdf.extract_from_zero_ikm(None),
            hkdf.extract_from_zero_ikm(Some(&[1; 32])),
            hkdf.extract_from_secret(None, b"secret"),
            hkdf.extract_from_secret(Some(&[2; 100]), b"another secret"),
            hkdf.expander_for_okm(&secret),
        ];
        let mut outputs = vec![hkdf.hmac_sign(&secret, b"message").as_ref().to_vec()];
        for expander in expanders {
            outputs.push(expander.expand_block(&parts(label)).as_ref().to_vec());
            for len in [0, 1, 32, 48, 49, 255 * expander.hash_len()] {
                let mut output = vec![0; len];
                expander
                    .expand_slice(&parts(label), &mut output)
                    .expect("at most 255 blocks");
                outputs.push(output);
            }
            let mut longer = vec![0; 255 * expander.hash_len() + 1];
            assert!(expander.expand_slice(&[], &mut longer).is_err());
        }
        outputs
    }

    fn assert_same(own: &[(&OverHmac, &[u8])]) {
        for (own, label) in own {
            let suite = match own.hash.digest_algorithm().output_len() {
                32 => cipher_suite::TLS13_AES_128_GCM_SHA256,
                _ => cipher_suite::TLS13_AES_256_GCM_SHA384,
            };
            let suite = suite.tls13().expect("a suite of TLS 1.3");
            let theirs = outputs(suite.hkdf_provider, label);
            assert_eq!(outputs(*own, label), theirs);
        }
    }

    #[test]
    fn every_output_is_that_of_the_hkdf_of_rustls() {
        let all = [&ALL_BY_SHA256, &ALL_BY_SHA384];
        let cases = KEYS.iter().chain([&LABEL, &LONG]);
        let cases: Vec<_> = cases
            .flat_map(|&label| all.map(|own| (own, label)))
            .collect();
        assert_same(&cases);
    }

    #[test]
    fn for_quic_only_the_keys_that_nobody_uses_are_zeros() {
        let quic = [&SECRETS_BY_SHA256, &SECRETS_BY_SHA384];
        assert_same(&quic.map(|own| (own, LABEL)));
        for own in quic {
            for label in KEYS {
                let secret = own.expander_for_okm(&OkmBlock::new(&[7; 32]));
                let key = secret.expand_block(&parts(label));
                assert!(key.as_ref().iter().all(|byte| *byte == 0));
            }
        }
    }
}
