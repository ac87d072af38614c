//! Problems of a configuration, collected one after another.

use std::time::SystemTime;

use crate::{ConfigError, ConfigErrors, Identity, policy::certificate::Validity};

/// Problems found so far.
#[derive(Default)]
pub(crate) struct Problems {
    errors: Vec<ConfigError>,
    /// Positions of identities that cannot be used.
    unusable: Vec<usize>,
}

impl Problems {
    /// Notes an error, unless the same one was noted before. Otherwise returns the value.
    pub(crate) fn note<T>(&mut self, result: Result<T, ConfigError>) -> Option<T> {
        match result {
            Ok(value) => Some(value),
            Err(error) => {
                let text = error.to_string();
                if self.errors.iter().all(|known| known.to_string() != text) {
                    self.errors.push(error);
                }
                None
            }
        }
    }

    /// Notes each identity that `load` refuses. With several identities, the text gives the
    /// position.
    #[cfg(any(feature = "rustls", all(unix, feature = "s2n-tls")))]
    pub(crate) fn note_identities<T>(
        &mut self,
        identities: &[Identity],
        load: impl Fn(&Identity) -> Result<T, ConfigError>,
    ) {
        for (position, identity) in identities.iter().enumerate() {
            let loaded = load(identity).map_err(|error| match error {
                ConfigError::Identity(text) if identities.len() > 1 => {
                    ConfigError::Identity(format!("certificate {position}: {text}"))
                }
                error => error,
            });
            if self.note(loaded).is_none() {
                self.unusable.push(position);
            }
        }
    }

    /// Notes each certificate of this end that is not valid at a time.
    pub(crate) fn note_validity(&mut self, identities: &[Identity], now: SystemTime) {
        for (certificate, identity) in identities.iter().enumerate() {
            let leaf = identity.certificates().first();
            let problem = match leaf.and_then(|leaf| Validity::of(leaf)) {
                Some(validity) => validity.problem(now).map(|problem| ConfigError::Validity {
                    certificate,
                    problem,
                }),
                // Already noted.
                None if self.unusable.contains(&certificate) => None,
                None => Some(ConfigError::Identity(format!(
                    "certificate {certificate} has no readable time of validity; have it reissued"
                ))),
            };
            self.note(problem.map_or(Ok(()), Err));
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.errors.is_empty()
    }

    /// Returns the first problem, if there is one.
    #[cfg(any(feature = "rustls", all(unix, feature = "s2n-tls")))]
    pub(crate) fn into_first(self) -> Option<ConfigError> {
        self.errors.into_iter().next()
    }

    /// Returns all problems, if there are any.
    pub(crate) fn into_result(self) -> Result<(), ConfigErrors> {
        ConfigErrors::new(self.errors).map_or(Ok(()), Err)
    }
}
