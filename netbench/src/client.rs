//! The client process.

use std::cell::RefCell;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::rc::Rc;
use std::time::{Duration, Instant};

use hybriq::tls::{Group, Suite, Trust};
use hybriq::{ClientConfig, Connection, ConnectionStats, Endpoint, TransportConfig};

use crate::certificate::SERVER_NAME;
use crate::measure::{CpuClock, Durations, Failures, Losses, Traffic};
use crate::message::{ClientReport, ClientSpec, FromClient, Settings, ToClient, Work};
use crate::pipe::{FromParent, tell};
use crate::{Failure, bulk, os};

/// The application protocol of both ends.
pub(crate) const ALPN: &str = "netbench";

/// A phase stops early after this many failures: what fails so often only costs timeouts.
const TOO_MANY_FAILURES: u64 = 10;

/// How often progress is told.
const PROGRESS: Duration = Duration::from_millis(100);

/// Reads its specification, warms up, and on the parent's word measures.
pub(crate) async fn drive() -> Result<(), Failure> {
    let mut parent = FromParent::open()?;
    let spec: ClientSpec = parent.expect().await?;
    if let Some(core) = spec.core {
        os::pin_to_core(core)?;
    }
    let driver = Rc::new(Driver::new(spec)?);

    let warm = Rc::clone(&driver).phase(driver.spec.warm_up).await?;
    if let Some(error) = warm.first_error {
        return Err(format!("in the warm-up: {error}").into());
    }
    answer(FromClient::Ready {
        warmed_up: warm.completed,
    })?;
    let ToClient::Go = parent.expect().await?;
    let report = Rc::clone(&driver).phase(driver.spec.connections).await?;
    answer(FromClient::Report(Box::new(report)))?;

    // The endpoint stays until the server has seen the last close.
    while parent.next::<ToClient>().await?.is_some() {}
    Ok(())
}

fn answer(message: FromClient) -> Result<(), Failure> {
    Ok(tell(&Ok::<_, String>(message))?)
}

/// What both ends' transports are set to.
pub(crate) fn transport(settings: &Settings) -> TransportConfig {
    let config = TransportConfig::new();
    match settings.datagram_size {
        Some(bytes) => config.datagram_size(bytes),
        None => config,
    }
}

struct Driver {
    endpoint: Endpoint,
    request: Vec<u8>,
    pattern: bulk::Pattern,
    spec: ClientSpec,
}

/// One connection, measured.
struct Sample {
    handshake: Duration,
    exchange: Duration,
    hello_retry: bool,
    suite: Suite,
    stats: ConnectionStats,
}

impl Driver {
    fn new(spec: ClientSpec) -> Result<Self, Failure> {
        // Without resumption every handshake is a full one.
        let config = ClientConfig::new()
            .alpn([ALPN])
            .trust(Trust::roots_pem(spec.settings.chain.as_bytes())?)
            .tls(spec.tls.backend()?)
            .key_exchange(spec.tls.policy.key_exchange())
            .without_resumption()
            .transport(transport(&spec.settings));
        let request = match spec.settings.work {
            Work::RequestResponse { request, .. } => vec![0xa5; request.try_into()?],
            Work::Bulk { .. } => Vec::new(),
        };
        Ok(Self {
            endpoint: Endpoint::builder()
                .client(config)
                .bind(any_port(spec.server))?,
            request,
            pattern: bulk::Pattern::new(),
            spec,
        })
    }

    /// Makes so many connections, `concurrency` of them at once.
    async fn phase(self: Rc<Self>, connections: u64) -> Result<ClientReport, Failure> {
        let phase = Rc::new(RefCell::new(Phase::start(connections, &self.endpoint)?));
        let lanes: Vec<_> = (0..u64::from(self.spec.concurrency).min(connections))
            .map(|_| {
                let (driver, phase) = (Rc::clone(&self), Rc::clone(&phase));
                tokio::task::spawn_local(async move { driver.lane(&phase).await })
            })
            .collect();
        for lane in lanes {
            lane.await?;
        }
        phase.borrow().report(&self.endpoint)
    }

    /// Makes one connection after the other until none is left to make.
    async fn lane(&self, phase: &RefCell<Phase>) {
        while phase.borrow_mut().take() {
            let outcome = self.connection(phase).await;
            phase.borrow_mut().record(outcome);
        }
    }

