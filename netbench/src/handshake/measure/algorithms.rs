//! Cost of key exchanges and signatures alone: bytes, and operations per second.

use std::{
    sync::{Mutex, PoisonError},
    time::{Duration, Instant},
};

use aws_lc_rs::kem;
use hybriq::Group;
use hybriq::KeyExchange;
use hybriq_tls::{ClientOptions, rustls as provider};
use rustls::SignatureScheme;
use rustls::crypto::SupportedKxGroup;
use rustls::crypto::aws_lc_rs::default_provider;
use rustls::pki_types::{PrivateKeyDer, SignatureVerificationAlgorithm};
use rustls::sign::Signer;
use serde::{Deserialize, Serialize};

use super::samples::summary;
use crate::handshake::certificates;
use crate::report::results::Summary;
use crate::scenario::axes::Certificate;
use crate::system::failure::Failure;

/// Number of operations of one algorithm before the next takes its turn.
const TURN: usize = 10;

/// Number of bytes that a CertificateVerify signs with SHA-256: 64 spaces, the context, a zero, and
/// the transcript's hash (RFC 8446 §4.4.3).
const SIGNED_LEN: usize = 64 + 33 + 1 + 32;

/// Cost of one algorithm.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Algorithm {
    pub(crate) name: String,
    /// Bytes of the client's share, or of a public key.
    pub(crate) client_bytes: usize,
    /// Bytes of the server's share, or of a signature.
    pub(crate) server_bytes: usize,
    /// Thousands of operations a second by a client: key generation with decapsulation, or
    /// verification.
    pub(crate) client_kops: Summary,
    /// Thousands of operations a second by a server: encapsulation, or signing.
    pub(crate) server_kops: Summary,
}

/// Key exchanges and signatures.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Algorithms {
    pub(crate) key_exchanges: Vec<Algorithm>,
    pub(crate) signatures: Vec<Algorithm>,
}

/// Measures every algorithm with this number of iterations, in turns.
pub(crate) fn measure(iterations: usize) -> Result<Algorithms, Failure> {
    let mut key_exchanges: Vec<Bench<Exchange>> =
        exchanges()?.into_iter().map(Bench::new).collect();
    let mut signatures = Certificate::ALL
        .into_iter()
        .map(|kind| Signing::new(kind).map(Bench::new))
        .collect::<Result<Vec<_>, _>>()?;
    in_turns(&mut key_exchanges, iterations)?;
    in_turns(&mut signatures, iterations)?;
    Ok(Algorithms {
        key_exchanges: key_exchanges.into_iter().map(Bench::algorithm).collect(),
        signatures: signatures.into_iter().map(Bench::algorithm).collect(),
    })
}

/// Operation of both sides.
trait Work {
    fn name(&self) -> String;

    fn once(&self) -> Result<Once, Failure>;
}

/// Sizes and times of one use.
struct Once {
    client: Duration,
    server: Duration,
    client_bytes: usize,
    server_bytes: usize,
}

struct Bench<W> {
    work: W,
    done: Vec<Once>,
}

fn in_turns<W: Work>(benches: &mut [Bench<W>], iterations: usize) -> Result<(), Failure> {
    for bench in &mut *benches {
        for _ in 0..iterations.div_ceil(10) {
            bench.work.once()?;
        }
    }
    let mut left = iterations;
    while left > 0 {
        let turn = left.min(TURN);
        left -= turn;
        for bench in &mut *benches {
            for _ in 0..turn {
                let once = bench.work.once()?;
                bench.done.push(once);
            }
        }
    }
    Ok(())
}

impl<W: Work> Bench<W> {
    fn new(work: W) -> Self {
        Self {
            work,
            done: Vec::new(),
        }
    }

    fn algorithm(self) -> Algorithm {
        let kops = |of: fn(&Once) -> Duration| {
            let each = self.done.iter().map(|once| 1e-3 / of(once).as_secs_f64());
            summary(&each.collect::<Vec<_>>())
        };
        // A signature of ECDSA is sometimes a byte shorter.
        let bytes = |of: fn(&Once) -> usize| self.done.iter().map(of).max().unwrap_or_default();
        Algorithm {
            name: self.work.name(),
            client_bytes: bytes(|once| once.client_bytes),
            server_bytes: bytes(|once| once.server_bytes),
            client_kops: kops(|once| once.client),
            server_kops: kops(|once| once.server),
        }
    }
}

/// A key exchange of our stack, or a KEM that no TLS group has alone.
enum Exchange {
    Group(&'static dyn SupportedKxGroup),
    Kem(&'static str, &'static kem::Algorithm<kem::AlgorithmId>),
}

/// Returns the groups of this stack's clients, and ML-KEM-512.
fn exchanges() -> Result<Vec<Exchange>, Failure> {
    const ORDER: [Group; 8] = [
        Group::SECP256R1,
        Group::X25519,
        Group::SECP384R1,
        Group::MLKEM768,
        Group::MLKEM1024,
        Group::X25519MLKEM768,
        Group::SECP256R1MLKEM768,
        Group::SECP384R1MLKEM1024,
    ];
    let options = ClientOptions::new()
        .trust(hybriq::Trust::dangerously_accept_any_certificate())
        .key_exchange(KeyExchange::Exactly(ORDER.to_vec()));
    let groups: Mutex<Vec<&'static dyn SupportedKxGroup>> = Mutex::default();
    provider::Client::with_crypto(&options, |crypto| {
        let mut seen = groups.lock().unwrap_or_else(PoisonError::into_inner);
        seen.clone_from(&crypto.kx_groups);
        crypto
    })?;
    let groups = groups.into_inner().unwrap_or_else(PoisonError::into_inner);
    let mut exchanges: Vec<_> = groups.into_iter().map(Exchange::Group).collect();
    let before_other_kems = 3.min(exchanges.len());
    exchanges.insert(
        before_other_kems,
        Exchange::Kem("ML-KEM-512", &kem::ML_KEM_512),
    );
    Ok(exchanges)
}

impl Work for Exchange {
    fn name(&self) -> String {
        match self {
            Self::Group(group) => Group(group.name().into()).to_string(),
            Self::Kem(name, _) => (*name).to_owned(),
        }
    }

