//! What the configurations of clients and servers share besides their TLS options.

use hybriq_tls::{
    ClientStart, ConfigError, ConfigErrors, Profile, Provider, ServerStart, Side, Start,
};

/// Writes the setters that clients and servers share.
macro_rules! config_setters {
    ($options:ident) => {
        /// Sets the TLS library. Default: rustls.
        #[must_use]
        pub fn tls(mut self, backend: Backend) -> Self {
            self.backend = backend;
            self.built = Arc::default();
            self
        }

        /// Sets a custom TLS provider, which replaces every TLS option of this configuration. Default:
        /// none.
        #[must_use]
        pub fn provider(mut self, provider: Arc<dyn Provider>) -> Self {
            self.provider = Some(provider);
            self.built = Arc::default();
            self
        }

        /// Sets the options of the transport. Default: [`TransportConfig::new`].
        #[must_use]
        pub fn transport(mut self, transport: TransportConfig) -> Self {
            self.transport = transport;
            self.built = Arc::default();
            self
        }

        /// Changes TLS options that have no method here, for example `change_rustls` for the
        /// configuration of rustls itself (feature `unstable-rustls`). Default: no change.
        #[must_use]
        pub fn tls_options(mut self, change: impl FnOnce($options) -> $options) -> Self {
            self.tls = change(self.tls);
            self.built = Arc::default();
            self
        }

        fn change(mut self, change: impl FnOnce(&mut $options)) -> Self {
            change(&mut self.tls);
            self.built = Arc::default();
            self
        }
    };
}

pub(super) use config_setters;

/// Refuses a profile together with a provider that does not follow it: the provider replaces the
/// options of TLS.
pub(super) fn check_profile(wanted: Profile, provider: &dyn Provider) -> Result<(), ConfigError> {
    let kept = provider.profile();
    if wanted == Profile::Default || wanted == kept {
        return Ok(());
    }
    Err(ConfigError::Profile {
        profile: wanted,
        problem: format!(
            "a provider replaces the options of TLS, and this one keeps to the profile `{kept}`; build \
             it with the profile, or leave `provider` out"
        ),
    })
}

/// Checks that a provider can start sessions of a side. The session is dropped unused.
pub(super) fn check_provider(
    provider: &dyn Provider,
    side: Side,
    profile: Profile,
) -> Result<(), ConfigErrors> {
    check_profile(profile, provider)?;
    let start = match side {
        Side::Client => Start::Client(ClientStart {
            server_name: "localhost",
            ..ClientStart::default()
        }),
        Side::Server => ServerStart::default().into(),
    };
    provider.session(start)?;
    Ok(())
}
