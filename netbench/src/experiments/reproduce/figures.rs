//! Charts of each experiment.

use super::section::{Row, Section, Value};
use hybriq::Group;
use hybriq::tls::Suite;

use crate::report::charts::canvas::theme::Ink;
use crate::report::charts::figures;
use crate::report::charts::number::number;
use crate::report::charts::{Bar, Bars, Chart, Figure, Table};
use crate::report::results::{Breakdown, Results, Side};

/// Charts of each experiment, by their ids: those that show its subject.
const CHARTS: [(&str, &[&str]); 8] = [
    ("rate", &["rate", "time", "bytes"]),
    ("reuse", &["request-rate"]),
    ("latency", &["time", "bytes"]),
    ("pool", &["request-latency"]),
    ("idle-timeout", &["request-latency"]),
    ("resumption", &["time", "bytes"]),
    ("breakdown", &["handshake-messages"]),
    ("ml-dsa", &["handshake-messages"]),
];

/// Handshakes that are drawn: those of the published table, each way a handshake begins, and
/// today's group.
const DRAWN: (Suite, [Group; 3]) = (
    Suite::Aes128GcmSha256,
    [Group::SECP256R1, Group::X25519, Group::X25519MLKEM768],
);

/// Returns the charts of an experiment, in reading order.
pub(super) fn of(section: &Section) -> Vec<Figure> {
    if section.id == "algorithms" {
        return section
            .ours
            .first()
            .map(|table| exchanges(&table.rows))
            .into_iter()
            .collect();
    }
    let Some(results) = section.results.as_deref() else {
        return Vec::new();
    };
    let wanted = CHARTS.iter().find(|(id, _)| *id == section.id);
    let wanted = wanted.map_or(&[][..], |(_, charts)| *charts);
    let all = if section.id == "breakdown" {
        figures::all(&drawn(results))
    } else {
        figures::all(results)
    };
    let place = |figure: &Figure| wanted.iter().position(|id| *id == figure.id);
    let mut found: Vec<(usize, Figure)> = all
        .into_iter()
        .filter_map(|figure| Some((place(&figure)?, figure)))
        .collect();
    found.sort_by_key(|(place, _)| *place);
    found.into_iter().map(|(_, figure)| figure).collect()
}

fn drawn(results: &Results) -> Results {
    let is_drawn = |it: &&Breakdown| {
        let (suite, groups) = DRAWN;
        it.side == Side::Client && it.suite == suite && groups.contains(&it.group)
    };
    let all = results.breakdowns.iter();
    Results {
        breakdowns: all.filter(is_drawn).cloned().collect(),
        ..results.clone()
    }
}

/// Shows times instead of rates, because times of both ends add up.
fn exchanges(rows: &[Row]) -> Figure {
    let median = |value: Option<&Value>| match value {
        Some(Value::Measured(summary)) => Some(summary.median),
        Some(Value::Number(number)) => Some(*number),
        _ => None,
    };
    let mut bars = Vec::new();
    let mut table = Vec::new();
    for row in rows {
        let (Some(client), Some(server)) = (median(row.figures.get(1)), median(row.figures.get(2)))
        else {
            continue;
        };
        let us = [1e3 / client, 1e3 / server];
        table.push(
            [
                row.name.clone(),
                number(us[0]),
                number(us[1]),
                number(us[0] + us[1]),
            ]
            .to_vec(),
        );
        bars.push(Bar {
            heading: String::new(),
            name: row.name.clone(),
            values: us.to_vec(),
        });
    }
    let parts = ["client", "server"].into_iter().enumerate();
    Figure {
        id: "key-exchange".to_owned(),
        title: "Time of a key exchange".to_owned(),
        caption: "CPU time of both ends for one exchange, the inverse of the rates above."
            .to_owned(),
        table: Table {
            head: ["algorithm", "client, µs", "server, µs", "both, µs"]
                .map(str::to_owned)
                .into(),
            rows: table,
        },
        chart: Chart::Bars(Bars {
            title: "CPU time of one key exchange".to_owned(),
            unit: "µs",
            parts: parts
                .map(|(index, name)| (name.to_owned(), Ink::Part(index)))
                .collect(),
            rows: bars,
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::{Value, of};
    use crate::experiments::reproduce::experiments::ALL;
    use crate::experiments::reproduce::section::{Section, ValueTable};
    use crate::report::charts::Place;

    #[test]
    fn rates_of_key_exchanges_are_drawn_as_times() {
        let algorithms = ALL.iter().find(|it| it.id == "algorithms").unwrap();
        let columns = [("bytes", ""), ("client", "kops/s"), ("server", "kops/s")];
        let section = Section {
            ours: vec![
                ValueTable::new("Key exchange", "algorithm", &columns)
                    .row("X25519", [64.0, 20.0, 10.0])
                    .row("none", [Value::Number(1.0)]),
            ],
            ..Section::begin(algorithms)
        };
        let figures = of(&section);
        assert_eq!(figures.len(), 1);
        assert_eq!(figures[0].table.rows.len(), 1);
        assert_eq!(figures[0].table.rows[0][1..], ["50.0", "100", "150"]);
        assert!(figures[0].svg(Place::Wide).into_string().contains("X25519"));
    }

    #[test]
    fn an_experiment_that_came_to_nothing_has_no_charts() {
        assert!(ALL.iter().all(|it| of(&Section::begin(it)).is_empty()));
    }
}
