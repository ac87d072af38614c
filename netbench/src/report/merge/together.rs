//! Simultaneous repetitions of the same cell by several clients, and their sums.

use super::Input;
use super::combine::combine;
use super::samples::{align, interval};
use crate::report::results::{CellResult, Repetition};

/// Relation of the clients whose files are merged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Clients {
    /// They shared server processes, and began each repetition together.
    Fleet,
    /// Each had server processes of its own.
    Separate,
}

/// Simultaneous repetitions, with the numbers of their files.
type Together = Vec<(usize, Repetition)>;

/// Merges the repetitions of all files into the cell. Returns false if some of them have fewer
/// clients than there are, so that they stay separate.
pub(super) fn merge(
    cell: &mut CellResult,
    of_each: Vec<Vec<Repetition>>,
    inputs: &[Input],
) -> bool {
    let mut abouts = inputs.iter().map(|input| &input.results.about);
    let clients = if abouts.any(|about| about.fleet.is_some()) {
        Clients::Fleet
    } else {
        Clients::Separate
    };
    let mut all: Vec<Together> = Vec::new();
    for (file, repetitions) in of_each.into_iter().enumerate() {
        for repetition in repetitions {
            let is_of = |group: &&mut Together| {
                group.iter().all(|(other, _)| *other != file)
                    && group
                        .iter()
                        .any(|(_, other)| is_together(clients, other, &repetition))
            };
            match all.iter_mut().find(is_of) {
                Some(group) => group.push((file, repetition)),
                None => all.push(vec![(file, repetition)]),
            }
        }
    }
    let mut is_whole = true;
    cell.repetitions = all
        .into_iter()
        .map(|group| {
            let missing = inputs.len() - group.len();
            let mut sum = add_up(group, clients);
            if clients == Clients::Fleet && missing > 0 {
                is_whole = false;
                sum.error.get_or_insert_with(|| {
                    format!(
                        "{missing} of {} clients have nothing of this repetition",
                        inputs.len()
                    )
                });
            }
            sum.metrics = match sum.error {
                None => sum.derive_metrics(),
                Some(_) => std::collections::BTreeMap::new(),
            };
            sum
        })
        .collect();
    cell.repetitions
        .sort_by(|a, b| a.started_ms.total_cmp(&b.started_ms));
    cell.summarize();
    is_whole
}

fn is_together(clients: Clients, one: &Repetition, other: &Repetition) -> bool {
    if clients == Clients::Fleet {
        return one.round == other.round;
    }
    let end = |repetition: &Repetition| repetition.unix_ms + repetition.elapsed_us / 1e3;
    let both = end(one).min(end(other)) - one.unix_ms.max(other.unix_ms);
    let shorter = one.elapsed_us.min(other.elapsed_us) / 1e3;
    both >= shorter / 2.0
}

/// Returns the sum of simultaneous repetitions. The clients of a fleet report the same server
/// process, which counts once.
fn add_up(group: Together, clients: Clients) -> Repetition {
    let Some((_, first)) = group.first() else {
        return Repetition::default();
    };
    if group.len() == 1 {
        return first.clone();
    }
    let begin = |repetition: &Repetition| {
        if clients == Clients::Fleet {
            0.0
        } else {
            repetition.unix_ms
        }
    };
    let start = group
        .iter()
        .map(|(_, repetition)| begin(repetition))
        .fold(f64::INFINITY, f64::min);
    let grid = interval(&first.samples).max(1.0);
    let mut head = first.clone();
    let mut servers = Vec::new();
    let mut end_us = 0.0_f64;
    let mut parts = Vec::new();
    for (_, mut repetition) in group {
        let later_ms = begin(&repetition) - start;
        end_us = end_us.max(later_ms * 1e3 + repetition.elapsed_us);
        head.started_ms = head.started_ms.min(repetition.started_ms);
        head.unix_ms = head.unix_ms.min(repetition.unix_ms);
        repetition.samples = align(&repetition.samples, later_ms, grid);
        if clients == Clients::Separate || servers.is_empty() {
            servers.push(repetition.server);
        }
        parts.push(repetition);
    }
    Repetition {
        elapsed_us: end_us,
        started_ms: head.started_ms,
        unix_ms: head.unix_ms,
        ..combine(parts, servers)
    }
}
