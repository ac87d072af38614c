use std::sync::Arc;

use hybriq_tls::Provider;

use crate::config::TransportConfig;

/// What connections of one kind share: a TLS provider and the transport's configuration.
#[derive(Clone)]
pub struct Setup {
    /// Makes the TLS sessions.
    pub provider: Arc<dyn Provider>,
    /// Everything else.
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
