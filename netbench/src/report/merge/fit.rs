//! Checks that results belong together.

use std::collections::BTreeSet;
use std::path::Path;

use super::Input;
use crate::report::results::{CellResult, Repetition, Results};
use crate::system::failure::Failure;

/// Start of results in a log, which has other lines too.
const MARK: &str = "{\"netbench_results\":";

impl Input {
    pub(super) fn read(path: &std::path::PathBuf) -> Result<Self, Failure> {
        let name = path.display().to_string();
        let text = std::fs::read_to_string(path)
            .map_err(|error| format!("cannot read {name}: {error}"))?;
        Self::parse(Path::new(&name), &text)
    }

    pub(super) fn parse(path: &Path, text: &str) -> Result<Self, Failure> {
        let name = path.display().to_string();
        let of_log = || text.lines().rev().find(|line| line.starts_with(MARK));
        let results = Results::parse(text).or_else(|whole| match of_log() {
            Some(line) => Results::parse(line),
            None => Err(whole),
        });
        match results {
            Ok(results) => Ok(Self { name, results }),
            Err(reason) => Err(format!("{name}: {reason}").into()),
        }
    }

    /// Returns its results for the same cell.
    pub(super) fn repetitions_of(&self, cell: &CellResult) -> Vec<Repetition> {
        let cells = self.results.cells.iter();
        let mut same = cells.filter(|other| other.cell == cell.cell);
        same.next()
            .map_or_else(Vec::new, |cell| cell.repetitions.clone())
    }
}

/// Refuses results that do not belong together. Returns the missing clients.
pub(super) fn check(inputs: &[Input]) -> Result<Vec<String>, Failure> {
    let [first, others @ ..] = inputs else {
        return Err("nothing to merge".into());
    };
    for other in others {
        same_program(first, other)?;
        same_work(first, other)?;
    }
    if let Some(parted) = inputs
        .iter()
        .find(|input| !input.results.breakdowns.is_empty())
    {
        return Err(format!(
            "{} is a breakdown of handshakes in one process, which cannot be added up",
            parted.name
        )
        .into());
    }
    members(inputs)
}

fn same_program(first: &Input, other: &Input) -> Result<(), Failure> {
    let version = |results: &Results| {
        let about = &results.about;
        let git = about.git.as_deref().unwrap_or("unknown revision");
        format!(
            "netbench {} ({git}, {}, format {})",
            about.netbench, about.build, results.netbench_results
        )
    };
    let (ours, theirs) = (version(&first.results), version(&other.results));
    if ours == theirs {
        return Ok(());
    }
    Err(format!("{} is of {ours}, {} of {theirs}", first.name, other.name).into())
}

fn same_work(first: &Input, other: &Input) -> Result<(), Failure> {
    let (ours, theirs) = (&first.results, &other.results);
    if ours.scenario_id != theirs.scenario_id {
        return Err(format!(
            "{} is of the scenario {}, {} of {}, or with other parameters",
            first.name, ours.scenario.name, other.name, theirs.scenario.name
        )
        .into());
    }
    has_all_cells(first, other)?;
    has_all_cells(other, first)
}

fn has_all_cells(first: &Input, other: &Input) -> Result<(), Failure> {
    let known = &other.results.cells;
    let mut cells = first.results.cells.iter();
    match cells.find(|cell| known.iter().all(|other| other.cell != cell.cell)) {
        None => Ok(()),
        Some(cell) => Err(format!(
            "{} has the cell \"{}\", {} has not",
            first.name, cell.name, other.name
        )
        .into()),
    }
}

/// Checks that the inputs are the clients of one fleet, each once, or that none belongs to a fleet.
fn members(inputs: &[Input]) -> Result<Vec<String>, Failure> {
    let fleet = |input: &Input| input.results.about.fleet;
    let sizes: BTreeSet<u32> = inputs
        .iter()
        .map(|input| fleet(input).map_or(1, |fleet| fleet.size))
        .collect();
    if sizes.len() > 1 {
        let sizes: Vec<_> = sizes.iter().map(u32::to_string).collect();
        return Err(format!("these are clients of fleets of {}", sizes.join(" and ")).into());
    }
    let mut seen: Vec<(u32, &Input)> = Vec::new();
    for input in inputs {
        if let Some((_, other)) = seen.iter().find(|(_, other)| is_same_run(other, input)) {
            return Err(format!("{} and {} are the same run", other.name, input.name).into());
        }
        let client = fleet(input).map_or(0, |fleet| fleet.client);
        let same = seen.iter().find(|(known, _)| *known == client);
        if let (Some((_, other)), Some(_)) = (same, fleet(input)) {
            return Err(format!(
                "{} and {} both are client {client} of a fleet",
                other.name, input.name
            )
            .into());
        }
        seen.push((client, input));
    }
    let size = inputs.first().and_then(fleet).map_or(0, |fleet| fleet.size);
    let is_missing = |client: &u32| seen.iter().all(|(known, _)| known != client);
    Ok((0..size)
        .filter(is_missing)
        .map(|client| format!("client {client} of the fleet of {size} is missing"))
        .collect())
}

/// Returns true for results of the same run: runs differ in their start, to the microsecond, or in
/// their machine.
fn is_same_run(one: &Input, other: &Input) -> bool {
    let print = |input: &Input| {
        let cells = input.results.cells.iter();
        let repetitions = cells.flat_map(|cell| &cell.repetitions);
        let times = repetitions.map(|repetition| (repetition.unix_ms, repetition.elapsed_us));
        times
            .map(|(start, lasted)| (start.to_bits(), lasted.to_bits()))
            .collect::<Vec<_>>()
    };
    let ours = print(one);
    !ours.is_empty() && ours == print(other)
}
