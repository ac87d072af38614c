//! Options under a profile.

use std::{borrow::Cow, sync::Arc};

use super::algorithms::Problems;
use crate::options::Shared;
use crate::{
    Alert, ClientAuth, ClientOptions, ConfigError, Error, Group, Identity, KeyExchange, PeerChain,
    Profile, ServerOptions, Suite, Trust, Verifier,
};

#[cfg(test)]
mod tests;

/// Number of a profile's check when there is no check of the application.
const NO_CHECK: u64 = 0xffff_ffff;

impl Profile {
    /// Creates the error for an option that the profile forbids.
    fn forbids(self, problem: impl Into<String>) -> ConfigError {
        ConfigError::Profile {
            profile: self,
            problem: problem.into(),
        }
    }
}

/// Checks the chains of peers against a profile, before the application's own check.
struct ByProfile {
    profile: Profile,
    then: Option<Arc<dyn Verifier>>,
}

impl Verifier for ByProfile {
    fn verify(&self, peer: &PeerChain<'_>) -> Result<(), Error> {
        let chain = peer.certificates.iter().map(|certificate| &**certificate);
        if let Some(problem) = self.profile.problem_of_chain(chain) {
            return Err(Error::told(Alert::UNSUPPORTED_CERTIFICATE, problem));
        }
        self.then.as_ref().map_or(Ok(()), |then| then.verify(peer))
    }
}

/// Returns the policy for groups under a profile.
fn policy(profile: Profile, wanted: &KeyExchange) -> Result<KeyExchange, ConfigError> {
    let Some(allowed) = profile.groups() else {
        return Ok(wanted.clone());
    };
    match wanted {
        KeyExchange::PreferPostQuantum => return Ok(KeyExchange::Exactly(allowed.to_vec())),
        KeyExchange::RequirePostQuantum => {
            let groups = allowed.iter().copied().filter(|it| it.is_post_quantum());
            return Ok(KeyExchange::Exactly(groups.collect()));
        }
        KeyExchange::OnlyClassical | KeyExchange::Exactly(_) => {}
    }
    let forbidden: Vec<String> = wanted
        .groups()
        .iter()
        .filter(|group| !allowed.contains(group))
        .map(Group::to_string)
        .collect();
    if forbidden.is_empty() {
        return Ok(wanted.clone());
    }
    let names: Vec<String> = allowed.iter().map(Group::to_string).collect();
    Err(profile.forbids(format!(
        "`key_exchange` must not have {}; leave it out, or give some of {}",
        forbidden.join(", "),
        names.join(", ")
    )))
}

/// Returns the cipher suites under a profile.
fn suites(profile: Profile, wanted: Option<&[Suite]>) -> Result<Option<Vec<Suite>>, ConfigError> {
    let Some(allowed) = profile.suites() else {
        return Ok(wanted.map(<[_]>::to_vec));
    };
    let Some(wanted) = wanted else {
        return Ok(Some(allowed.to_vec()));
    };
    match wanted.iter().find(|suite| !allowed.contains(suite)) {
        None => Ok(Some(wanted.to_vec())),
        Some(suite) => Err(profile.forbids(format!(
            "the cipher suite {suite} is not allowed; leave `suites` out"
        ))),
    }
}

impl Trust {
    /// Adds the check of a profile, which comes before the application's.
    fn under(&self, profile: Profile) -> Self {
        let inner = self.custom();
        let number = Profile::ALL.iter().position(|known| *known == profile);
        let id = (number.unwrap_or_default() as u64) << 48;
        let verifier = ByProfile {
            profile,
            then: inner.map(|custom| custom.verifier.clone()),
        };
        let inner_id = inner.map_or(NO_CHECK, |custom| custom.id);
        self.clone().checked_by(id | inner_id, Arc::new(verifier))
    }
}

