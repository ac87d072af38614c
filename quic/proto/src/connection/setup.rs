//! Provider and configuration that connections share.

use std::sync::Arc;

use hybriq_tls::Provider;

use crate::config::TransportConfig;

/// TLS provider and transport configuration that connections share.
#[derive(Clone)]
pub struct Setup {
    /// Maker of TLS sessions.
    pub provider: Arc<dyn Provider>,
    /// Configuration of the transport.
    pub transport: Arc<TransportConfig>,
}

impl std::fmt::Debug for Setup {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Setup")
            .field("provider", &self.provider.name())
            .field("transport", &self.transport)
            .finish()
    }
}
