//! The named policies of s2n-tls, and the key-exchange policies they implement.
//!
//! s2n-tls 0.3 takes no list of groups, only the name of one of its policies. An exact list
//! therefore works only if a policy has exactly that list in that order (post-quantum groups always
//! come before classical ones). Two of the general policies are wider than those of rustls:
//!
//! - [`KeyExchange::PreferPostQuantum`] is `default_pq`, the only general policy with ML-DSA
//!   signatures and without SHA-1. It prefers secp256r1 to X25519 among the classical groups and
//!   offers secp521r1 last. It lacks MLKEM1024: if a client has no other group, a server answers
//!   with the policy of [`KeyExchange::RequirePostQuantum`].
//! - [`KeyExchange::RequirePostQuantum`] is `test_pq_only`. Despite its name it is an ordinary
//!   TLS 1.3 policy, and the only one with nothing but hybrid groups; a policy with classical
//!   groups would send a classical share and could be answered with it. It lacks MLKEM768, which
//!   s2n-tls does not have at all. It has no ML-DSA, so a server uses it only for clients that have
//!   MLKEM1024 alone, and uses the hybrid groups of `default_pq` for all others (`of_server`). A
//!   client with this policy cannot verify an ML-DSA certificate; rustls can, and so can the
//!   profile `Cnsa2`.

use super::NAME;
use crate::{
    Alert, ConfigError, Error, Group, KeyAlgorithm, KeyExchange, Profile, SignatureScheme, Suite,
    admission,
};

#[cfg(test)]
mod tests;

/// A named policy, as far as TLS 1.3 is concerned.
#[derive(Debug)]
pub(super) struct Policy {
    pub(super) name: &'static str,
    pub(super) groups: &'static [Group],
    pub(super) suites: &'static [Suite],
    /// Requirement on the certificates, if any.
    pub(super) remark: &'static str,
}

/// Keys whose schemes belong to policies with ML-DSA, the ML-DSA keys first.
const ALL_KEYS: [KeyAlgorithm; 7] = [
    KeyAlgorithm::MlDsa44,
    KeyAlgorithm::MlDsa65,
    KeyAlgorithm::MlDsa87,
    KeyAlgorithm::EcdsaP256,
    KeyAlgorithm::EcdsaP384,
    KeyAlgorithm::EcdsaP521,
    KeyAlgorithm::Rsa { bits: 2048 },
];

/// The same for policies without ML-DSA.
const CLASSICAL_KEYS: &[KeyAlgorithm] = ALL_KEYS.split_at(3).1;

impl Policy {
    /// Returns the schemes with which the policy signs and verifies.
    pub(super) fn schemes(&self) -> Vec<SignatureScheme> {
        let keys = match self.name {
            "20260720" => {
                return vec![
                    SignatureScheme::MLDSA87,
                    SignatureScheme::ECDSA_SECP384R1_SHA384,
                    SignatureScheme::RSA_PSS_RSAE_SHA384,
                    SignatureScheme::RSA_PSS_PSS_SHA384,
                ];
            }
            "default_pq" | "CloudFront-Upstream-TLS-1-3-2025-PQ" => &ALL_KEYS[..],
            "cnsa_2" => &[KeyAlgorithm::MlDsa87],
            _ => CLASSICAL_KEYS,
        };
        keys.iter().flat_map(|key| key.schemes()).copied().collect()
    }

    /// Creates the error for a server whose keys have none of these schemes.
    pub(super) fn signs_nothing(&self) -> Error {
        let schemes = self.schemes().into_iter().map(admission::scheme_name);
        let schemes = schemes.collect::<Vec<_>>().join(", ");
        Error::told(
            Alert::HANDSHAKE_FAILURE,
            format!(
                "{}: with the groups of this handshake {NAME} signs by {schemes}, and the server has no \
                 certificate for these; give it one, or use rustls",
                admission::NO_COMMON_SCHEME
            ),
        )
    }

    /// Returns true if s2n-tls runs on a FIPS module, and everything that the policy allows is
    /// approved.
    pub(super) fn is_fips(&self) -> bool {
        let mut groups = self.groups.iter();
        super::is_fips()
            && groups.all(|group| {
                let mut suites = self.suites.iter();
                suites.all(|suite| Profile::is_approved(*group, *suite))
            })
    }
}

