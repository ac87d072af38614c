//! The runtime that endpoints run on: tokio.

use std::{fmt::Debug, io, sync::Arc};

use tokio::runtime::Handle;

/// A runtime for endpoints.
pub trait Runtime: Debug + Send + Sync + 'static {
    /// Returns the tokio runtime that endpoints run on.
    ///
    /// # Errors
    /// There is none here.
    fn handle(&self) -> io::Result<Handle>;
}

/// The tokio runtime of the caller.
#[derive(Clone, Copy, Debug, Default)]
pub struct TokioRuntime;

impl Runtime for TokioRuntime {
    fn handle(&self) -> io::Result<Handle> {
        Handle::try_current().map_err(|_| {
            io::Error::other("there is no tokio runtime here; call this inside of one")
        })
    }
}

/// Returns the tokio runtime of the caller; `None` if there is none.
pub fn default_runtime() -> Option<Arc<dyn Runtime>> {
    TokioRuntime.handle().ok()?;
    Some(Arc::new(TokioRuntime))
}
