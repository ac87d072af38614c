//! Experiment 4, part one: the necessary size of a connection pool.

use super::measure::repetitions as repetitions_of;
use super::measure::{figure, measure, of_each, scaled};
use super::section::{Finding, Section, Source, Value, ValueTable, Verdict, three_digits};
use super::{Budget, Experiment};
use crate::report::results::{CellResult, Repetition, Results, Summary};
use crate::scenario::Template;
use crate::system::failure::Failure;

/// Scenario with requests of independent users. 4 ms of work at 200 a second keep one connection
/// busy for at least 80 % of the time.
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
    let (seconds, repetitions) = budget.choose(("2", 4), ("30", 5));
    let sizes = budget.choose("1,2,4,8", "1,2,3,4,5,6,8,10,16");
    let axes = [("connections", sizes), ("seconds", seconds)];
    let results = measure(
        Template::parse("pool", SCENARIO)?,
        &axes,
        repetitions,
        budget,
    )
    .await?;
    Ok(Section {
        source: Source {
            text: "AWS, blog on s2n-tls and hybrid key exchange, 2022".to_owned(),
            experiment: "200 requests a second, and the most connections that the client's pool \
                         may have: median latency and handshakes."
                .to_owned(),
        },
        published: vec![
            ValueTable::new("Published", "connections", &[("median latency", "")])
                .row("from 1 to 2", ["falls"])
                .row("beyond 2", ["levels off"]),
        ],
        ours: vec![ours(&results)],
        finding: finding(&results),
        rule:
            "It agrees where at least half of what the largest pool gains over a single connection \
               comes with the second."
                .to_owned(),
        notes: vec![format!(
            "{} of {seconds} s for each size, in turn; X25519MLKEM768; the emulated service takes \
             4 ms for a request. Requests arrive as from independent users, whether or not a \
             connection is free, and are timed from when they were meant to begin.",
            repetitions_of(&results)
        )],
        problems: results.problems.clone(),
        results: Some(Box::new(results)),
        ..Section::begin(experiment)
    })
}

fn size(cell: &CellResult) -> u64 {
    cell.cell.params.get("connections").copied().unwrap_or(0)
}

fn ours(results: &Results) -> ValueTable {
    let columns = [
        ("median latency", "ms"),
        ("p99", "ms"),
        ("handshakes", ""),
        ("requests", "1/s"),
    ];
    let mut table = ValueTable::new("Here", "connections", &columns);
    for result in &results.cells {
        let own = Some(result);
        let ms = |metric| Value::from(figure(own, metric).map(|us| scaled(us, 1e-3)));
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

/// Returns the second connection's part of the gain of each turn, in percent; 0 where there was
/// nothing to gain.
fn shares(results: &Results, largest: u64) -> Vec<f64> {
    let of = |connections: u64| {
        let own = results.cells.iter().find(|cell| size(cell) == connections);
        let repetitions = own.map_or(&[][..], |cell| &cell.repetitions);
        let latency = |it: &Repetition| it.metrics.get("request_p50_us").copied();
        repetitions.iter().map(latency).collect::<Vec<_>>()
    };
    let turns = of(1).into_iter().zip(of(2)).zip(of(largest));
    turns
        .filter_map(|((one, two), most)| {
            let (one, two, most) = (one?, two?, most?);
            // Beyond the second, medians may rise a little again: the maximum gain counts.
            let all = one - two.min(most);
            Some(if all > 0.0 {
                (one - two) / all * 100.0
            } else {
                0.0
            })
        })
        .collect()
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
    let Some(share) = Summary::of(&shares(results, largest)) else {
        return Finding::unknown("no turn has all sizes");
    };
    Finding::of(
        Verdict::at_least(share, 50.0),
        format!(
            "The median latency is {} ms with 1 connection, {} with 2 and {} with {largest}: the \
             second brings {:.0} % of all that there is to gain.",
            three_digits(one),
            three_digits(two),
            three_digits(most),
            share.median,
        ),
    )
}

#[cfg(test)]
mod tests {
    use super::{SCENARIO, finding};
    use crate::experiments::reproduce::Verdict;
    use crate::experiments::reproduce::fixed::{cell, results};
    use crate::scenario::Template;

    #[test]
    fn the_second_connection_has_to_bring_most_of_the_gain() {
        let found = |latencies: [f64; 3]| {
            let cells = [1, 2, 8].into_iter().zip(latencies).map(|(size, latency)| {
                cell(
                    hybriq::Group::X25519MLKEM768,
                    &[("connections", size)],
                    &[("request_p50_us", &[latency; 3])],
                )
            });
            finding(&results(cells.collect()))
        };
        let agrees = found([20_000.0, 6000.0, 5000.0]);
        assert_eq!(agrees.verdict, Verdict::Agrees);
        assert!(agrees.sentence.contains("93 %"), "{agrees:?}");
        assert_eq!(found([20_000.0, 6000.0, 6100.0]).verdict, Verdict::Agrees);
        assert_eq!(
            found([20_000.0, 19_000.0, 5000.0]).verdict,
            Verdict::Differs
        );
        assert_eq!(found([5000.0, 5000.0, 5000.0]).verdict, Verdict::Differs);
        let once = |size, latency| {
            let group = hybriq::Group::X25519MLKEM768;
            let metrics: [(&str, &[f64]); 1] = [("request_p50_us", &[latency])];
            cell(group, &[("connections", size)], &metrics)
        };
        let cells = vec![once(1, 775_000.0), once(2, 8000.0), once(8, 8730.0)];
        assert_eq!(finding(&results(cells)).verdict, Verdict::Unclear);
        assert_eq!(finding(&results(Vec::new())).verdict, Verdict::Unknown);
    }

    #[test]
    fn the_scenario_is_one() {
        let template = Template::parse("pool", SCENARIO).unwrap();
        template
            .resolve(&std::collections::BTreeMap::default())
            .unwrap();
    }
}