const ALL_SUITES: &[Suite] = &crate::options::DEFAULT_SUITES;
const AES256: &[Suite] = &[Suite::Aes256GcmSha384];

const fn policy(name: &'static str, groups: &'static [Group]) -> Policy {
    Policy {
        name,
        groups,
        suites: ALL_SUITES,
        remark: "",
    }
}

const fn cnsa(name: &'static str, groups: &'static [Group], remark: &'static str) -> Policy {
    Policy {
        name,
        groups,
        suites: AES256,
        remark,
    }
}

const X25519MLKEM768: Group = Group::X25519MLKEM768;
const P256MLKEM768: Group = Group::SECP256R1MLKEM768;
const P384MLKEM1024: Group = Group::SECP384R1MLKEM1024;
const MLKEM1024: Group = Group::MLKEM1024;
const X25519: Group = Group::X25519;
const P256: Group = Group::SECP256R1;
const P384: Group = Group::SECP384R1;
const P521: Group = Group::SECP521R1;

const PREFER: Policy = policy(
    "default_pq",
    &[
        X25519MLKEM768,
        P256MLKEM768,
        P384MLKEM1024,
        P256,
        X25519,
        P384,
        P521,
    ],
);
const REQUIRE: Policy = policy(
    "test_pq_only",
    &[X25519MLKEM768, P256MLKEM768, P384MLKEM1024, MLKEM1024],
);
/// The policy for [`Profile::Fips140`]. It lacks pure ML-KEM, and has secp521r1 last.
const FIPS: Policy = Policy {
    name: "ELBSecurityPolicy-TLS13-1-3-FIPS-PQ-2025-09",
    groups: &[
        X25519MLKEM768,
        P256MLKEM768,
        P384MLKEM1024,
        P256,
        P384,
        P521,
    ],
    suites: &[Suite::Aes128GcmSha256, Suite::Aes256GcmSha384],
    remark: " with the AES suites and without ML-DSA certificates",
};
/// Policy with which a server that requires post-quantum serves. Its classical groups are never
/// chosen: s2n-tls prefers every hybrid to them, and clients without a hybrid are refused earlier.
const REQUIRE_HYBRID: Policy = policy("default_pq", &[X25519MLKEM768, P256MLKEM768, P384MLKEM1024]);
const CLASSICAL: Policy = policy("CloudFront-TLS-1-3-2025-no-pq", &[X25519, P256, P384]);

/// Policies for exact lists of groups.
pub(super) const POLICIES: [Policy; 15] = [
    PREFER,
    REQUIRE,
    CLASSICAL,
    FIPS,
    policy(
        "CloudFront-TLS-1-2-2021-PQ",
        &[
            X25519MLKEM768,
            P256MLKEM768,
            P384MLKEM1024,
            X25519,
            P256,
            P384,
        ],
    ),
    policy(
        "CloudFront-Upstream-TLS-1-3-2025-PQ",
        &[
            X25519MLKEM768,
            P256MLKEM768,
            P384MLKEM1024,
            P256,
            X25519,
            P384,
        ],
    ),
    policy(
        "ELBSecurityPolicy-TLS13-1-3-PQ-2025-09",
        &[
            X25519MLKEM768,
            P256MLKEM768,
            P384MLKEM1024,
            X25519,
            P256,
            P384,
            P521,
        ],
    ),
    policy(
        "AWS-CRT-SDK-TLSv1.3-2025-PQ",
        &[
            X25519MLKEM768,
            P256MLKEM768,
            P384MLKEM1024,
            MLKEM1024,
            P256,
            X25519,
            P384,
        ],
    ),
    policy(
        "CloudFront-TLS-1-3-2025",
        &[X25519MLKEM768, P256MLKEM768, X25519, P256, P384],
    ),
    policy("CloudFront-Upstream-TLS-1-3-2025", &[P256, X25519, P384]),
    policy("20240603", &[X25519, P256, P384, P521]),
    policy("default_tls13", &[P256, X25519, P384, P521]),
    cnsa("20250414", &[P384], ""),
    cnsa("20260720", &[MLKEM1024, P384], ""),
    cnsa("cnsa_2", &[MLKEM1024], " with ML-DSA-87 certificates only"),
];

