//! Links of the cases.

use std::time::Duration;

use hybriq_sim::{
    Chance,
    link::{Line, Reorder, Settings},
    one_in,
};

use crate::testbed::link::{Conditions, Part, Rebinding};

/// The runner's usual link: 15 ms each way, 10 Mbit/s, a queue of 25 packets.
pub(super) fn usual() -> Settings {
    Settings {
        delay: Duration::from_millis(15),
        line: Some(Line::new(10_000_000, 25 * 1500)),
        ..Settings::default()
    }
}

pub(super) fn both(settings: Settings) -> Conditions {
    Conditions {
        up: settings.clone(),
        down: settings,
        ..Conditions::default()
    }
}

pub(super) fn plain() -> Conditions {
    both(usual())
}

pub(super) fn lossy(loss: Chance) -> Conditions {
    Conditions { loss, ..plain() }
}

pub(super) fn corrupting(corruption: Chance) -> Conditions {
    Conditions {
        corruption,
        ..plain()
    }
}

pub(super) fn rebinding(part: Part) -> Conditions {
    Conditions {
        rebinding: Some(Rebinding {
            first: Duration::from_secs(1),
            every: Duration::from_secs(5),
            part,
        }),
        ..plain()
    }
}

/// Half of the packets arrive later than those that follow.
pub(super) fn reordering() -> Settings {
    let (chance, wait) = (one_in(2), Duration::from_millis(5));
    Settings {
        reorder: Some(Reorder { chance, wait }),
        ..usual()
    }
}
