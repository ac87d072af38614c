//! One repetition of one cell: fresh processes, a warm-up, a measurement.

pub(super) mod measurement;

use std::net::SocketAddr;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use tokio::time::{Instant as Deadline, timeout, timeout_at};

use self::measurement::{Measured, Measurement, REPORT, out_of_turn};
use super::live::interrupt::{INTERRUPTED, Interrupt};
use super::matrix::waits::{servers, wait_for};
use super::place::processes::{Processes, Received};
use super::place::{Elsewhere, Place};
use crate::drivers::{Certificates, Setup, Transport};
use crate::engine::{ClientSpec, FromClient, FromServer, Progress, ServerSpec, ToClient, ToServer};
use crate::scenario::Scenario;
use crate::scenario::axes::Cell;
use crate::system::failure::Failure;
use crate::system::foreign::Meter;
use crate::system::machine::Machine;

/// Settings of the processes of a cell.
pub(super) struct Task<'a> {
    pub(super) cell: &'a Cell,
    pub(super) scenario: &'a Scenario,
    pub(super) certificates: &'a Certificates,
    pub(super) transport: &'a Transport,
    pub(super) machine: &'a Machine,
    pub(super) place: &'a Place,
    /// Number of processes for each client of the scenario.
    pub(super) clients: usize,
    /// Seed of the link's random losses and delays.
    pub(super) seed: u64,
    pub(super) started: Instant,
    pub(super) interrupt: &'a Interrupt,
}

/// Time and place of the start of a measurement.
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

impl Task<'_> {
    /// Measures; fails if nothing was measured. Measurements before a failure are returned with the
    /// failure.
    pub(super) async fn run(&self, progress: impl FnMut(&Progress)) -> Result<Measured, Failure> {
        let mut processes = Processes::default();
        let begun = tokio::select! {
            prepared = self.prepare(&mut processes) => prepared?,
            () = self.interrupt.asked() => return Err(INTERRUPTED.into()),
        };
        let others = Meter::start();
        let patience = wait_for(self.scenario);
        let mut measurement = Measurement::new(&mut processes, patience, self.place.patience());
        let error = measurement.watch(self.interrupt, progress).await.err();
        let other_cores = others.and_then(|others| others.cores());
        let mut measured = measurement.finish(self.scenario.phases.drain).await;
        let repetition = &mut measured.repetition;
        repetition.other_cores = other_cores;
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
            repetition.metrics = repetition.derive_metrics();
        }
        measured.servers = begun
            .servers
            .into_iter()
            .map(|server| server.machine)
            .collect();
        Ok(measured)
    }

    /// Starts all processes, warms them up, and begins to measure; returns the start.
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
        // With several servers, the number of connections of each is unknown.
        let after = if addresses.len() == 1 { connections } else { 0 };
        processes.tell_servers(&ToServer::Measure { after }).await?;
        for _ in 0..processes.servers.len() {
            match timeout(REPORT + self.place.patience(), processes.next())
                .await
                .map_err(|_| silent())??
            {
                Received::Server(FromServer::Measuring) => {}
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

    /// Lets the clients warm up; returns the number of connections.
    async fn warm_up(&self, processes: &mut Processes) -> Result<u64, Failure> {
        processes.tell_clients(&ToClient::WarmUp).await?;
        let limit = self.scenario.phases.warm_up.time.unwrap_or_default()
            + self.scenario.phases.drain
            + wait_for(self.scenario);
        let deadline = Deadline::now() + limit;
        let mut sum = 0;
        let mut ready = 0;
        while ready < processes.clients.len() {
            let received = timeout_at(deadline, processes.next()).await.map_err(|_| {
                format!("the warm-up did not end within {limit:?}: does the server answer?")
            })??;
            match received {
                Received::Client(_, FromClient::Ready { connections }) => {
                    ready += 1;
                    sum += connections;
                }
                Received::Client(_, FromClient::Progress(_)) => {}
                _ => return Err(out_of_turn()),
            }
        }
        Ok(sum)
    }

    fn server_spec(&self) -> ServerSpec {
        ServerSpec {
            core: self.server_core(),
            listen: self.place.listen(),
            setup: self.setup(Certificates {
                client_key: String::new(),
                client_chain: String::new(),
                ..self.certificates.clone()
            }),
            scenario: self.scenario.clone(),
        }
    }

    /// Returns the core of a server; one with several workers is free to use all.
    fn server_core(&self) -> Option<usize> {
        match self.cell.workers {
            1 => self.place.server_core(self.machine),
            _ => None,
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

/// Returns the length of samples: a tenth of a second, or a second if there are enough.
fn sample_ms(measure: Option<Duration>) -> u64 {
    match measure {
        Some(lasts) if lasts >= Duration::from_mins(1) => 1000,
        _ => 100,
    }
}

fn silent() -> Failure {
    format!("the server did not answer within {REPORT:?}").into()
}
