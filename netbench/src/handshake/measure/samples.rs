//! Times of one side's handshakes, part by part.

use std::time::Duration;

use hybriq::tls::Side;

use crate::handshake::exchange::handshake::{Record, Timed};
use crate::handshake::plan::Plan;
use crate::handshake::timed::recorder::Operation;
use crate::report::results;
use crate::report::results::{Breakdown, Part, Summary};

/// Minimum number of values for a median: up to two may be disturbed, because an interruption takes
/// longer than many handshakes.
const LEAST: usize = 5;

/// Number of turns of each kind. Between turns the caches fill with the data of other kinds.
pub(crate) const TURNS: usize = 20;

/// Times of one side's handshakes.
#[derive(Default)]
pub(crate) struct Samples {
    messages: Vec<Row>,
    operations: Vec<Row>,
    totals: Vec<f64>,
}

/// One part: its number in a handshake, and its bytes and time in each handshake.
struct Row {
    name: String,
    count: usize,
    bytes: Vec<f64>,
    us: Vec<f64>,
}

impl Samples {
    pub(crate) fn add_messages(&mut self, record: &Record) {
        for (index, row) in sums(&record.parts).into_iter().enumerate() {
            // A part that other handshakes lack keeps its place.
            match self
                .messages
                .iter_mut()
                .find(|known| known.name == row.name)
            {
                Some(known) => known.add(&row),
                None => self.messages.insert(index.min(self.messages.len()), row),
            }
        }
        self.totals.push(micros(record.time()));
    }

    /// Adds the operations of a handshake, without the cost of timing them.
    pub(crate) fn add_operations(&mut self, record: &Record, cost: Duration) {
        for (operation, tally) in Operation::ALL.iter().zip(&record.operations) {
            if tally.count == 0 {
                continue;
            }
            let row = Row {
                name: operation.name().to_owned(),
                count: tally.count as usize,
                bytes: Vec::new(),
                us: vec![micros(tally.time.saturating_sub(cost * tally.count))],
            };
            match self
                .operations
                .iter_mut()
                .find(|known| known.name == row.name)
            {
                Some(known) => known.add(&row),
                None => self.operations.push(row),
            }
        }
    }

    pub(crate) fn breakdown(mut self, plan: &Plan, side: Side) -> Breakdown {
        let order = |row: &Row| Operation::ALL.iter().position(|it| it.name() == row.name);
        self.operations.sort_by_key(order);
        Breakdown {
            side: match side {
                Side::Client => results::Side::Client,
                Side::Server => results::Side::Server,
            },
            provider: plan.provider,
            group: plan.group,
            suite: plan.suite,
            certificate: plan.certificate_name(),
            mode: plan.mode.name().to_owned(),
            messages: self.messages.into_iter().map(Row::part).collect(),
            operations: self.operations.into_iter().map(Row::part).collect(),
            total_us: summary(&self.totals),
        }
    }
}

/// Returns the messages of one handshake, those of the same name added up.
fn sums(parts: &[Timed]) -> Vec<Row> {
    let mut rows: Vec<Row> = Vec::new();
    for part in parts {
        let (bytes, us) = (part.bytes as f64, micros(part.time));
        match rows.iter_mut().find(|row| row.name == part.name) {
            Some(row) => {
                row.count += 1;
                row.bytes.iter_mut().for_each(|sum| *sum += bytes);
                row.us.iter_mut().for_each(|sum| *sum += us);
            }
            None => rows.push(Row {
                name: part.name.clone(),
                count: 1,
                bytes: vec![bytes],
                us: vec![us],
            }),
        }
    }
    rows
}

fn micros(time: Duration) -> f64 {
    time.as_secs_f64() * 1e6
}

impl Row {
    fn add(&mut self, other: &Self) {
        self.bytes.extend(&other.bytes);
        self.us.extend(&other.us);
    }

    fn part(self) -> Part {
        Part {
            name: self.name,
            count: self.count as f64,
            bytes: median(&self.bytes).unwrap_or_default() as u64,
            us: summary(&self.us),
        }
    }
}

/// Summarises values in the order of measurement by the medians of the turns, so that outliers
/// count little and a machine that changes its speed widens the interval.
pub(crate) fn summary(values: &[f64]) -> Summary {
    let turn = values.len().div_ceil(TURNS).max(LEAST);
    let medians: Vec<f64> = values.chunks(turn).filter_map(median).collect();
    Summary::of(&medians).unwrap_or_default()
}

fn median(values: &[f64]) -> Option<f64> {
    Summary::of(values).map(|summary| summary.median)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{TURNS, summary, sums};
    use crate::handshake::exchange::handshake::Timed;

    #[test]
    fn a_value_out_of_line_counts_for_little() {
        let mut values = vec![10.0; 200];
        values[77] = 1e6;
        let found = summary(&values);
        assert_eq!((found.median, found.low, found.high), (10.0, 10.0, 10.0));
        assert_eq!(found.n, TURNS as u64);
        let mut few = vec![10.0; 20];
        few[3] = 1e6;
        few[4] = 1e6;
        assert_eq!((summary(&few).high, summary(&few).n), (10.0, 4));
    }

    #[test]
    fn a_change_of_pace_widens_the_interval() {
        let values: Vec<f64> = (0..200)
            .map(|at| if at < 80 { 10.0 } else { 12.0 })
            .collect();
        let found = summary(&values);
        assert!(found.low < 11.5 && found.high > 12.5, "{found:?}");
        assert_eq!(summary(&[7.0]).n, 1);
        assert_eq!(summary(&[]).n, 0);
    }

    #[test]
    fn messages_of_one_name_are_added_up() {
        let ticket = |us| Timed {
            name: "NewSessionTicket".to_owned(),
            bytes: 200,
            time: Duration::from_micros(us),
        };
        let rows = sums(&[ticket(3), ticket(4)]);
        assert_eq!(rows.len(), 1);
        assert_eq!((rows[0].count, rows[0].bytes[0]), (2, 400.0));
        assert!((rows[0].us[0] - 7.0).abs() < 1e-9);
    }
}