    async fn connection(&self, phase: &RefCell<Phase>) -> Result<Sample, Failure> {
        let start = Instant::now();
        let connection = self.endpoint.connect(self.spec.server, SERVER_NAME).await?;
        let handshake = start.elapsed();
        self.exchange(&connection, phase).await?;
        let exchange = start.elapsed();
        let negotiated = connection.handshake();
        connection.close(0, b"");
        connection.closed().await;

        let key_exchange = negotiated.key_exchange;
        let wanted = Group(self.spec.group);
        if key_exchange.group != wanted {
            return Err(
                format!("negotiated {key_exchange} where {wanted} was to be measured").into(),
            );
        }
        Ok(Sample {
            handshake,
            exchange,
            hello_retry: key_exchange.hello_retry,
            suite: negotiated.suite,
            stats: connection.stats(),
        })
    }

    async fn exchange(
        &self,
        connection: &Connection,
        phase: &RefCell<Phase>,
    ) -> Result<(), Failure> {
        let (mut send, mut receive) = connection.open_bidi().await?;
        send.write_all(&self.request).await?;
        send.finish();
        match self.spec.settings.work {
            Work::RequestResponse { response, .. } => {
                let got = receive.read_to_end(response.try_into()?).await?.len() as u64;
                if got != response {
                    return Err(format!("a response of {got} bytes, expected {response}").into());
                }
                let done = phase.borrow().completed;
                phase.borrow_mut().progress(done, Instant::now())
            }
            Work::Bulk { bytes } => {
                let progress = |done| phase.borrow_mut().progress(done, Instant::now());
                self.pattern.receive(&mut receive, bytes, progress).await
            }
        }
    }
}

/// A free port on an address of the server's family.
fn any_port(server: SocketAddr) -> SocketAddr {
    let ip: IpAddr = match server.ip() {
        ip if ip.is_loopback() => ip,
        IpAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        IpAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    };
    SocketAddr::new(ip, 0)
}

/// What all lanes of a phase count together.
struct Phase {
    left: u64,
    completed: u64,
    hello_retries: u64,
    suite: Option<Suite>,
    failures: Failures,
    losses: Losses,
    traffic_before: Traffic,
    handshake: Durations,
    exchange: Durations,
    told: Instant,
    ended: Instant,
    started: Instant,
    cpu: CpuClock,
}

impl Phase {
    fn start(connections: u64, endpoint: &Endpoint) -> Result<Self, Failure> {
        let now = Instant::now();
        Ok(Self {
            left: connections,
            completed: 0,
            hello_retries: 0,
            suite: None,
            failures: Failures::default(),
            losses: Losses::default(),
            traffic_before: Traffic::of(endpoint),
            handshake: Durations::new()?,
            exchange: Durations::new()?,
            told: now,
            ended: now,
            started: now,
            cpu: CpuClock::start()?,
        })
    }

    fn take(&mut self) -> bool {
        let wanted = self.left > 0 && self.failures.count < TOO_MANY_FAILURES;
        self.left -= u64::from(wanted);
        wanted
    }

    fn record(&mut self, outcome: Result<Sample, Failure>) {
        self.ended = Instant::now();
        match outcome {
            Ok(sample) => {
                self.completed += 1;
                self.hello_retries += u64::from(sample.hello_retry);
                self.suite = Some(sample.suite);
                self.losses.add(&sample.stats);
                self.handshake.record(sample.handshake);
                self.exchange.record(sample.exchange);
            }
            Err(failure) => self.failures.record(&failure),
        }
    }

    fn progress(&mut self, done: u64, now: Instant) -> Result<(), Failure> {
        if now.duration_since(self.told) < PROGRESS {
            return Ok(());
        }
        self.told = now;
        answer(FromClient::Progress(done))
    }

    fn report(&self, endpoint: &Endpoint) -> Result<ClientReport, Failure> {
        Ok(ClientReport {
            cpu_us: self.cpu.elapsed_us()?,
            elapsed_us: self.ended.duration_since(self.started).as_secs_f64() * 1e6,
            completed: self.completed,
            failed: self.failures.count,
            first_error: self.failures.first.clone(),
            hello_retries: self.hello_retries,
            suite: self
                .suite
                .map_or_else(String::new, |suite| format!("{suite:?}")),
            traffic: Traffic::of(endpoint).since(self.traffic_before),
            losses: self.losses,
            handshake: self.handshake.latency(),
            exchange: self.exchange.latency(),
        })
    }
}
