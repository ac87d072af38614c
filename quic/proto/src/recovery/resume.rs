//! Careful resumption of a path (RFC 9959).

use super::Recovery;
use crate::congestion::careful_resume::{Observed, Stage};

impl<R> Recovery<R> {
    /// Lets the path be resumed, to at most so many bytes in flight at once (RFC 9959).
    pub const fn enable_resume(&mut self, max_jump: u64) {
        self.controller.enable(max_jump);
    }

    /// Here is what an earlier connection saw of the same path.
    pub fn resume(&mut self, saved: Observed) {
        self.controller.resume(saved);
    }

    /// Returns what may be resumed later; `None` while it was not measured well.
    pub fn observed(&self) -> Option<Observed> {
        self.controller.observed()
    }

    /// Returns how far resuming is.
    pub const fn resume_stage(&self) -> Stage {
        self.controller.stage()
    }
}
