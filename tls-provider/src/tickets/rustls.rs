//! Parts of the tickets of rustls that several servers share.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use ::rustls::server::ProducesTickets;

use super::sessions::{CAPACITY, Sessions};
use crate::ConfigError;

/// Parts shared by all servers that know each other's tickets.
pub(crate) struct Shared {
    ticketer: Mutex<Option<Arc<dyn ProducesTickets>>>,
    sessions: Arc<Sessions>,
}

impl Default for Shared {
    fn default() -> Self {
        Self {
            ticketer: Mutex::default(),
            sessions: Arc::new(Sessions::new(CAPACITY)),
        }
    }
}

impl Shared {
    pub(crate) fn ticketer(&self) -> Result<Arc<dyn ProducesTickets>, ConfigError> {
        let mut slot = self.ticketer.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(ticketer) = &*slot {
            return Ok(ticketer.clone());
        }
        let made = ::rustls::crypto::aws_lc_rs::Ticketer::new()
            .map_err(|error| ConfigError::unsupported("rustls", error.to_string()))?;
        *slot = Some(made.clone());
        Ok(made)
    }

    pub(crate) fn sessions(&self) -> &Arc<Sessions> {
        &self.sessions
    }
}

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shared").finish_non_exhaustive()
    }
}
