use std::sync::{Arc, Mutex};

use super::*;
use crate::owners::congestion::{Lost, Phase, Spurious};

/// Event reported to a controller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Told {
    Acked { bytes: u64, marks: u64 },
    Lost(u64),
    Marked(u64),
    Spurious,
}

/// Records the events it receives, and allows everything.
#[derive(Clone, Debug, Default)]
pub(super) struct Recorder(Arc<Mutex<Vec<Told>>>);

impl Recorder {
    fn push(&self, told: Told) {
        self.0.lock().unwrap().push(told);
    }

    /// Returns the events since the last call.
    pub(super) fn take(&self) -> Vec<Told> {
        std::mem::take(&mut self.0.lock().unwrap())
    }
}

impl Controller for Recorder {
    fn on_acked(&mut self, acked: &Acked) {
        self.push(Told::Acked {
            bytes: acked.bytes,
            marks: acked.marks,
        });
    }

    fn on_lost(&mut self, lost: &Lost<'_>) {
        self.push(Told::Lost(lost.bytes));
    }

    fn on_marked(&mut self, marked: &Marked) {
        self.push(Told::Marked(marked.marks));
    }

    fn on_spurious(&mut self, _: &Spurious) {
        self.push(Told::Spurious);
    }

    fn on_datagram_size(&mut self, _: u16) {}

    fn window(&self) -> u64 {
        1 << 20
    }

    fn phase(&self) -> Phase {
        Phase::SlowStart
    }

    fn name(&self) -> &'static str {
        "recorder"
    }
}