/// Finds the policy for groups and suites.
pub(super) fn find(
    key_exchange: &KeyExchange,
    suites: Option<&[Suite]>,
) -> Result<&'static Policy, ConfigError> {
    if let Some(problem) = key_exchange.problem() {
        return Err(refuse(key_exchange, format!("{problem}; {}", hint())));
    }
    let found = match key_exchange {
        KeyExchange::PreferPostQuantum => Some(&POLICIES[0]),
        KeyExchange::RequirePostQuantum => Some(&POLICIES[1]),
        KeyExchange::OnlyClassical => Some(&POLICIES[2]),
        KeyExchange::Exactly(groups) if Profile::Fips140.groups() == Some(groups.as_slice()) => {
            Some(&POLICIES[3])
        }
        KeyExchange::Exactly(groups) => POLICIES.iter().find(|policy| policy.groups == groups),
    };
    let policy = found.ok_or_else(|| refuse(key_exchange, hint()))?;
    match suites {
        Some(suites) if suites != policy.suites => Err(super::unsupported(format!(
            "its policy `{}` has the cipher suites {:?} in this order; ask for these or for none, \
             or use rustls",
            policy.name, policy.suites
        ))),
        _ => Ok(policy),
    }
}

fn refuse(wanted: &KeyExchange, hint: String) -> ConfigError {
    ConfigError::KeyExchange {
        provider: NAME,
        wanted: format!("{wanted:?}"),
        hint,
    }
}

/// Finds the policy for groups and suites under the rules of a profile. If there is none, the
/// library cannot comply with the profile.
pub(super) fn under(
    profile: Profile,
    key_exchange: &KeyExchange,
    suites: Option<&[Suite]>,
) -> Result<&'static Policy, ConfigError> {
    let found = find(key_exchange, suites);
    // A list that no library supports is not the profile's fault.
    if profile == Profile::Default || found.is_ok() || key_exchange.problem().is_some() {
        return found;
    }
    let groups = key_exchange.groups();
    let groups: Vec<String> = groups.iter().map(Group::to_string).collect();
    Err(ConfigError::Profile {
        profile,
        problem: format!(
            "{NAME} has no policy with exactly {} and the cipher suites of the profile; use rustls",
            groups.join(", ")
        ),
    })
}

/// Returns the certificates that the policy for a profile accepts; `None` if the profile does not
/// have exactly one policy.
pub(super) const fn certificates(profile: Profile) -> Option<&'static str> {
    match profile {
        // The only policy with pure ML-KEM is stricter than the second of these profiles.
        Profile::Cnsa2 | Profile::Asd => Some("ML-DSA-87"),
        Profile::Default | Profile::Bsi | Profile::Anssi | Profile::Fips140 => None,
    }
}

/// Returns the policy with which a server serves: it signs with ML-DSA if possible.
pub(super) fn of_server(policy: &'static Policy) -> &'static Policy {
    if policy.name == REQUIRE.name {
        &REQUIRE_HYBRID
    } else {
        policy
    }
}

/// Returns the policy for clients that have no post-quantum group in common with the server's own
/// policy, but one in common with `test_pq_only`: clients with MLKEM1024 alone.
pub(super) fn strict_twin(key_exchange: &KeyExchange, policy: &Policy) -> Option<&'static Policy> {
    let [prefer, require, ..] = &POLICIES;
    let lacks_pure = matches!(
        key_exchange,
        KeyExchange::PreferPostQuantum | KeyExchange::RequirePostQuantum
    ) && policy.name == prefer.name;
    lacks_pure.then_some(require)
}

fn hint() -> String {
    let lists: Vec<String> = POLICIES
        .iter()
        .map(|policy| format!("{:?}{}", policy.groups, policy.remark))
        .collect();
    format!(
        "it has no list of groups of its own; use rustls, PreferPostQuantum, RequirePostQuantum, \
         OnlyClassical, or exactly one of {}",
        lists.join(", ")
    )
}
