//! One repetition of one cell: fresh processes, a warm-up, a measurement.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use tokio::time::{Instant as Deadline, timeout, timeout_at};

use super::combine::{combine, total};
use super::interrupt::{INTERRUPTED, Interrupt};
use super::place::{Elsewhere, Place};
use super::processes::{Heard, Processes};
use super::waits::{servers, wait_for};
use crate::Failure;
use crate::axes::Cell;
use crate::drivers::{Certificates, Setup, Transport};
use crate::engine::{
    ClientSpec, FromClient, FromServer, Progress, ServerReport, ServerSpec, ToClient, ToServer,
};
use crate::machine::Machine;
use crate::results::Repetition;
use crate::scenario::Scenario;

/// What the processes of a cell are set up with.
pub(super) struct Task<'a> {
    pub(super) cell: &'a Cell,
    pub(super) scenario: &'a Scenario,
    pub(super) certificates: &'a Certificates,
    pub(super) transport: &'a Transport,
    pub(super) machine: &'a Machine,
    pub(super) place: &'a Place,
    /// Processes for each client of the scenario.
    pub(super) clients: usize,
    /// Of the link's chance.
    pub(super) seed: u64,
    pub(super) started: Instant,
    pub(super) interrupt: &'a Interrupt,
}

/// What came of it.
pub(super) struct Measured {
    pub(super) repetition: Repetition,
    /// The first connection that failed at the server, in words.
    pub(super) server_error: Option<String>,
    /// Of servers on other hosts.
    pub(super) servers: Vec<Machine>,
}

/// When a measurement began, and where.
struct Begun {
    started_ms: f64,
    unix_ms: f64,
    servers: Vec<Elsewhere>,
}

impl Begun {
    fn round(&self) -> Option<u64> {
        self.servers.first().map(|server| server.round)
    }
}

/// How long the end of the last connection may take to be reported.
const REPORT: Duration = Duration::from_secs(10);

impl Task<'_> {
    /// Measures. An error: nothing was. What was measured before something failed is returned with
    /// the failure.
    pub(super) async fn run(&self, progress: impl FnMut(&Progress)) -> Result<Measured, Failure> {
        let mut processes = Processes::default();
        let begun = tokio::select! {
            prepared = self.prepare(&mut processes) => prepared?,
            () = self.interrupt.asked() => return Err(INTERRUPTED.into()),
        };
        let patience = wait_for(self.scenario);
        let mut measurement = Measurement::new(&mut processes, patience, self.place.patience());
        let error = measurement.watch(self.interrupt, progress).await.err();
        let mut measured = measurement.finish(self.scenario.phases.drain).await;
        let repetition = &mut measured.repetition;
        repetition.started_ms = begun.started_ms;
        repetition.unix_ms = begun.unix_ms;
        repetition.round = self.place.fleet().and(begun.round());
        if let Some(error) = error {
            if repetition.completed() + repetition.failed() == 0 {
                return Err(error);
            }
            repetition.error = Some(error.to_string());
        }
        if repetition.error.is_none() || self.interrupt.is_asked() {
            repetition.metrics = repetition.figures();
        }
        measured.servers = begun
            .servers
            .into_iter()
            .map(|server| server.machine)
            .collect();
        Ok(measured)
    }

    /// Starts all processes, warms them up, and begins to measure; returns when.
    async fn prepare(&self, processes: &mut Processes) -> Result<Begun, Failure> {
        let (mut addresses, mut elsewhere) = (Vec::new(), Vec::new());
        let mut certificates = self.client_certificates();
        for index in 0..servers(self.scenario) {
            let spec = self.server_spec();
            let server = self.place.serve(index, &spec, &certificates).await?;
            processes.add_server(server.process);
            if let Some(server) = server.elsewhere {
                certificates = server.certificates.clone();
                elsewhere.push(server);
            }
            addresses.push(match self.cell.link.as_str() {
                "" => server.address,
                link => processes.link(link, self.seed, server.address).await?,
            });
        }
        for number in 0..self.scenario.clients.len() * self.clients {
            let client = self.place.client()?;
            let spec = self.client_spec(number, &addresses, &certificates);
            processes.drive(client, &spec).await?;
        }
        let connections = self.warm_up(processes).await?;
        // With several servers nobody knows how many connections went to each.
        let after = if addresses.len() == 1 { connections } else { 0 };
        processes.tell_servers(&ToServer::Measure { after }).await?;
        for _ in 0..processes.servers.len() {
            match timeout(REPORT + self.place.patience(), processes.next())
                .await
                .map_err(|_| silent())??
            {
                Heard::Server(FromServer::Measuring) => {}
                _ => return Err(out_of_turn()),
            }
        }
        let started_ms = self.started.elapsed().as_secs_f64() * 1e3;
        let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH);
        processes.tell_clients(&ToClient::Measure).await?;
        Ok(Begun {
            started_ms,
            unix_ms: since_1970.unwrap_or_default().as_secs_f64() * 1e3,
            servers: elsewhere,
        })
    }

    /// Has the clients do their warm-up; returns the connections it took.
    async fn warm_up(&self, processes: &mut Processes) -> Result<u64, Failure> {
        processes.tell_clients(&ToClient::WarmUp).await?;
        let limit = self.scenario.phases.warm_up.time.unwrap_or_default()
            + self.scenario.phases.drain
            + wait_for(self.scenario);
        let deadline = Deadline::now() + limit;
        let mut sum = 0;
        let mut ready = 0;
        while ready < processes.clients.len() {
            let heard = timeout_at(deadline, processes.next()).await.map_err(|_| {
                format!("the warm-up did not end within {limit:?}: does the server answer?")
            })??;
            match heard {
                Heard::Client(_, FromClient::Ready { connections }) => {
                    ready += 1;
                    sum += connections;
                }
                Heard::Client(_, FromClient::Progress(_)) => {}
                _ => return Err(out_of_turn()),
            }
        }
        Ok(sum)
    }

    fn server_spec(&self) -> ServerSpec {
        ServerSpec {
            core: self.place.server_core(self.machine),
            listen: self.place.listen(),
            setup: self.setup(Certificates {
                client_key: String::new(),
                client_chain: String::new(),
                ..self.certificates.clone()
            }),
            scenario: self.scenario.clone(),
        }
    }

    fn client_certificates(&self) -> Certificates {
        Certificates {
            server_key: String::new(),
            server_chain: String::new(),
            ..self.certificates.clone()
        }
    }

    fn client_spec(
        &self,
        number: usize,
        servers: &[SocketAddr],
        certificates: &Certificates,
    ) -> ClientSpec {
        ClientSpec {
            core: self.machine.core_of_client(number),
            servers: servers.to_vec(),
            setup: self.setup(certificates.clone()),
            scenario: self.scenario.clone(),
            client: number % self.scenario.clients.len().max(1),
            sample_ms: sample_ms(self.scenario.phases.measure),
        }
    }

    fn setup(&self, certificates: Certificates) -> Setup {
        Setup {
            cell: self.cell.clone(),
            certificates,
            transport: self.transport.clone(),
        }
    }
}

