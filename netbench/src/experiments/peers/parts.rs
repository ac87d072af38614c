//! The measured scenarios, their sizes, and the stacks.

use std::time::Duration;

use crate::scenario::Template;
use crate::scenario::axes::{Axes, Stack};
use crate::system::failure::Failure;

/// Amount of work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Size {
    /// As small as possible: only shows that everything works.
    Tiny,
    /// Nine minutes.
    Quick,
    Full,
}

/// One scenario with all stacks.
#[derive(Clone, Debug)]
pub(crate) struct Part {
    pub(crate) id: &'static str,
    pub(crate) title: &'static str,
    pub(crate) template: Template,
    pub(crate) axes: Axes,
    pub(crate) repetitions: u32,
    /// Time limit, which may reduce the repetitions.
    pub(crate) time: Option<Duration>,
    /// Its share of a limited time.
    pub(super) weight: u32,
}

/// A part before its numbers are chosen.
struct Plan {
    id: &'static str,
    title: &'static str,
    scenario: &'static str,
    weight: u32,
    /// Parameter that holds the amount of work, and its value for each [`Size`].
    amount: (&'static str, [&'static str; 3]),
    axes: &'static [(&'static str, &'static str)],
}

/// Number of connections that are held at most, for each [`Size`]. Bytes per connection are those
/// of the difference to the first value.
pub(super) const HELD: [&str; 3] = ["10,60", "200,4200", "200,10200"];

const PLANS: [Plan; 10] = [
    Plan {
        id: "connect-64",
        title: "connections, 64 at once",
        scenario: "connect",
        weight: 14,
        amount: ("connections", ["64", "2000", "6000"]),
        axes: &[("concurrency", "64"), ("group", "X25519MLKEM768,X25519")],
    },
    Plan {
        id: "connect-256",
        title: "connections, 256 at once",
        scenario: "connect",
        weight: 8,
        amount: ("connections", ["64", "2000", "6000"]),
        axes: &[("concurrency", "256")],
    },
    Plan {
        id: "connect-1",
        title: "connections, one at a time",
        scenario: "connect",
        weight: 6,
        amount: ("connections", ["5", "1000", "3000"]),
        axes: &[("concurrency", "1")],
    },
    Plan {
        id: "download",
        title: "a download",
        scenario: "bulk",
        weight: 11,
        amount: ("bytes", ["1MiB", "768MiB", "4GiB"]),
        axes: &[],
    },
    Plan {
        id: "upload",
        title: "an upload",
        scenario: "bulk",
        weight: 11,
        amount: ("upload", ["1MiB", "768MiB", "4GiB"]),
        axes: &[("bytes", "1")],
    },
    Plan {
        id: "download-100",
        title: "downloads on 100 streams",
        scenario: "many-streams",
        weight: 11,
        amount: ("response_size", ["10KiB", "8MiB", "40MiB"]),
        axes: &[
            ("connections", "1"),
            ("requests", "100"),
            ("request_size", "1"),
        ],
    },
    Plan {
        id: "request-1",
        title: "requests, one in flight",
        scenario: "request-response",
        weight: 9,
        amount: ("requests", ["50", "10000", "50000"]),
        axes: &[("connections", "1"), ("payload", "100"), ("warm_up", "1")],
    },
    Plan {
        id: "request-100",
        title: "requests of 100 B, 100 in flight",
        scenario: "many-streams",
        weight: 8,
        amount: ("requests", ["200", "100000", "500000"]),
        axes: &[("connections", "1"), ("payload", "100")],
    },
    Plan {
        id: "request-100-1k",
        title: "requests of 1 kB, 100 in flight",
        scenario: "many-streams",
        weight: 8,
        amount: ("requests", ["200", "100000", "500000"]),
        axes: &[("connections", "1"), ("payload", "1000")],
    },
    Plan {
        id: "held",
        title: "idle connections",
        scenario: "held",
        weight: 20,
        amount: ("held", HELD),
        axes: &[("active", "1"), ("requests", "1")],
    },
];

/// Returns all parts with the stacks that are built in.
pub(super) fn all(size: Size) -> Result<Vec<Part>, Failure> {
    PLANS.iter().map(|plan| part(plan, size)).collect()
}

fn part(plan: &Plan, size: Size) -> Result<Part, Failure> {
    let stacks: Vec<&str> = Stack::built_in().map(Stack::name).collect();
    let mut axes = Axes::default();
    axes.set("driver", &stacks.join(","))?;
    axes.set("provider", "rustls,s2n-tls")?;
    let (amount, values) = plan.amount;
    axes.set(amount, values[size as usize])?;
    for (name, values) in plan.axes {
        axes.set(name, values)?;
    }
    Ok(Part {
        id: plan.id,
        title: plan.title,
        template: Template::load(plan.scenario)?,
        axes,
        repetitions: 1,
        time: None,
        weight: plan.weight,
    })
}
