//! Experiment 4, part one: how large a pool of connections has to be.

use super::measure::{figure, measure, of_each, scaled};
use super::section::{Figure, Finding, Section, Source, Table, three_digits};
use super::{Budget, experiments::Experiment};
use crate::Failure;
use crate::results::{CellResult, Results};
use crate::scenario::Template;

/// Requests arrive as from independent users; 4 ms of work at 200 a second keep one connection
/// busy for 80 % of the time and more.
const SCENARIO: &str = r#"{
  "netbench": 1,
  "name": "pool",
  "description": "200 requests a second over a pool of connections",
  "params": {
    "connections": {"default": 1, "help": "connections that the pool may have"},
    "seconds": {"default": 30, "help": "how long"}
  },
  "phases": {"measure": "$seconds s", "drain": "3s"},
  "clients": [{"name": "client", "ops": [{"pool": {
    "connections": "$connections", "rate": 200, "arrivals": "poisson",
    "ops": [
      {"open_bidi": {"peer": ["receive_all", {"sleep": "4ms"}, {"send": 1}, "finish"]}},
      {"send": 1}, "finish", "receive_all"
    ]
  }}]}]
}"#;

pub(super) async fn run(experiment: &Experiment, budget: &Budget) -> Result<Section, Failure> {
    let (seconds, repetitions) = budget.choose(("2", 2), ("30", 5));
    let sizes = budget.choose("1,2,3,4,8", "1,2,3,4,5,6,8,10,16");
    let axes = [("connections", sizes), ("seconds", seconds)];
    let results = measure(Template::parse("pool", SCENARIO)?, &axes, repetitions).await?;
    Ok(Section {
        source: Source {
            text: "AWS, blog on s2n-tls and hybrid key exchange, 2022".to_owned(),
            experiment: "200 requests a second, and the most connections that the client's pool \
                         may have: median latency and handshakes."
                .to_owned(),
        },
        published: vec![
            Table::new("Published", "connections", &[("median latency", "")])
                .row("from 1 to 2", ["falls"])
                .row("beyond 2", ["levels off"]),
        ],
        ours: vec![ours(&results)],
        finding: finding(&results),
        notes: vec![format!(
            "{repetitions} repetitions of {seconds} s for each size, in turn; X25519MLKEM768; the \
             server takes 4 ms for a request. Requests arrive as from independent users, whether \
             or not a connection is free, and are timed from when they were meant to begin."
        )],
        problems: results.problems.clone(),
        results: Some(Box::new(results)),
        ..Section::begin(experiment)
    })
}

fn size(cell: &CellResult) -> u64 {
    cell.cell.params.get("connections").copied().unwrap_or(0)
}

fn ours(results: &Results) -> Table {
    let columns = [
        ("median latency", "ms"),
        ("p99", "ms"),
        ("handshakes", ""),
        ("requests", "1/s"),
    ];
    let mut table = Table::new("Here", "connections", &columns);
    for result in &results.cells {
        let own = Some(result);
        let ms = |metric| Figure::from(figure(own, metric).map(|us| scaled(us, 1e-3)));
        let handshakes = of_each(own, |repetition| Some(repetition.completed() as f64));
        table.push(
            size(result).to_string(),
            [
                ms("request_p50_us"),
                ms("request_p99_us"),
                handshakes.into(),
                figure(own, "requests_per_second").into(),
            ],
        );
    }
    table
}

fn finding(results: &Results) -> Finding {
    let median = |connections: u64| {
        let own = results.cells.iter().find(|cell| size(cell) == connections);
        figure(own, "request_p50_us").map(|us| us.median / 1e3)
    };
    let largest = results.cells.iter().map(size).max().unwrap_or(0);
    let (Some(one), Some(two), Some(most)) = (median(1), median(2), median(largest)) else {
        return Finding::unknown("the latency of a size is missing");
    };
    let (gain, rest) = (one - two, two - most);
    Finding::of(
        gain > 0.0 && rest < gain,
        format!(
            "From 1 to 2 connections the median latency falls from {} to {} ms, from 2 to {largest} \
             to {} ms: {:.0} % of all that there is to gain comes with the second.",
            three_digits(one),
            three_digits(two),
            three_digits(most),
            gain / (one - most.min(two)) * 100.0
        ),
    )
}

#[cfg(test)]
mod tests {
    use super::SCENARIO;
    use crate::scenario::Template;

    #[test]
    fn the_scenario_is_one() {
        let template = Template::parse("pool", SCENARIO).unwrap();
        template
            .resolve(&std::collections::BTreeMap::default())
            .unwrap();
    }
}
