//! Made-up results for tests of findings.

use std::collections::BTreeMap;

use hybriq::Group;

use crate::report::results::{About, CellResult, FORMAT, KindResult, Repetition, Results};
use crate::scenario::Template;
use crate::system::machine::Machine;

pub(super) fn results(cells: Vec<CellResult>) -> Results {
    let template = Template::load("request-response").unwrap();
    Results {
        netbench_results: FORMAT,
        complete: true,
        problems: Vec::new(),
        about: About::this_run(Machine::detect()),
        scenario: template.resolve(&BTreeMap::new()).unwrap(),
        scenario_id: String::new(),
        cells,
        breakdowns: Vec::new(),
    }
}

/// Returns a cell with as many repetitions as there are values of each metric.
pub(super) fn cell(group: Group, params: &[(&str, u64)], metrics: &[(&str, &[f64])]) -> CellResult {
    let turns = metrics.first().map_or(0, |(_, values)| values.len());
    let repetition = |turn: usize| {
        let figure = |(name, values): &(&str, &[f64])| ((*name).to_owned(), values[turn]);
        Repetition {
            metrics: metrics.iter().map(figure).collect(),
            ..Repetition::default()
        }
    };
    let mut result = CellResult {
        repetitions: (0..turns).map(repetition).collect(),
        ..CellResult::default()
    };
    result.cell.group = group;
    let params = params
        .iter()
        .map(|(name, value)| ((*name).to_owned(), *value));
    result.cell.params = params.collect();
    result.summarize();
    result
}

/// Returns the cell with this number of connections in each repetition.
pub(super) fn with_connections(mut cell: CellResult, connections: u64) -> CellResult {
    for repetition in &mut cell.repetitions {
        let kind = KindResult {
            outcomes: BTreeMap::from([("ok".to_owned(), connections)]),
            ..KindResult::default()
        };
        repetition.kinds.insert(String::new(), kind);
    }
    cell
}
