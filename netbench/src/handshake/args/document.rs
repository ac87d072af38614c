//! Breakdowns in the results format of all scenarios.

use std::collections::BTreeMap;

use crate::handshake::measure::{Outcome, warm_up};
use crate::handshake::plan::Plan;
use crate::report::results::Results;
use crate::scenario::Template;
use crate::scenario::axes::{Axes, Resumption};
use crate::system::failure::Failure;
use crate::system::machine::Machine;

/// Meaning of a plan that could not be measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Gaps {
    /// The plan was only requested as part of `all`: the results are complete without it.
    Allowed,
    /// The plan was requested by name: the results are incomplete without it.
    Refused,
}

/// Returns the results of these plans.
pub(crate) fn results(
    plans: &[Plan],
    iterations: usize,
    outcome: Outcome,
    gaps: Gaps,
) -> Result<Results, Failure> {
    let params = BTreeMap::from([
        ("connections".to_owned(), iterations as u64),
        ("warm_up".to_owned(), warm_up(iterations) as u64),
    ]);
    let mut scenario = Template::load("handshake-breakdown")?.resolve(&params)?;
    scenario.axes = axes(plans);
    // One process contains both sides.
    let machine = Machine {
        server_core: None,
        client_core: None,
        ..Machine::detect()
    };
    Ok(Results {
        complete: outcome.left_out.is_empty()
            || (gaps == Gaps::Allowed && !outcome.breakdowns.is_empty()),
        problems: outcome.left_out,
        breakdowns: outcome.breakdowns,
        ..Results::of(scenario, machine)
    })
}

/// Returns the axes that the plans vary.
fn axes(plans: &[Plan]) -> Axes {
    Axes {
        provider: distinct(plans, |plan| plan.provider),
        group: distinct(plans, |plan| plan.group),
        certificate: distinct(plans, |plan| plan.certificate),
        chain: distinct(plans, |plan| plan.chain),
        suite: distinct(plans, |plan| plan.suite),
        resumption: distinct(plans, |plan| {
            if plan.mode.psk {
                Resumption::Psk
            } else {
                Resumption::Full
            }
        }),
        client_auth: distinct(plans, |plan| plan.client_auth),
        ..Axes::default()
    }
}

fn distinct<T: PartialEq>(plans: &[Plan], of: impl Fn(&Plan) -> T) -> Vec<T> {
    let mut values = Vec::new();
    for value in plans.iter().map(of) {
        if !values.contains(&value) {
            values.push(value);
        }
    }
    values
}
