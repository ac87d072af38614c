//! Experiment 4, part two: bursts of requests, and the idle timeout of connections.

use std::time::Duration;

use super::measure::repetitions as repetitions_of;
use super::measure::{figure, measure, of_each, paired, ratio, scaled};
use super::section::{Finding, Section, Source, Value, ValueTable, Verdict, three_digits};
use super::{Budget, Experiment};
use crate::report::results::{CellResult, Results};
use crate::scenario::Template;
use crate::system::failure::Failure;

/// Link to another zone of a data centre.
const LINK: &str = "--delay 2ms";

/// Number of bursts in a minute.
const BURSTS: u64 = 12;

/// Published values: connections, and the median latency in milliseconds.
const SHORT: (f64, f64) = (100.0, 20.3);
const LONG_MS: f64 = 5.9;

pub(super) async fn run(experiment: &Experiment, budget: &Budget) -> Result<Section, Failure> {
    // A quick run is ten times as fast, with the same number of bursts.
    let (every, every_ms, limits) =
        budget.choose(("500ms", 500, "100ms,1s"), ("5s", 5000, "1s,10s"));
    let repetitions = budget.choose(4, 5);
    let axes = [
        ("clients", "10"),
        ("every", every),
        ("idle_timeout", limits),
        ("link", LINK),
    ];
    // Ends between two bursts: one at the very end would have no time left.
    let time = Duration::from_millis(every_ms * (2 * BURSTS - 1) / 2);
    let template = Template::load("bursts")?.ending_after(time);
    let results = measure(template, &axes, repetitions, budget).await?;
    Ok(Section {
        source: Source {
            text: "AWS, blog on s2n-tls and hybrid key exchange, 2022".to_owned(),
            experiment:
                "10 clients, a burst of requests every 5 s for a minute, with an idle limit \
                         of 1 s and of 10 s."
                    .to_owned(),
        },
        published: vec![
            ValueTable::new(
                "Published",
                "idle limit",
                &[("connections", ""), ("median latency", "ms")],
            )
            .row("1 s", [SHORT.0, SHORT.1].map(Value::from))
            .row("10 s", [Value::from("reused"), LONG_MS.into()]),
        ],
        ours: vec![ours(&results)],
        finding: finding(&results),
        rule: "It agrees where the short limit makes at least 5 times as many connections, and its \
               requests take at least 1.5 times as long: the published ratio of 3.4 holds a network \
               and a service of their own."
            .to_owned(),
        notes: vec![format!(
            "{BURSTS} bursts of 10 requests, one every {}{}, {}, over an emulated link with a round \
             trip of 4 ms; X25519MLKEM768.",
            budget.choose("0.5 s", "5 s"),
            budget.choose(", a tenth of the published times", ""),
            repetitions_of(&results)
        )],
        problems: results.problems.clone(),
        results: Some(Box::new(results)),
        ..Section::begin(experiment)
    })
}

fn limit_ms(cell: &CellResult) -> u64 {
    cell.cell.params.get("idle_timeout").copied().unwrap_or(0)
}

fn ours(results: &Results) -> ValueTable {
    let columns = [("connections", ""), ("median latency", "ms"), ("p99", "ms")];
    let mut table = ValueTable::new("Here", "idle limit", &columns);
    for result in &results.cells {
        let own = Some(result);
        let connections = of_each(own, |repetition| Some(repetition.completed() as f64));
        let ms = |metric| Value::from(figure(own, metric).map(|us| scaled(us, 1e-3)));
        let limit = limit_ms(result);
        let name = if limit.is_multiple_of(1000) {
            format!("{} s", limit / 1000)
        } else {
            format!("{limit} ms")
        };
        let latencies = [ms("request_p50_us"), ms("request_p99_us")];
        table.push(name, std::iter::once(connections.into()).chain(latencies));
    }
    table
}

fn finding(results: &Results) -> Finding {
    let of = |cell: Option<&CellResult>| {
        let latency = figure(cell, "request_p50_us")?.median / 1e3;
        let connections = of_each(cell, |repetition| Some(repetition.completed() as f64))?;
        Some((connections.median, latency))
    };
    let short = results.cells.iter().min_by_key(|cell| limit_ms(cell));
    let long = results.cells.iter().max_by_key(|cell| limit_ms(cell));
    let (Some((made, new)), Some((kept, reused))) = (of(short), of(long)) else {
        return Finding::unknown("an idle limit has no figures");
    };
    let more = paired(short, long, |short, long| {
        Some(short.completed() as f64 / long.completed() as f64)
    });
    let slower = ratio(short, long, "request_p50_us");
    let (Some(more), Some(slower)) = (more, slower) else {
        return Finding::unknown("no turn has both limits");
    };
    let published = SHORT.1 / LONG_MS;
    Finding::of(
        Verdict::at_least(more, 5.0).and(Verdict::at_least(slower, 1.5)),
        format!(
            "Shorter than the pause the idle limit makes {made:.0} connections, longer {kept:.0}; \
             requests take {} and {} ms, {:.1} times as long (published {:.1} times).",
            three_digits(new),
            three_digits(reused),
            new / reused,
            published
        ),
    )
}

#[cfg(test)]
mod tests {
    use super::{finding, ours};
    use crate::experiments::reproduce::Verdict;
    use crate::experiments::reproduce::fixed::{cell, results, with_connections};
    use crate::report::results::Results;

    fn measured(short: (u64, f64), long: (u64, f64)) -> Results {
        let cell = |limit, (connections, latency): (u64, f64)| {
            let metrics: [(&str, &[f64]); 1] = [("request_p50_us", &[latency; 3])];
            let cell = cell(
                hybriq::Group::X25519MLKEM768,
                &[("idle_timeout", limit)],
                &metrics,
            );
            with_connections(cell, connections)
        };
        results(vec![cell(1000, short), cell(10_000, long)])
    }

    #[test]
    fn connections_that_outlast_the_pause_are_fewer_and_faster() {
        let verdict = |short, long| finding(&measured(short, long)).verdict;
        assert_eq!(verdict((100, 20_300.0), (10, 5900.0)), Verdict::Agrees);
        assert_eq!(verdict((100, 20_300.0), (60, 5900.0)), Verdict::Differs);
        assert_eq!(verdict((100, 6000.0), (10, 5900.0)), Verdict::Differs);
        assert_eq!(finding(&results(Vec::new())).verdict, Verdict::Unknown);
    }

    #[test]
    fn limits_are_named_in_seconds() {
        let table = ours(&measured((100, 20_300.0), (10, 5900.0)));
        assert_eq!(table.rows[0].name, "1 s");
        assert_eq!(table.rows[1].figures[0].parts().0, "10");
    }
}