/// Notes every feature of this end's identities that the profile forbids.
fn note_identities(profile: Profile, identities: &[Identity], problems: &mut Problems) {
    for (at, identity) in identities.iter().enumerate() {
        let chain = identity.certificates().iter().map(|der| &**der);
        if let Some(problem) = profile.problem_of_chain(chain) {
            problems.note::<()>(Err(profile.forbids(format!("identity {at}: {problem}"))));
        }
    }
}

/// Notes that the cryptographic module of this build is not validated, if the profile requires one.
fn note_module(profile: Profile, problems: &mut Problems) {
    if profile == Profile::Fips140 && !crate::is_fips() {
        problems.note::<()>(Err(profile.forbids(
            "this build has no FIPS module; build hybriq with the feature `fips`",
        )));
    }
}

impl Shared {
    /// Applies the profile's requirements, and notes what it forbids.
    fn apply_profile(&mut self, problems: &mut Problems) {
        if let Some(policy) = problems.note(policy(self.profile, &self.key_exchange)) {
            self.key_exchange = policy;
        }
        if let Some(suites) = problems.note(suites(self.profile, self.suites.as_deref())) {
            self.suites = suites;
        }
    }
}

impl ClientOptions {
    /// Returns the options with the profile's requirements applied, and notes what it forbids.
    pub(crate) fn resolved(&self, problems: &mut Problems) -> Cow<'_, Self> {
        let profile = self.shared.profile;
        if profile == Profile::Default {
            return Cow::Borrowed(self);
        }
        note_module(profile, problems);
        note_identities(profile, self.identity.as_slice(), problems);
        if self.session_store.is_some() {
            problems.note::<()>(Err(profile.forbids(
                "a session in a store may have begun without the profile; leave `session_store` out",
            )));
        }
        #[cfg(feature = "rustls")]
        note_change(profile, self.change_rustls.is_some(), problems);
        let mut options = self.clone();
        options.shared.apply_profile(problems);
        options.trust = self.trust.under(profile);
        Cow::Owned(options)
    }

    /// Returns the options with the profile's requirements applied.
    pub(crate) fn under_profile(&self) -> Result<Cow<'_, Self>, ConfigError> {
        let mut problems = Problems::default();
        let options = self.resolved(&mut problems);
        problems.into_first().map_or(Ok(options), Err)
    }
}

impl ServerOptions {
    /// Returns the options with the profile's requirements applied, and notes what it forbids.
    pub(crate) fn resolved(&self, problems: &mut Problems) -> Cow<'_, Self> {
        let profile = self.shared.profile;
        if profile == Profile::Default {
            return Cow::Borrowed(self);
        }
        note_module(profile, problems);
        note_identities(profile, &self.identities, problems);
        if self.early_data.is_on() && !profile.allows_early_data() {
            problems.note::<()>(Err(
                profile.forbids("0-RTT data is not allowed; leave `accept_early_data` out")
            ));
        }
        #[cfg(feature = "rustls")]
        note_change(profile, self.change_rustls.is_some(), problems);
        let mut options = self.clone();
        options.shared.apply_profile(problems);
        for named in &mut options.key_exchange_for {
            if let Some(policy) = problems.note(policy(profile, &named.policy)) {
                named.policy = policy;
            }
        }
        options.client_auth = match &self.client_auth {
            ClientAuth::None => ClientAuth::None,
            ClientAuth::Optional(trust) => ClientAuth::Optional(trust.under(profile)),
            ClientAuth::Required(trust) => ClientAuth::Required(trust.under(profile)),
        };
        Cow::Owned(options)
    }

    /// Returns the options with the profile's requirements applied.
    pub(crate) fn under_profile(&self) -> Result<Cow<'_, Self>, ConfigError> {
        let mut problems = Problems::default();
        let options = self.resolved(&mut problems);
        problems.into_first().map_or(Ok(options), Err)
    }
}

/// Notes a change of the rustls configuration, which could undo the profile.
#[cfg(feature = "rustls")]
fn note_change(profile: Profile, is_there: bool, problems: &mut Problems) {
    if is_there {
        problems.note::<()>(Err(
            profile.forbids("`change_rustls` could undo the profile; leave it out")
        ));
    }
}
