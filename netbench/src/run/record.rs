//! Results of a run so far, and its failures.

use std::collections::BTreeMap;

use super::Request;
use super::live::Live;
use super::live::interrupt::{INTERRUPTED, Interrupt};
use super::matrix::Planned;
use super::matrix::setup;
use super::matrix::waits::is_open_loop;
use super::repetition::measurement::Measured;
use crate::report::results::{CellResult, Results};
use crate::system::failure::Failure;
use crate::system::machine::Machine;

/// Failures that an open loop provokes on purpose, so that they are no problem.
const OF_OVERLOAD: [&str; 3] = ["refused", "timeout", "unfinished"];

/// Results of a run in progress.
pub(super) struct Record {
    pub(super) results: Results,
    cells: Vec<State>,
    /// Failures not reported yet, because nothing has succeeded: if nothing ever does, one of them
    /// stands for all.
    unreported: Vec<(String, String)>,
}

#[derive(Default)]
struct State {
    succeeded: u32,
    failed: u32,
    tolerates_overload: bool,
    gives_up: bool,
    server_error: Option<(u64, String)>,
}

impl Record {
    pub(super) fn new(
        request: &Request,
        plan: &[Planned],
        machine: Machine,
    ) -> Result<Self, Failure> {
        let axes = setup::axes(request)?;
        // Axes with one value apply to every cell.
        let fixed = axes.params.iter().filter_map(|(name, values)| {
            let [value] = values.as_slice() else {
                return None;
            };
            Some((name.clone(), *value))
        });
        let mut scenario = request.template.resolve(&fixed.collect())?;
        scenario.axes = axes;
        let mut results = Results::of(scenario, machine);
        results.about.fleet = request.place.fleet();
        results.cells = plan.iter().map(not_measured).collect();
        let state = |planned: &Planned| State {
            tolerates_overload: is_open_loop(&planned.scenario),
            gives_up: request.gives_up,
            ..State::default()
        };
        Ok(Self {
            results,
            cells: plan.iter().map(state).collect(),
            unreported: Vec::new(),
        })
    }

    /// Returns the cells that can be measured.
    pub(super) fn measurable(&self) -> Vec<usize> {
        let cells = self.results.cells.iter().enumerate();
        cells
            .filter(|(_, cell)| cell.left_out.is_none())
            .map(|(index, _)| index)
            .collect()
    }

    /// Returns a line for each cell that cannot be measured.
    pub(super) fn left_out(&self) -> Vec<String> {
        let cells = self.results.cells.iter();
        cells
            .filter_map(|cell| {
                let reason = cell.left_out.as_ref()?;
                Some(format!("{} left out: {reason}", cell.name))
            })
            .collect()
    }

    /// Returns true if a cell has failed more often than not.
    pub(super) fn is_given_up(&self, cell: usize) -> bool {
        let state = self.cells.get(cell);
        state.is_none_or(|state| state.failed > state.succeeded)
    }

    /// Adds a finished repetition.
    pub(super) fn add(
        &mut self,
        cell: usize,
        repetition: u32,
        measured: Result<Measured, Failure>,
        live: &mut Live,
    ) {
        let (Some(result), Some(state)) =
            (self.results.cells.get_mut(cell), self.cells.get_mut(cell))
        else {
            return;
        };
        let failure = match measured {
            Ok(measured) => {
                let error = measured.repetition.error.clone();
                if state.gives_up && measured.repetition.completed() == 0 {
                    // More than any number of successes.
                    state.failed = u32::MAX / 2;
                }
                if self.results.about.servers.is_empty() {
                    self.results.about.servers = measured.servers;
                }
                live.end(cell, repetition, &measured.repetition);
                if let Some(text) = measured.server_error {
                    let failed = measured.repetition.server.failed;
                    let first = state.server_error.get_or_insert((0, text));
                    first.0 += failed;
                }
                result.repetitions.push(measured.repetition);
                result.summarize();
                error
            }
            Err(failure) => {
                live.skip(1);
                Some(failure.to_string())
            }
        };
        let Some(failure) = failure else {
            state.succeeded += 1;
            self.tell(live);
            return;
        };
        if failure == INTERRUPTED {
            return;
        }
        state.failed += 1;
        let name = result.name.clone();
        self.results.problems.push(format!("{name}: {failure}"));
        self.unreported.push((name, failure));
        self.tell(live);
    }

    /// Returns the cells with a repetition that other work on the machine disturbed. A cell that
    /// failed is not measured again.
    pub(super) fn disturbed(&self) -> Vec<usize> {
        let cells = self.results.cells.iter().zip(&self.cells).enumerate();
        cells
            .filter(|(_, (cell, state))| cell.disturbed && state.failed == 0)
            .map(|(index, _)| index)
            .collect()
    }

