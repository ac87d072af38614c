//! Rules of authorities for TLS, as one choice.

use std::{fmt, str::FromStr};

use super::certificate;
use crate::{CertificateAlgorithms, Group, KeyAlgorithm, SignatureAlgorithm, Suite};

/// Rules of an authority for TLS: key-exchange groups, cipher suites, certificates and 0-RTT.
///
/// A profile only ever narrows a configuration. Options that it forbids are a
/// [`ConfigError::Profile`](crate::ConfigError::Profile) when the provider is built, and peers that
/// do not comply with it are refused in the handshake.
///
/// | profile | groups | suites | certificates | 0-RTT |
/// |---|---|---|---|---|
/// | `default` | any of the policy | any | any | as configured |
/// | `cnsa2` | MLKEM1024 | AES-256 | ML-DSA-87 | no |
/// | `bsi` | SecP256r1MLKEM768, SecP384r1MLKEM1024 | AES-128, AES-256 | RSA from 3,000 bits with RSA-PSS, ECDSA, ML-DSA-65, ML-DSA-87 | no |
/// | `anssi` | X25519MLKEM768, SecP256r1MLKEM768, SecP384r1MLKEM1024 | AES-256, AES-128, ChaCha20 | RSA from 3,072 bits, ECDSA, Ed25519, ML-DSA-65, ML-DSA-87 | no |
/// | `asd` | MLKEM1024 | AES-256 | ML-DSA-65, ML-DSA-87 | no |
/// | `fips140` | hybrids and ML-KEM, P-256, P-384 | AES-128, AES-256 | RSA from 2,048 bits, ECDSA, ML-DSA | as configured |
///
/// With the feature `serde`, a configuration file can contain the name of a profile.
///
/// [`Profile::source`] names the rules that each one follows. The rules of the authorities cover more
/// than TLS: a profile alone does not make a system compliant.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Profile {
    /// No rules beyond the options.
    #[default]
    Default,
    /// Commercial National Security Algorithm Suite 2.0 (United States, NSA).
    Cnsa2,
    /// Technical guideline TR-02102 (Germany, BSI): hybrid key exchange.
    Bsi,
    /// Positions on the transition to post-quantum cryptography (France, ANSSI): hybrid key exchange.
    Anssi,
    /// Information security manual (Australia, ASD), as from 2030: ML-KEM-1024 without a classical
    /// part.
    Asd,
    /// Approved algorithms in a validated module (United States and Canada, FIPS 140-3).
    Fips140,
}

/// Contents of a profile. Empty lists allow everything.
struct Rules {
    groups: &'static [Group],
    suites: &'static [Suite],
    keys: &'static [KeyAlgorithm],
    /// Smallest RSA modulus in bits; 0 forbids RSA.
    rsa_bits: u32,
    signatures: &'static [SignatureAlgorithm],
    early_data: bool,
    certificates: &'static str,
    source: &'static str,
}

const ANYTHING: Rules = Rules {
    groups: &[],
    suites: &[],
    keys: &[],
    rsa_bits: 0,
    signatures: &[],
    early_data: true,
    certificates: "any",
    source: "the options of the configuration",
};

const CNSA2: Rules = Rules {
    groups: &[Group::MLKEM1024],
    suites: &[Suite::Aes256GcmSha384],
    keys: &[KeyAlgorithm::MlDsa87],
    rsa_bits: 0,
    signatures: &[SignatureAlgorithm::MlDsa87],
    early_data: false,
    certificates: "ML-DSA-87",
    source: "draft-becker-cnsa2-tls-profile-05",
};

const BSI: Rules = Rules {
    groups: &[Group::SECP256R1MLKEM768, Group::SECP384R1MLKEM1024],
    suites: &[Suite::Aes128GcmSha256, Suite::Aes256GcmSha384],
    keys: &[
        KeyAlgorithm::EcdsaP256,
        KeyAlgorithm::EcdsaP384,
        KeyAlgorithm::EcdsaP521,
        KeyAlgorithm::MlDsa65,
        KeyAlgorithm::MlDsa87,
    ],
    rsa_bits: 3000,
    signatures: &[
        SignatureAlgorithm::RsaPss,
        SignatureAlgorithm::EcdsaSha256,
        SignatureAlgorithm::EcdsaSha384,
        SignatureAlgorithm::EcdsaSha512,
        SignatureAlgorithm::MlDsa65,
        SignatureAlgorithm::MlDsa87,
    ],
    early_data: false,
    certificates: "RSA from 3,000 bits with RSA-PSS, ECDSA, ML-DSA-65 and ML-DSA-87",
    source: "BSI TR-02102-1 and TR-02102-2, version 2026-01",
};