/// A tenth of a second, or a second where there are enough of them.
fn sample_ms(measure: Option<Duration>) -> u64 {
    match measure {
        Some(lasts) if lasts >= Duration::from_secs(60) => 1000,
        _ => 100,
    }
}

/// The processes while they measure.
struct Measurement<'a> {
    processes: &'a mut Processes,
    /// How long nothing may succeed.
    patience: Duration,
    /// How much longer servers may take to report.
    of_servers: Duration,
    progress: BTreeMap<usize, Progress>,
    clients: BTreeMap<usize, Repetition>,
    servers: Vec<ServerReport>,
}

impl<'a> Measurement<'a> {
    fn new(processes: &'a mut Processes, patience: Duration, of_servers: Duration) -> Self {
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
    async fn watch(
        &mut self,
        interrupt: &Interrupt,
        mut show: impl FnMut(&Progress),
    ) -> Result<(), Failure> {
        let mut succeeded = 0;
        let mut deadline = Deadline::now() + self.patience;
        while self.clients.len() < self.processes.clients.len() {
            let heard = tokio::select! {
                heard = timeout_at(deadline, self.processes.next()) => {
                    heard.map_err(|_| self.stalled())??
                }
                () = interrupt.asked() => return Err(INTERRUPTED.into()),
            };
            self.note(heard)?;
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

    fn note(&mut self, heard: Heard) -> Result<(), Failure> {
        match heard {
            Heard::Client(index, FromClient::Progress(progress)) => {
                self.progress.insert(index, progress);
            }
            Heard::Client(index, FromClient::Report(report)) => {
                self.clients.insert(index, *report);
            }
            Heard::Server(FromServer::Report(report)) => self.servers.push(*report),
            _ => return Err(out_of_turn()),
        }
        Ok(())
    }

    /// Grows whenever anything has succeeded.
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

    /// Has all that still goes on end, and sums up what there is.
    async fn finish(mut self, drain: Duration) -> Measured {
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
        let mut repetition = combine(self.clients.into_values().collect(), self.servers);
        if missing > 0 {
            repetition
                .error
                .get_or_insert_with(|| "the server did not report".to_owned());
        }
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
            // That one is gone must not keep the others from telling.
            if let Ok(heard) = self.processes.next().await {
                self.note(heard)?;
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
            if let Ok(heard) = self.processes.next().await {
                self.note(heard)?;
            }
        }
        Ok(())
    }
}

fn silent() -> Failure {
    format!("the server did not answer within {REPORT:?}").into()
}

fn out_of_turn() -> Failure {
    "a process spoke out of turn".into()
}
