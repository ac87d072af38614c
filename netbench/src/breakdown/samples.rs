//! What the handshakes of one side took, part by part.

use std::time::Duration;

use hybriq::tls::Side;

use super::handshake::{Record, Timed};
use super::plan::Plan;
use super::recorder::Operation;
use crate::results::{Breakdown, Part, Summary};

/// What one side's handshakes took.
#[derive(Default)]
pub(super) struct Samples {
    messages: Vec<Row>,
    operations: Vec<Row>,
    totals: Vec<f64>,
}

/// One part: how often in a handshake, and of each handshake the bytes and the time.
struct Row {
    name: String,
    count: usize,
    bytes: Vec<f64>,
    us: Vec<f64>,
}

impl Samples {
    pub(super) fn add_messages(&mut self, record: &Record) {
        for (index, row) in sums(&record.parts).into_iter().enumerate() {
            // A part that others lacked stands where it came.
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

    /// Without what timing itself costs.
    pub(super) fn add_operations(&mut self, record: &Record, cost: Duration) {
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

    pub(super) fn breakdown(mut self, plan: &Plan, side: Side) -> Breakdown {
        let order = |row: &Row| Operation::ALL.iter().position(|it| it.name() == row.name);
        self.operations.sort_by_key(order);
        Breakdown {
            side: if side.is_client() { "client" } else { "server" }.to_owned(),
            provider: plan.provider.name().to_owned(),
            group: plan.group.to_string(),
            suite: plan.suite.to_string(),
            certificate: plan.certificate_name(),
            mode: plan.mode.name().to_owned(),
            messages: self.messages.into_iter().map(Row::part).collect(),
            operations: self.operations.into_iter().map(Row::part).collect(),
            total_us: summary(self.totals),
        }
    }
}

/// The messages of one handshake, those of the same name together.
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
            bytes: summary(self.bytes).median as u64,
            us: summary(self.us),
        }
    }
}

/// The median, and the order statistics that bound it with 95 % (by the normal approximation of
/// the binomial distribution).
pub(super) fn summary(mut values: Vec<f64>) -> Summary {
    values.sort_by(f64::total_cmp);
    let n = values.len();
    let at = |rank: f64| {
        let rank = (rank.max(0.0) as usize).min(n.saturating_sub(1));
        values.get(rank).copied().unwrap_or_default()
    };
    let (middle, spread) = (n as f64 / 2.0, 0.98 * (n as f64).sqrt());
    let median = if n % 2 == 0 {
        f64::midpoint(at(middle - 1.0), at(middle))
    } else {
        at(middle)
    };
    Summary {
        median,
        low: at((middle - spread).floor()),
        high: at((middle + spread).ceil()),
        n: n as u64,
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{summary, sums};
    use crate::breakdown::handshake::Timed;

    #[test]
    fn the_median_lies_within_its_interval() {
        let odd = summary((1..=101).rev().map(f64::from).collect());
        assert_eq!((odd.median, odd.n), (51.0, 101));
        assert!(odd.low < 51.0 && odd.high > 51.0 && odd.low > 35.0 && odd.high < 67.0);
        assert_eq!(summary(vec![1.0, 2.0, 3.0, 4.0]).median, 2.5);
        assert_eq!(summary(vec![7.0]).median, 7.0);
        assert_eq!(summary(Vec::new()).n, 0);
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