const ANSSI: Rules = Rules {
    groups: &[
        Group::X25519MLKEM768,
        Group::SECP256R1MLKEM768,
        Group::SECP384R1MLKEM1024,
    ],
    suites: &[
        Suite::Aes256GcmSha384,
        Suite::Aes128GcmSha256,
        Suite::ChaCha20Poly1305Sha256,
    ],
    keys: &[
        KeyAlgorithm::EcdsaP256,
        KeyAlgorithm::EcdsaP384,
        KeyAlgorithm::EcdsaP521,
        KeyAlgorithm::Ed25519,
        KeyAlgorithm::MlDsa65,
        KeyAlgorithm::MlDsa87,
    ],
    rsa_bits: 3072,
    signatures: &[
        SignatureAlgorithm::RsaPss,
        SignatureAlgorithm::RsaSha256,
        SignatureAlgorithm::RsaSha384,
        SignatureAlgorithm::RsaSha512,
        SignatureAlgorithm::EcdsaSha256,
        SignatureAlgorithm::EcdsaSha384,
        SignatureAlgorithm::EcdsaSha512,
        SignatureAlgorithm::Ed25519,
        SignatureAlgorithm::MlDsa65,
        SignatureAlgorithm::MlDsa87,
    ],
    early_data: false,
    certificates: "RSA from 3,072 bits, ECDSA, Ed25519, ML-DSA-65 and ML-DSA-87",
    source: "ANSSI views on the post-quantum cryptography transition (2023), recommendations for TLS",
};

const ASD: Rules = Rules {
    groups: &[Group::MLKEM1024],
    suites: &[Suite::Aes256GcmSha384],
    keys: &[KeyAlgorithm::MlDsa65, KeyAlgorithm::MlDsa87],
    rsa_bits: 0,
    signatures: &[SignatureAlgorithm::MlDsa65, SignatureAlgorithm::MlDsa87],
    early_data: false,
    certificates: "ML-DSA-65 and ML-DSA-87",
    source: "ASD information security manual, guidelines for cryptography (ISM-1995 and others)",
};

const FIPS140: Rules = Rules {
    groups: &[
        Group::X25519MLKEM768,
        Group::SECP256R1MLKEM768,
        Group::SECP384R1MLKEM1024,
        Group::MLKEM1024,
        Group::MLKEM768,
        Group::SECP256R1,
        Group::SECP384R1,
    ],
    suites: &[Suite::Aes128GcmSha256, Suite::Aes256GcmSha384],
    keys: &[
        KeyAlgorithm::EcdsaP256,
        KeyAlgorithm::EcdsaP384,
        KeyAlgorithm::EcdsaP521,
        KeyAlgorithm::MlDsa44,
        KeyAlgorithm::MlDsa65,
        KeyAlgorithm::MlDsa87,
    ],
    rsa_bits: 2048,
    signatures: &[
        SignatureAlgorithm::RsaPss,
        SignatureAlgorithm::RsaSha256,
        SignatureAlgorithm::RsaSha384,
        SignatureAlgorithm::RsaSha512,
        SignatureAlgorithm::EcdsaSha256,
        SignatureAlgorithm::EcdsaSha384,
        SignatureAlgorithm::EcdsaSha512,
        SignatureAlgorithm::MlDsa44,
        SignatureAlgorithm::MlDsa65,
        SignatureAlgorithm::MlDsa87,
    ],
    early_data: true,
    certificates: "RSA from 2,048 bits, ECDSA and ML-DSA",
    source: "FIPS 140-3, SP 800-140C, SP 800-52r2",
};

impl Profile {
    /// All profiles.
    pub const ALL: [Self; 6] = [
        Self::Default,
        Self::Cnsa2,
        Self::Bsi,
        Self::Anssi,
        Self::Asd,
        Self::Fips140,
    ];