    /// Adds the repetition of a disturbed cell that was measured again. One that failed or was
    /// disturbed even more says nothing.
    pub(super) fn add_again(&mut self, cell: usize, measured: Result<Measured, Failure>) {
        let repetition = measured.ok().map(|measured| measured.repetition);
        let repetition = repetition.filter(|repetition| repetition.error.is_none());
        if let (Some(result), Some(repetition)) = (self.results.cells.get_mut(cell), repetition) {
            result.replace_disturbed(repetition);
        }
    }

    /// Notes the cells for which there was no time, so that none is missing without a reason.
    pub(super) fn note_unmeasured(&mut self) {
        for (cell, state) in self.results.cells.iter().zip(&self.cells) {
            let is_missing = cell.left_out.is_none() && cell.repetitions.is_empty();
            if is_missing && state.failed == 0 {
                let problem = "not measured: the time for all cells was over".to_owned();
                self.results
                    .problems
                    .push(format!("{}: {problem}", cell.name));
                self.unreported.push((cell.name.clone(), problem));
            }
        }
    }

    /// Reports the failures held back, if anything was measured.
    pub(super) fn tell(&mut self, live: &Live) {
        let cells = &self.results.cells;
        if cells.iter().all(|cell| cell.repetitions.is_empty()) {
            return;
        }
        for (name, failure) in self.unreported.drain(..) {
            live.say(&format!("{name}: {failure}"));
        }
    }

    /// Returns the results of a run that is over.
    ///
    /// # Errors
    ///
    /// The first failure, if nothing was measured.
    pub(super) fn finish(mut self, interrupt: &Interrupt) -> Result<Results, Failure> {
        let cells = &self.results.cells;
        if cells.iter().all(|cell| cell.repetitions.is_empty()) {
            return Err(self.first_failure().into());
        }
        let was_interrupted = interrupt.is_asked();
        let mut problems = Vec::new();
        for (cell, state) in cells.iter().zip(&self.cells) {
            problems.extend(failures(cell, state));
        }
        // The reason for a repetition's end was reported at that time.
        self.results.complete = self.results.problems.is_empty() && !was_interrupted;
        self.results.problems.extend(problems);
        if was_interrupted {
            self.results.problems.push(INTERRUPTED.to_owned());
        }
        Ok(self.results)
    }

    fn first_failure(&self) -> String {
        let Some((name, failure)) = self.unreported.first() else {
            return "interrupted before anything was measured".to_owned();
        };
        if self.unreported.iter().all(|(_, other)| other == failure) {
            failure.clone()
        } else {
            format!("{name}: {failure}")
        }
    }
}

fn not_measured(planned: &Planned) -> CellResult {
    CellResult {
        cell: planned.cell.clone(),
        name: planned.name.clone(),
        left_out: planned.left_out.clone(),
        ..CellResult::default()
    }
}

/// Returns a line about failed connections, unless the scenario provokes them.
fn failures(cell: &CellResult, state: &State) -> Option<String> {
    let mut counts: BTreeMap<&str, (u64, &str)> = BTreeMap::new();
    let mut attempts = 0;
    for repetition in &cell.repetitions {
        attempts += repetition.completed() + repetition.failed();
        for kind in repetition.kinds.values() {
            // The reason for the repetition's end is reported separately; connections that were in
            // progress then are no other failure.
            // Those that began later found nobody.
            let detail_of = |name: &str| kind.details.get(name).map_or("", String::as_str);
            let found_nobody =
                |name: &str| name == "refused" && detail_of(name).starts_with("cannot reach");
            let is_told = |name: &str| {
                repetition.error.is_some() && (name == "unfinished" || found_nobody(name))
            };
            let failed = kind.outcomes.iter();
            for (outcome, count) in failed.filter(|(name, _)| *name != "ok" && !is_told(name)) {
                let detail = kind.details.get(outcome).map_or("", String::as_str);
                let entry = counts.entry(outcome).or_insert((0, detail));
                entry.0 += count;
            }
        }
    }
    counts.retain(|outcome, (count, _)| {
        *count > 0 && !(state.tolerates_overload && OF_OVERLOAD.contains(outcome))
    });
    if counts.is_empty() {
        let (failed, first) = state
            .server_error
            .as_ref()
            .filter(|(failed, _)| *failed > 0)?;
        return Some(format!(
            "{}: {failed} connections failed at the server, the first: {first}",
            cell.name
        ));
    }
    let kinds: Vec<String> = counts
        .iter()
        .map(|(outcome, (count, detail))| match *detail {
            "" => format!("{count} {outcome}"),
            detail => format!("{count} {outcome} ({detail})"),
        })
        .collect();
    let failed: u64 = counts.values().map(|(count, _)| count).sum();
    Some(format!(
        "{}: {failed} of {attempts} connections failed: {}",
        cell.name,
        kinds.join(", ")
    ))
}
