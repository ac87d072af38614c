//! Limits after which failures end an operation.

use std::cell::{Cell, RefCell};

use super::phase::Phase;
use crate::scenario::OnError;
use crate::system::outcome::{Failed, Kind};

/// Number of failures of one kind in a row after which an operation ends if nothing ever succeeded,
/// because more would only cost timeouts.
const TOO_MANY: u64 = 10;

/// Number of timeouts in a row after which it ends if something succeeded before.
const TOO_MANY_TIMEOUTS: u64 = 100;

/// Failures of one operation since its last success.
pub(crate) struct InARow {
    concurrency: u64,
    on_error: OnError,
    last: RefCell<Option<Kind>>,
    count: Cell<u64>,
    any_ok: Cell<bool>,
    is_too_many: Cell<bool>,
}

impl InARow {
    /// Makes the counters. All attempts in progress at once may fail of the same cause.
    pub(crate) fn new(concurrency: u32, on_error: OnError) -> Self {
        Self {
            concurrency: concurrency.into(),
            on_error,
            last: RefCell::default(),
            count: Cell::new(0),
            any_ok: Cell::new(false),
            is_too_many: Cell::new(false),
        }
    }

    /// Returns true if the operation must be given up.
    pub(crate) fn is_too_many(&self) -> bool {
        self.is_too_many.get()
    }

    /// Decides how to continue after an outcome.
    pub(crate) fn judge(&self, outcome: &Result<(), Failed>, phase: &Phase) {
        let Err(failed) = outcome else {
            self.any_ok.set(true);
            self.count.set(0);
            return;
        };
        if self.on_error == OnError::Stop {
            phase.complain(format!("stopped at the first failure: {failed}"));
            phase.stop();
        }
        if self.is_last_straw(failed) && !self.is_too_many.replace(true) {
            let count = self.count.get();
            phase.complain(format!(
                "given up after {count} failures in a row, the last: {failed}"
            ));
        }
    }

    fn is_last_straw(&self, failed: &Failed) -> bool {
        let mut last = self.last.borrow_mut();
        if last.as_ref() != Some(&failed.kind) {
            *last = Some(failed.kind.clone());
            self.count.set(0);
        }
        self.count.set(self.count.get() + 1);
        let most = match (self.any_ok.get(), &failed.kind) {
            (false, _) => TOO_MANY.max(self.concurrency),
            (true, Kind::Timeout) => TOO_MANY_TIMEOUTS.max(2 * self.concurrency),
            (true, _) => return false,
        };
        self.count.get() >= most
    }
}