    const fn rules(self) -> &'static Rules {
        match self {
            Self::Default => &ANYTHING,
            Self::Cnsa2 => &CNSA2,
            Self::Bsi => &BSI,
            Self::Anssi => &ANSSI,
            Self::Asd => &ASD,
            Self::Fips140 => &FIPS140,
        }
    }

    /// Returns the name, in the form that [`FromStr`] reads.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Default => "default",
            Self::Cnsa2 => "cnsa2",
            Self::Bsi => "bsi",
            Self::Anssi => "anssi",
            Self::Asd => "asd",
            Self::Fips140 => "fips140",
        }
    }

    /// Returns the document that defines these rules.
    pub const fn source(self) -> &'static str {
        self.rules().source
    }

    /// Returns the groups that the profile allows, first preference first; `None` if it allows any.
    pub fn groups(self) -> Option<&'static [Group]> {
        let groups = self.rules().groups;
        (!groups.is_empty()).then_some(groups)
    }

    /// Returns the cipher suites that the profile allows, first preference first; `None` if it
    /// allows any.
    pub fn suites(self) -> Option<&'static [Suite]> {
        let suites = self.rules().suites;
        (!suites.is_empty()).then_some(suites)
    }

    /// Returns true if a FIPS module may do a handshake with this group and this cipher suite.
    #[cfg(all(unix, feature = "s2n-tls"))]
    pub(crate) fn is_approved(group: Group, suite: Suite) -> bool {
        // Approved, but in no profile, only because rustls lacks it.
        let by_curve = group == Group::SECP521R1;
        (by_curve || FIPS140.groups.contains(&group)) && FIPS140.suites.contains(&suite)
    }

    /// Returns true if 0-RTT data may be used.
    pub const fn allows_early_data(self) -> bool {
        self.rules().early_data
    }

    /// Returns true if a certificate with these algorithms may be part of a chain.
    pub fn allows_certificate(self, algorithms: &CertificateAlgorithms) -> bool {
        let rules = self.rules();
        let key = match algorithms.key {
            KeyAlgorithm::Rsa { bits } => rules.rsa_bits > 0 && bits >= rules.rsa_bits,
            key => rules.keys.contains(&key),
        };
        self == Self::Default || (key && rules.signatures.contains(&algorithms.signature))
    }

    /// Describes what is wrong with a chain, if anything is.
    pub(crate) fn problem_of_chain<'c>(
        self,
        chain: impl IntoIterator<Item = &'c [u8]>,
    ) -> Option<String> {
        if self == Self::Default {
            return None;
        }
        chain.into_iter().enumerate().find_map(|(at, certificate)| {
            let found = CertificateAlgorithms::of(certificate);
            let rsa = rsa_signature_bits(certificate, found.as_ref());
            let problem = match found {
                Some(_) if rsa.is_some_and(|bits| bits < self.rules().rsa_bits) => {
                    format!(
                        "is signed by an RSA key of {} bits",
                        rsa.unwrap_or_default()
                    )
                }
                Some(found) if self.allows_certificate(&found) => return None,
                Some(found) => format!("has {found}"),
                None => "cannot be read".to_owned(),
            };
            let allowed = self.rules().certificates;
            Some(format!(
                "certificate {at} of the chain {problem}; the profile `{self}` allows {allowed}"
            ))
        })
    }
}

/// Returns the size of the RSA key that signed a certificate. It reveals the size of the root's
/// key, which a peer does not send.
fn rsa_signature_bits(certificate: &[u8], found: Option<&CertificateAlgorithms>) -> Option<u32> {
    use SignatureAlgorithm::{RsaPss, RsaSha256, RsaSha384, RsaSha512};
    match found?.signature {
        RsaPss | RsaSha256 | RsaSha384 | RsaSha512 => certificate::signature_bits(certificate),
        _ => None,
    }
}

impl fmt::Display for Profile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Profile {
    type Err = UnknownProfile;

    fn from_str(name: &str) -> Result<Self, UnknownProfile> {
        Self::ALL
            .into_iter()
            .find(|profile| profile.name().eq_ignore_ascii_case(name))
            .ok_or_else(|| UnknownProfile(name.to_owned()))
    }
}

/// A name that is not that of a [`Profile`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("there is no profile `{0}`; use default, cnsa2, bsi, anssi, asd or fips140")]
pub struct UnknownProfile(String);

/// Names of profiles in configuration files.
#[cfg(feature = "serde")]
mod configured {
    use std::fmt;

    use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

    use super::Profile;

    impl Serialize for Profile {
        fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
            serializer.serialize_str(self.name())
        }
    }

    impl<'de> Deserialize<'de> for Profile {
        fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
            deserializer.deserialize_str(Name)
        }
    }

    /// Reads the name of a profile.
    struct Name;

    impl de::Visitor<'_> for Name {
        type Value = Profile;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("the name of a profile")
        }

        fn visit_str<E: de::Error>(self, name: &str) -> Result<Profile, E> {
            name.parse().map_err(E::custom)
        }
    }
}
