//! Careful resumption of a path (RFC 9959).

use crate::owners::{
    congestion::careful_resume::{Observed, Stage},
    recovery::Recovery,
};

impl<R: 'static> Recovery<R> {
    /// Enables resuming of the path, with at most `max_jump` bytes in flight (RFC 9959).
    pub const fn enable_resume(&mut self, max_jump: u64) {
        self.controller.enable(max_jump);
    }

    /// Takes the state that an earlier connection saved for the same path.
    pub fn resume(&mut self, saved: Observed) {
        self.controller.resume(saved);
    }

    /// Returns the state to save for a later connection, or `None` until there are good
    /// measurements.
    pub fn observed(&self) -> Option<Observed> {
        self.controller.observed()
    }

    /// Returns the stage of resuming.
    pub const fn resume_stage(&self) -> Stage {
        self.controller.stage()
    }
}
