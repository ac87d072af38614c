//! Many handshakes of one kind, and the medians of their parts.

use std::time::Duration;

use hybriq::tls::Side;

use super::handshake::{self, Record, Timed};
use super::plan::{Ends, Plan};
use super::recorder::{Operation, Watch, cost_of_timing};
use super::timed;
use crate::Failure;
use crate::drivers::Certificates;
use crate::results::{Breakdown, Part, Summary};

/// A ticket is used once, and not every handshake gives a new one: at most one in between does.
const ATTEMPTS: usize = 2;

/// Measures one kind of handshake, after a tenth as many to warm up.
pub(crate) fn measure(
    plan: &Plan,
    certificates: &Certificates,
    iterations: usize,
) -> Result<Vec<Breakdown>, Failure> {
    let cost = cost_of_timing();
    let mut breakdowns = Vec::new();
    for ends in plan.ends(certificates)? {
        let mut samples: Vec<_> = ends.measured.iter().map(|_| Samples::default()).collect();
        for _ in 0..iterations.div_ceil(10) {
            once(plan, &ends, Watch::Messages)?;
        }
        for _ in 0..iterations {
            // Both in turn, so that a disturbance meets them alike.
            let messages = once(plan, &ends, Watch::Messages)?;
            let operations = once(plan, &ends, Watch::Operations)?;
            for (side, samples) in ends.measured.iter().zip(&mut samples) {
                samples.add_messages(of(*side, &messages));
                samples.add_operations(of(*side, &operations), cost);
            }
        }
        for (side, samples) in ends.measured.iter().zip(samples) {
            breakdowns.push(samples.breakdown(plan, *side));
        }
    }
    Ok(breakdowns)
}

fn of(side: Side, (client, server): &(Record, Record)) -> &Record {
    match side {
        Side::Client => client,
        Side::Server => server,
    }
}

/// One handshake of that kind.
pub(super) fn once(plan: &Plan, ends: &Ends, watch: Watch) -> Result<(Record, Record), Failure> {
    for _ in 0..ATTEMPTS {
        if plan.mode.shares_ahead {
            timed::make_ahead(plan.group)?;
        }
        let records = handshake::run(&*ends.client, &*ends.server, plan.mode.psk, watch)?;
        timed::forget_ahead();
        for record in [&records.0, &records.1] {
            let found = (record.negotiated.group, record.negotiated.suite);
            if found != (Some(plan.group), Some(plan.suite)) {
                let (group, suite) = (plan.group, plan.suite);
                return Err(format!("asked for {group} with {suite}, got {found:?}").into());
            }
        }
        if records.0.negotiated.resumed == plan.mode.psk {
            return Ok(records);
        }
    }
    Err("the server gave no ticket that resumes; use --resumption full".into())
}

/// What one side's handshakes took.
#[derive(Default)]
struct Samples {
    messages: Vec<Row>,
    operations: Vec<Row>,
    totals: Vec<f64>,
}

struct Row {
    name: String,
    count: usize,
    bytes: Vec<f64>,
    us: Vec<f64>,
}

impl Samples {
    fn add_messages(&mut self, record: &Record) {
        for (at, sum) in sums(&record.parts).into_iter().enumerate() {
            let known = self.messages.iter().position(|row| row.name == sum.name);
            match known {
                Some(known) => self.messages[known].add(&sum),
                None => self.messages.insert(at.min(self.messages.len()), sum),
            }
        }
        self.totals.push(record.time().as_secs_f64() * 1e6);
    }

    /// Without what timing itself costs.
    fn add_operations(&mut self, record: &Record, cost: Duration) {
        for (operation, tally) in Operation::ALL.iter().zip(&record.operations) {
            if tally.count == 0 {
                continue;
            }
            let time = tally.time.saturating_sub(cost * tally.count);
            let row = Row {
                name: operation.name().to_owned(),
                count: tally.count as usize,
                bytes: Vec::new(),
                us: vec![time.as_secs_f64() * 1e6],
            };
            match self.operations.iter_mut().find(|it| it.name == row.name) {
                Some(known) => known.add(&row),
                None => self.operations.push(row),
            }
        }
    }

    fn breakdown(mut self, plan: &Plan, side: Side) -> Breakdown {
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
        let us = part.time.as_secs_f64() * 1e6;
        match rows.iter_mut().find(|row| row.name == part.name) {
            Some(row) => {
                row.count += 1;
                row.bytes[0] += part.bytes as f64;
                row.us[0] += us;
            }
            None => rows.push(Row {
                name: part.name.clone(),
                count: 1,
                bytes: vec![part.bytes as f64],
                us: vec![us],
            }),
        }
    }
    rows
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
    let upper = at(middle);
    let median = if n % 2 == 0 {
        f64::midpoint(at(middle - 1.0), upper)
    } else {
        upper
    };
    Summary {
        median,
        low: at((middle - spread).floor()),
        high: at((middle + spread).ceil()),
        n: n as u64,
    }
}
