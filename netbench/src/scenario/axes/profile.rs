//! The rules of an authority, which narrow the cells of a matrix.

use hybriq::{
    Profile,
    tls::{CertificateAlgorithms, KeyAlgorithm, SignatureAlgorithm},
};

use super::{Axes, Cell, Certificate, Resumption};
use crate::system::failure::Failure;

impl Certificate {
    /// Returns the algorithms of its key and of the signatures in its chain.
    pub(crate) const fn algorithms(self) -> CertificateAlgorithms {
        use KeyAlgorithm as Key;
        use SignatureAlgorithm as Signed;
        let (key, signature) = match self {
            Self::EcdsaP256 => (Key::EcdsaP256, Signed::EcdsaSha256),
            Self::EcdsaP384 => (Key::EcdsaP384, Signed::EcdsaSha384),
            Self::Rsa2048 => (Key::Rsa { bits: 2048 }, Signed::RsaSha256),
            Self::Ed25519 => (Key::Ed25519, Signed::Ed25519),
            Self::MlDsa44 => (Key::MlDsa44, Signed::MlDsa44),
            Self::MlDsa65 => (Key::MlDsa65, Signed::MlDsa65),
            Self::MlDsa87 => (Key::MlDsa87, Signed::MlDsa87),
        };
        CertificateAlgorithms::new(key, signature)
    }
}

impl Axes {
    /// Gives a cell the profile's first choice of everything that does not vary.
    pub(super) fn follow_profile(&self, cell: &mut Cell) {
        let Some(profile) = self.profile else { return };
        if let (true, Some([group, ..])) = (self.group.is_empty(), profile.groups()) {
            cell.group = *group;
        }
        if let (true, Some([suite, ..])) = (self.suite.is_empty(), profile.suites()) {
            cell.suite = *suite;
        }
        let allowed = |kind: &Certificate| profile.allows_certificate(&kind.algorithms());
        if self.certificate.is_empty() && !allowed(&cell.certificate) {
            let strongest = Certificate::ALL.into_iter().rev().find(allowed);
            cell.certificate = strongest.unwrap_or_default();
        }
    }

    /// Refuses a cell that the profile forbids.
    pub(crate) fn check_profile(&self, cell: &Cell) -> Result<(), Failure> {
        let Some(profile) = self.profile.filter(|it| *it != Profile::Default) else {
            return Ok(());
        };
        let misses = |allowed: Option<bool>| allowed == Some(false);
        let group = profile.groups().map(|groups| groups.contains(&cell.group));
        let suite = profile.suites().map(|suites| suites.contains(&cell.suite));
        let certificate = profile.allows_certificate(&cell.certificate.algorithms());
        let forbidden = if misses(group) {
            format!("the group {}", cell.group)
        } else if misses(suite) {
            format!("the suite {}", cell.suite)
        } else if !certificate {
            format!("certificates of {}", cell.certificate)
        } else if cell.resumption == Resumption::ZeroRtt && !profile.allows_early_data() {
            "0-RTT".to_owned()
        } else if cell.hello_retry {
            // The share that comes first is of another group.
            "a share of another group (hello_retry)".to_owned()
        } else {
            return Ok(());
        };
        Err(refusal(profile, &forbidden))
    }
}

fn refusal(profile: Profile, forbidden: &str) -> Failure {
    let source = profile.source();
    format!("the profile {profile} ({source}) does not allow {forbidden}; leave it out").into()
}
