//! A run: pairs of processes, and the rounds they take turns in.

use std::process::ExitCode;

use hybriq::Backend;

use crate::Failure;
use crate::certificate::Certificate;
use crate::cli::{Bulk, Common, PerGroup, RequestResponse};
use crate::groups::{self, Plan, Selection};
use crate::machine::Machine;
use crate::message::{ClientSpec, ServerSpec, Settings, Work};
use crate::pair::{Pair, Round};
use crate::progress::Progress;
use crate::report::{Report, Row};
use crate::terminal::{complain, print};

/// Groups take turns this often, so that what else happens on the machine, and the temperature
/// of its cores, meet all of them alike.
const ROUNDS: u64 = 10;

/// Connections before the first round that are not counted, and before each of the others: the
/// caches belong to another process by then.
const WARM_UP: u64 = 50;
const WARM_UP_AGAIN: u64 = 5;

/// What to measure, whatever the scenario.
struct Run {
    backend: Backend,
    selection: Selection,
    work: Work,
    connections: u64,
    concurrency: u32,
    common: Common,
    certificate: Certificate,
    machine: Machine,
}

/// A pair and what it has measured so far. A pair that failed is gone, its last row stays.
struct Lane {
    pair: Option<Pair>,
    row: Option<Row>,
}

/// Runs a scenario and prints its table. What was measured before something failed is kept.
pub(crate) async fn run(scenario: PerGroup) -> Result<ExitCode, Failure> {
    let run = Run::new(scenario)?;
    let plans = run.selection.plans(run.backend, |group, reason| {
        complain(&format!("{group} left out: {reason}"));
    })?;
    if plans.len() > 1 && run.common.listen.port() != 0 {
        return Err("each group has its own server: with several, --listen takes port 0".into());
    }
    let mut report = Report::new(run.work, run.concurrency, run.machine.clone());
    run.write_json(&report)?;
    let mut lanes = run.start(plans).await?;
    print(|out| report.print_head(out))?;
    let progress = run.progress(lanes.len() as u64);
    for round in rounds(run.connections) {
        for lane in &mut lanes {
            lane.measure(round, &progress).await;
        }
        report.rows = lanes.iter().filter_map(|lane| lane.row.clone()).collect();
        run.write_json(&report)?;
    }
    drop(progress);
    print(|out| report.print_rows(out))?;
    for failure in report.failures() {
        complain(&failure);
    }
    let complete = lanes.iter().all(Lane::is_complete);
    Ok(if complete {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

/// Spreads the connections over the rounds.
fn rounds(total: u64) -> impl Iterator<Item = Round> {
    let count = ROUNDS.min(total);
    (0..count).map(move |index| {
        let connections = total / count + u64::from(index < total % count);
        let warm_up = match index {
            0 => WARM_UP.min(total.div_ceil(10)),
            _ => WARM_UP_AGAIN.min(connections.div_ceil(10)),
        };
        Round {
            warm_up,
            connections,
        }
    })
}

impl Lane {
    async fn measure(&mut self, round: Round, progress: &Progress) {
        let Some(pair) = &mut self.pair else {
            return;
        };
        progress.name(&pair.plan.group.to_string());
        match pair.round(round, |done| progress.set(done)).await {
            Ok(row) => self.row = Some(row),
            Err(failure) => {
                progress.say(&format!("{}: {failure}", pair.plan.group));
                self.pair = None;
            }
        }
        progress.advance(round.connections);
    }

    fn is_complete(&self) -> bool {
        self.pair.is_some() && self.row.as_ref().is_some_and(Row::is_complete)
    }
}

impl Run {
    fn new(scenario: PerGroup) -> Result<Self, Failure> {
        let (groups, work, connections, concurrency, common) = match scenario {
            PerGroup::RequestResponse(RequestResponse {
                groups,
                connections,
                concurrency,
                request_size: request,
                response_size: response,
                common,
            }) => {
                let work = Work::RequestResponse { request, response };
                (groups, work, connections, concurrency, common)
            }
            PerGroup::Bulk(Bulk {
                bytes,
                groups,
                common,
            }) => (groups, Work::Bulk { bytes }, 1, 1, common),
        };
        if common.listen.ip().is_unspecified() {
            let listen = common.listen;
            return Err(
                format!("{listen} is no address to connect to; give one, as 127.0.0.1:0").into(),
            );
        }
        Ok(Self {
            backend: groups::backend(&common.tls)?,
            selection: groups::parse(&groups)?,
            work,
            connections,
            concurrency,
            common,
            certificate: Certificate::make()?,
            machine: Machine::detect(),
        })
    }

    /// Starts a pair for each plan. Where none starts, the first failure stands for all.
    async fn start(&self, plans: Vec<Plan>) -> Result<Vec<Lane>, Failure> {
        let (mut lanes, mut failures) = (Vec::new(), Vec::new());
        for plan in plans {
            let group = plan.group;
            let pair = match self.pair(plan).await {
                Ok(pair) => Some(pair),
                Err(failure) => {
                    failures.push(format!("{group}: {failure}"));
                    None
                }
            };
            lanes.push(Lane { pair, row: None });
        }
        if lanes.iter().all(|lane| lane.pair.is_none()) {
            let first = failures.into_iter().next();
            return Err(first
                .unwrap_or_else(|| "no group to measure".to_owned())
                .into());
        }
        for failure in &failures {
            complain(failure);
        }
        Ok(lanes)
    }

    async fn pair(&self, plan: Plan) -> Result<Pair, Failure> {
        let settings = Settings {
            chain: self.certificate.chain.clone(),
            work: self.work,
            datagram_size: self.common.datagram_size,
        };
        let server = ServerSpec {
            core: self.machine.server_core,
            listen: self.common.listen,
            tls: plan.server.clone(),
            key: self.certificate.key.clone(),
            settings: settings.clone(),
        };
        let (group, tls) = (plan.group.0, plan.client.clone());
        Pair::start(plan, &server, |address| ClientSpec {
            core: self.machine.client_core,
            server: address,
            tls,
            group,
            concurrency: self.concurrency,
            settings,
        })
        .await
    }

    fn progress(&self, groups: u64) -> Progress {
        match self.work {
            Work::RequestResponse { .. } => {
                Progress::start(groups.saturating_mul(self.connections), 1, "connections")
            }
            Work::Bulk { bytes } => Progress::start(groups.saturating_mul(bytes), bytes, "bytes"),
        }
    }

    fn write_json(&self, report: &Report) -> Result<(), Failure> {
        match &self.common.json {
            Some(path) => report.write_json(path),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::rounds;

    #[test]
    fn rounds_make_all_connections_and_no_more() {
        for connections in [1, 2, 9, 10, 11, 999, 1000, 10_007] {
            let rounds: Vec<_> = rounds(connections).collect();
            assert!(rounds.len() <= 10);
            assert!(
                rounds
                    .iter()
                    .all(|round| round.connections > 0 && round.warm_up > 0)
            );
            let sum: u64 = rounds.iter().map(|round| round.connections).sum();
            assert_eq!(sum, connections);
        }
    }
}
