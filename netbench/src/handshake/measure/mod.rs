//! Many handshakes of many kinds, and the medians of their parts. The kinds take turns, so that a
//! disturbance affects all of them.

pub(crate) mod algorithms;
pub(super) mod samples;

use std::time::Duration;

use hybriq::tls::Side;

use self::samples::{Samples, TURNS};
use super::exchange::handshake;
use super::exchange::handshake::Record;
use super::plan::{Ends, Plan};
use super::timed;
use super::timed::recorder::{Watch, cost_of_timing};
use crate::handshake::certificates;
use crate::report::results::Breakdown;
use crate::system::failure::Failure;

/// Number of attempts for one handshake with a ticket. A ticket is used once, and not every
/// handshake supplies a new one, but at least every second does.
const ATTEMPTS: usize = 2;

/// Breakdowns, and the plans that could not be measured.
#[derive(Default)]
pub(crate) struct Outcome {
    pub(crate) breakdowns: Vec<Breakdown>,
    /// Plans that could not be measured, with the reason.
    pub(crate) left_out: Vec<String>,
}

/// Measures this number of handshakes of each kind, after a warm-up with a tenth as many. Calls
/// `tick` after each turn of a kind.
pub(crate) fn measure(plans: &[Plan], iterations: usize, mut tick: impl FnMut()) -> Outcome {
    let mut outcome = Outcome::default();
    let mut kinds = Vec::new();
    for plan in plans {
        match Measured::prepare(plan, iterations, &mut outcome.left_out) {
            Ok(measured) => kinds.extend(measured),
            Err(reason) => outcome.left_out.push(format!("{plan}: {reason}")),
        }
    }
    for turn in 0..TURNS {
        let handshakes = iterations * (turn + 1) / TURNS - iterations * turn / TURNS;
        kinds.retain_mut(|kind| {
            let done = (0..handshakes).try_for_each(|_| kind.iterate());
            tick();
            done.map_err(|reason| outcome.left_out.push(format!("{}: {reason}", kind.plan)))
                .is_ok()
        });
    }
    outcome.breakdowns = kinds.into_iter().flat_map(Measured::breakdowns).collect();
    outcome
}

/// Returns the number of handshakes of the warm-up.
pub(super) fn warm_up(iterations: usize) -> usize {
    iterations.div_ceil(10)
}

/// Returns the maximum number of calls of `tick` by [`measure`].
pub(crate) fn turns(plans: &[Plan]) -> u64 {
    // s2n-tls plays each role in a separate pair.
    let pairs: usize = plans.iter().map(Plan::pairs).sum();
    (pairs * TURNS) as u64
}

/// One kind and its measurements so far.
struct Measured<'a> {
    plan: &'a Plan,
    ends: Ends,
    samples: Vec<(Side, Samples)>,
    cost: Duration,
}

impl<'a> Measured<'a> {
    fn prepare(
        plan: &'a Plan,
        iterations: usize,
        left_out: &mut Vec<String>,
    ) -> Result<Vec<Self>, Failure> {
        let certificates = certificates::make(plan.certificates())?;
        let mut prepared = Vec::new();
        for ends in plan.ends(&certificates, left_out)? {
            for _ in 0..warm_up(iterations) {
                once(plan, &ends, Watch::Messages)?;
            }
            prepared.push(Self {
                plan,
                samples: ends
                    .measured
                    .iter()
                    .map(|side| (*side, Samples::default()))
                    .collect(),
                ends,
                cost: cost_of_timing(),
            });
        }
        Ok(prepared)
    }

    fn iterate(&mut self) -> Result<(), Failure> {
        let messages = once(self.plan, &self.ends, Watch::Messages)?;
        let operations = once(self.plan, &self.ends, Watch::Operations)?;
        for (side, samples) in &mut self.samples {
            samples.add_messages(of(*side, &messages));
            samples.add_operations(of(*side, &operations), self.cost);
        }
        Ok(())
    }

    fn breakdowns(self) -> impl Iterator<Item = Breakdown> {
        let plan = *self.plan;
        self.samples
            .into_iter()
            .map(move |(side, samples)| samples.breakdown(&plan, side))
    }
}

fn of(side: Side, (client, server): &(Record, Record)) -> &Record {
    match side {
        Side::Client => client,
        Side::Server => server,
    }
}

/// Performs one handshake of that kind.
pub(super) fn once(plan: &Plan, ends: &Ends, watch: Watch) -> Result<(Record, Record), Failure> {
    for _ in 0..ATTEMPTS {
        if plan.mode.shares_ahead {
            timed::make_ahead(plan.group)?;
        }
        let records = handshake::run(&*ends.client, &*ends.server, plan.mode, watch);
        timed::forget_ahead();
        let records = records?;
        for record in [&records.0, &records.1] {
            let found = (record.negotiated.group, record.negotiated.suite);
            if found != (Some(plan.group), Some(plan.suite)) {
                let (group, suite) = (plan.group, plan.suite);
                return Err(format!("asked for {group} with {suite}, got {found:?}").into());
            }
        }
        if records.0.negotiated.resumed == plan.mode.psk {
            return Ok(records);
        }
    }
    Err("the server gave no ticket that resumes; use --resumption full".into())
}
