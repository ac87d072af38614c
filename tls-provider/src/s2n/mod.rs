//! The s2n-tls 0.3.47 provider.

use crate::{
    ClientOptions, ConfigError, KeyExchange, Provider, ServerOptions, Session, Side, Start,
};

/// A client's side of s2n-tls.
pub struct Client {}

/// A server's side of s2n-tls.
pub struct Server {}

fn missing() -> ConfigError {
    ConfigError::Unsupported {
        provider: "s2n-tls",
        detail: "not written yet; use rustls".to_owned(),
    }
}

impl Client {
    /// Builds the configuration once; sessions share it.
    pub fn new(_: &ClientOptions) -> Result<Self, ConfigError> {
        Err(missing())
    }
}

impl Server {
    /// Builds the configuration once; sessions share it.
    pub fn new(_: &ServerOptions) -> Result<Self, ConfigError> {
        Err(missing())
    }
}

impl Provider for Client {
    fn name(&self) -> &'static str {
        "s2n-tls"
    }
    fn supports_early_data(&self) -> bool {
        false
    }
    fn key_exchange(&self) -> &KeyExchange {
        &KeyExchange::PreferPostQuantum
    }
    fn session(&self, _: Side, _: Start<'_>) -> Result<Box<dyn Session>, ConfigError> {
        Err(missing())
    }
}

impl Provider for Server {
    fn name(&self) -> &'static str {
        "s2n-tls"
    }
    fn supports_early_data(&self) -> bool {
        false
    }
    fn key_exchange(&self) -> &KeyExchange {
        &KeyExchange::PreferPostQuantum
    }
    fn session(&self, _: Side, _: Start<'_>) -> Result<Box<dyn Session>, ConfigError> {
        Err(missing())
    }
}
