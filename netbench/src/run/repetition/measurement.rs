//! The processes of a repetition while they measure, and their reports.

use std::collections::BTreeMap;
use std::time::Duration;

use tokio::time::{Instant as Deadline, timeout, timeout_at};

use crate::engine::{FromClient, FromServer, Progress, ServerReport, ToClient, ToServer};
use crate::report::merge::combine::{add_simultaneous, combine};
use crate::report::results::Repetition;
use crate::run::live::interrupt::{INTERRUPTED, Interrupt};
use crate::run::place::processes::{Processes, Received};
use crate::system::failure::Failure;
use crate::system::machine::Machine;

/// Outcome of a repetition.
pub(crate) struct Measured {
    pub(crate) repetition: Repetition,
    /// First failed connection at the server, as text.
    pub(crate) server_error: Option<String>,
    /// Machines of servers on other hosts.
    pub(crate) servers: Vec<Machine>,
}

/// Time for reports after the last connection's end.
pub(crate) const REPORT: Duration = Duration::from_secs(10);

/// Processes while they measure.
pub(crate) struct Measurement<'a> {
    processes: &'a mut Processes,
    /// Time without any success after which the run is given up.
    patience: Duration,
    /// Additional time in which servers report.
    of_servers: Duration,
    progress: BTreeMap<usize, Progress>,
    clients: BTreeMap<usize, Repetition>,
    servers: Vec<ServerReport>,
}

impl<'a> Measurement<'a> {
    pub(crate) fn new(
        processes: &'a mut Processes,
        patience: Duration,
        of_servers: Duration,
    ) -> Self {
        Self {
            processes,
            patience,
            of_servers,
            progress: BTreeMap::new(),
            clients: BTreeMap::new(),
            servers: Vec::new(),
        }
    }

    /// Listens until every client has reported.
    pub(crate) async fn watch(
        &mut self,
        interrupt: &Interrupt,
        mut show: impl FnMut(&Progress),
    ) -> Result<(), Failure> {
        let mut succeeded = 0;
        let mut deadline = Deadline::now() + self.patience;
        while self.clients.len() < self.processes.clients.len() {
            let received = tokio::select! {
                received = timeout_at(deadline, self.processes.next()) => {
                    received.map_err(|_| self.stalled())??
                }
                () = interrupt.asked() => return Err(INTERRUPTED.into()),
            };
            self.note(received)?;
            let all = total(self.progress.values());
            let now = self.successes();
            if now > succeeded {
                succeeded = now;
                deadline = Deadline::now() + self.patience;
            }
            show(&all);
        }
        Ok(())
    }

    fn note(&mut self, received: Received) -> Result<(), Failure> {
        match received {
            Received::Client(index, FromClient::Progress(progress)) => {
                self.progress.insert(index, progress);
            }
            Received::Client(index, FromClient::Report(report)) => {
                self.clients.insert(index, *report);
            }
            Received::Server(FromServer::Report(report)) => self.servers.push(*report),
            _ => return Err(out_of_turn()),
        }
        Ok(())
    }

    /// Returns a number that grows with every success.
    fn successes(&self) -> u64 {
        let each = self.progress.values().map(|progress| {
            let moving = progress.sample.bytes_received + progress.sample.bytes_sent > 0;
            let at = if moving {
                progress.sample.at_ms as u64
            } else {
                0
            };
            progress.connections.saturating_sub(progress.failures) + progress.requests + at
        });
        each.sum()
    }

    fn stalled(&self) -> Failure {
        let failed: u64 = self
            .progress
            .values()
            .map(|progress| progress.failures)
            .sum();
        format!(
            "nothing has succeeded for {:?}, {failed} connections failed: does the server answer?",
            self.patience
        )
        .into()
    }

    /// Ends everything in progress, and combines the reports.
    pub(crate) async fn finish(mut self, drain: Duration) -> Measured {
        if self.is_waiting_for_clients() {
            for client in &mut self.processes.clients {
                client.tell_if_there(&ToClient::Stop).await;
            }
            let _ = timeout(drain + REPORT, self.await_clients()).await;
        }
        let reports = self.clients.values();
        let ended: u64 = reports
            .map(|client| client.completed() + client.failed())
            .sum();
        let after = match self.processes.servers.len() {
            1 => ended,
            _ => 0,
        };
        for server in &mut self.processes.servers {
            server.tell_if_there(&ToServer::Stop { after }).await;
        }
        let _ = timeout(drain + REPORT + self.of_servers, self.await_servers()).await;
        let missing = self.processes.servers.len() - self.servers.len();
        let server_error = self
            .servers
            .iter()
            .find_map(|report| report.first_error.clone());
        let lacks = self.servers.iter().find_map(|report| report.lacks.clone());
        let servers = self.servers.into_iter().map(|report| report.process);
        let mut repetition = combine(self.clients.into_values().collect(), servers.collect());
        let no_report = || "the server did not report".to_owned();
        let lacks = lacks.or_else(|| (missing > 0).then(no_report));
        repetition.error = repetition.error.take().or(lacks);
        Measured {
            repetition,
            server_error,
            servers: Vec::new(),
        }
    }

    fn is_waiting_for_clients(&self) -> bool {
        let mut clients = self.processes.clients.iter().enumerate();
        clients.any(|(index, client)| !client.is_gone && !self.clients.contains_key(&index))
    }

    async fn await_clients(&mut self) -> Result<(), Failure> {
        while self.is_waiting_for_clients() {
            // The loss of one must not keep the others from reporting.
            if let Ok(received) = self.processes.next().await {
                self.note(received)?;
            }
        }
        Ok(())
    }

    async fn await_servers(&mut self) -> Result<(), Failure> {
        let there = |processes: &Processes| {
            let servers = processes.servers.iter();
            servers.filter(|server| !server.is_gone).count()
        };
        while self.servers.len() < there(self.processes) {
            if let Ok(received) = self.processes.next().await {
                self.note(received)?;
            }
        }
        Ok(())
    }
}

/// Returns the failure of a process that sends something unexpected.
pub(crate) fn out_of_turn() -> Failure {
    "a process spoke out of turn".into()
}

/// Returns the progress of all clients. Percentiles are those of the slowest client.
fn total<'a>(clients: impl Iterator<Item = &'a Progress>) -> Progress {
    let mut sum = Progress {
        of: Some(0),
        share: Some(1.0),
        ..Progress::default()
    };
    for client in clients {
        sum.connections += client.connections;
        sum.of = sum.of.zip(client.of).map(|(a, b)| a + b);
        sum.requests += client.requests;
        sum.failures += client.failures;
        sum.share = sum.share.zip(client.share).map(|(a, b)| a.min(b));
        sum.sample.lasted_ms = client.sample.lasted_ms.max(sum.sample.lasted_ms);
        add_simultaneous(&mut sum.sample, &client.sample);
        for (worst, own) in [
            (&mut sum.handshake_p50_us, client.handshake_p50_us),
            (&mut sum.handshake_p99_us, client.handshake_p99_us),
            (&mut sum.request_p50_us, client.request_p50_us),
            (&mut sum.request_p99_us, client.request_p99_us),
        ] {
            *worst = worst.max(own);
        }
    }
    sum
}