    fn once(&self) -> Result<Once, Failure> {
        match self {
            Self::Group(group) => exchange(*group),
            Self::Kem(_, algorithm) => encapsulate(algorithm),
        }
    }
}

fn exchange(group: &dyn SupportedKxGroup) -> Result<Once, Failure> {
    let started = Instant::now();
    let client = group.start()?;
    let made = started.elapsed();

    let share = client.pub_key().to_vec();
    let started = Instant::now();
    let server = group.start_and_complete(&share)?;
    let answered = started.elapsed();

    let started = Instant::now();
    let secret = client.complete(&server.pub_key)?;
    let completed = started.elapsed();
    if secret.secret_bytes() != server.secret.secret_bytes() {
        return Err(format!("both sides of {:?} have other secrets", group.name()).into());
    }
    Ok(Once {
        client: made + completed,
        server: answered,
        client_bytes: share.len(),
        server_bytes: server.pub_key.len(),
    })
}

fn encapsulate(algorithm: &'static kem::Algorithm<kem::AlgorithmId>) -> Result<Once, Failure> {
    let started = Instant::now();
    let client = kem::DecapsulationKey::generate(algorithm)?;
    let share = client.encapsulation_key()?.key_bytes()?;
    let made = started.elapsed();

    let started = Instant::now();
    let key = kem::EncapsulationKey::new(algorithm, share.as_ref())?;
    let (ciphertext, _) = key.encapsulate()?;
    let answered = started.elapsed();

    let (share_len, ciphertext_len) = (share.as_ref().len(), ciphertext.as_ref().len());
    let started = Instant::now();
    client.decapsulate(ciphertext)?;
    Ok(Once {
        client: made + started.elapsed(),
        server: answered,
        client_bytes: share_len,
        server_bytes: ciphertext_len,
    })
}

/// Key of one kind that signs as a handshake does.
struct Signing {
    name: String,
    public_key: Vec<u8>,
    signer: Box<dyn Signer>,
    verifier: &'static dyn SignatureVerificationAlgorithm,
}

impl Signing {
    fn new(kind: Certificate) -> Result<Self, Failure> {
        let key = certificates::key(kind)?;
        let public_key = rcgen::PublicKeyData::der_bytes(&key).to_vec();
        let provider = default_provider();
        let private_key = PrivateKeyDer::Pkcs8(key.serialize_der().into());
        let signing = provider.key_provider.load_private_key(private_key)?;
        let algorithms = provider.signature_verification_algorithms;
        let schemes: Vec<SignatureScheme> = algorithms.supported_schemes();
        let signer = signing.choose_scheme(&schemes);
        let name = kind.to_string();
        let signer = signer.ok_or_else(|| format!("rustls signs nothing with {name}"))?;
        let mut mapping = algorithms.mapping.iter();
        // The first one is that of TLS 1.3.
        let verifier = mapping
            .find(|(scheme, _)| *scheme == signer.scheme())
            .and_then(|(_, verifiers)| verifiers.first().copied())
            .ok_or_else(|| format!("rustls verifies nothing of {name}"))?;
        Ok(Self {
            name,
            public_key,
            signer,
            verifier,
        })
    }
}

impl Work for Signing {
    fn name(&self) -> String {
        self.name.clone()
    }

    fn once(&self) -> Result<Once, Failure> {
        let message = [0x20; SIGNED_LEN];
        let started = Instant::now();
        let signature = self.signer.sign(&message)?;
        let signed = started.elapsed();

        let started = Instant::now();
        let verified = self
            .verifier
            .verify_signature(&self.public_key, &message, &signature);
        let took = started.elapsed();
        verified.map_err(|_| format!("a signature of {} is not valid", self.name))?;
        Ok(Once {
            client: took,
            server: signed,
            client_bytes: self.public_key.len(),
            server_bytes: signature.len(),
        })
    }
}

#[cfg(test)]
mod tests {
    use hybriq::Group;

    use super::measure;

    #[test]
    fn every_algorithm_has_a_rate_and_the_sizes_of_its_standard() {
        let measured = measure(3).unwrap();
        let all = measured.key_exchanges.iter().chain(&measured.signatures);
        for algorithm in all {
            for kops in [&algorithm.client_kops, &algorithm.server_kops] {
                assert!(kops.n > 0 && kops.median > 0.0, "{}", algorithm.name);
            }
        }
        let sizes = |algorithms: &[super::Algorithm], name: &str| {
            let found = algorithms.iter().find(|it| it.name == name);
            found.map(|it| (it.client_bytes, it.server_bytes))
        };
        for group in Group::ALL {
            let found = sizes(&measured.key_exchanges, &group.to_string());
            let known = group.share_sizes();
            assert_eq!(
                found,
                known.map(|known| (known.client, known.server)),
                "{group}"
            );
        }
        assert_eq!(
            sizes(&measured.key_exchanges, "ML-KEM-512"),
            Some((800, 768))
        );
        assert_eq!(sizes(&measured.signatures, "ml-dsa-65"), Some((1952, 3309)));
        assert_eq!(sizes(&measured.signatures, "ed25519"), Some((32, 64)));
        assert_eq!(measured.signatures.len(), 7);
    }
}
