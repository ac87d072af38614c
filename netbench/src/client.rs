//! The client process.

use std::cell::RefCell;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::rc::Rc;
use std::time::{Duration, Instant};

use hybriq::tls::{Group, Suite, Trust};
use hybriq::{ClientConfig, Connection, ConnectionStats, Endpoint, TransportConfig};

use crate::certificate::SERVER_NAME;
use crate::measure::{Durations, Failures, Losses, Meter};
use crate::message::{ClientReport, ClientSpec, FromClient, Settings, ToClient, Work};
use crate::pipe::{FromParent, tell};
use crate::{Failure, bulk, os};

/// The application protocol of both ends.
pub(crate) const ALPN: &str = "netbench";

/// A run stops early after this many failures: what fails so often only costs timeouts.
const TOO_MANY_FAILURES: u64 = 10;

/// How often progress is told.
const PROGRESS: Duration = Duration::from_millis(100);

/// Reads its specification, then warms up and measures as often as the parent says so.
pub(crate) async fn drive() -> Result<(), Failure> {
    let mut parent = FromParent::open()?;
    let spec: ClientSpec = parent.expect().await?;
    if let Some(core) = spec.core {
        os::pin_to_core(core)?;
    }
    let driver = Rc::new(Driver::new(spec)?);

    let totals = Rc::new(RefCell::new(Totals::new()?));
    while let Some(command) = parent.next().await? {
        match command {
            ToClient::WarmUp { connections } => {
                let unused = Rc::new(RefCell::new(Totals::new()?));
                driver.round(connections, &unused).await?;
                if let Some(error) = unused.borrow_mut().failures.first.take() {
                    return Err(format!("in the warm-up: {error}").into());
                }
                answer(FromClient::Ready)?;
            }
            ToClient::Measure { connections } => {
                driver.round(connections, &totals).await?;
                answer(FromClient::Report(Box::new(totals.borrow().report())))?;
            }
        }
    }
    Ok(())
}

fn answer(message: FromClient) -> Result<(), Failure> {
    Ok(tell(&Ok::<_, String>(message))?)
}

/// What both ends' transports are set to.
pub(crate) fn transport(settings: &Settings) -> TransportConfig {
    let config = TransportConfig::new();
    match settings.datagram_size {
        Some(bytes) => config.datagram_size(bytes).without_mtu_discovery(),
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
    async fn round(
        self: &Rc<Self>,
        connections: u64,
        totals: &Rc<RefCell<Totals>>,
    ) -> Result<(), Failure> {
        totals.borrow_mut().start(connections, &self.endpoint)?;
        let lanes: Vec<_> = (0..u64::from(self.spec.concurrency).min(connections))
            .map(|_| {
                let (driver, totals) = (Rc::clone(self), Rc::clone(totals));
                tokio::task::spawn_local(async move { driver.lane(&totals).await })
            })
            .collect();
        for lane in lanes {
            lane.await?;
        }
        totals.borrow_mut().meter.pause(&self.endpoint)
    }

    /// Makes one connection after the other until none is left to make.
    async fn lane(&self, totals: &RefCell<Totals>) {
        while totals.borrow_mut().take() {
            let outcome = self.connection(totals).await;
            totals.borrow_mut().record(outcome);
        }
    }

    async fn connection(&self, totals: &RefCell<Totals>) -> Result<Sample, Failure> {
        let start = Instant::now();
        let connection = self.endpoint.connect(self.spec.server, SERVER_NAME).await?;
        let handshake = start.elapsed();
        self.exchange(&connection, totals).await?;
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
        totals: &RefCell<Totals>,
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
                let done = totals.borrow().done_in_round;
                totals.borrow_mut().progress(done)
            }
            Work::Bulk { bytes } => {
                let progress = |done| totals.borrow_mut().progress(done);
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

/// What all lanes count together, over all rounds.
struct Totals {
    left_in_round: u64,
    done_in_round: u64,
    told: Instant,
    completed: u64,
    hello_retries: u64,
    suite: Option<Suite>,
    failures: Failures,
    losses: Losses,
    handshake: Durations,
    exchange: Durations,
    meter: Meter,
}

impl Totals {
    fn new() -> Result<Self, Failure> {
        Ok(Self {
            left_in_round: 0,
            done_in_round: 0,
            told: Instant::now(),
            completed: 0,
            hello_retries: 0,
            suite: None,
            failures: Failures::default(),
            losses: Losses::default(),
            handshake: Durations::new()?,
            exchange: Durations::new()?,
            meter: Meter::default(),
        })
    }

    fn start(&mut self, connections: u64, endpoint: &Endpoint) -> Result<(), Failure> {
        self.left_in_round = connections;
        self.done_in_round = 0;
        self.meter.start(endpoint)
    }

    fn take(&mut self) -> bool {
        let wanted = self.left_in_round > 0 && self.failures.count < TOO_MANY_FAILURES;
        self.left_in_round -= u64::from(wanted);
        wanted
    }

    fn record(&mut self, outcome: Result<Sample, Failure>) {
        self.done_in_round += 1;
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

    fn progress(&mut self, done: u64) -> Result<(), Failure> {
        let now = Instant::now();
        if now.duration_since(self.told) < PROGRESS {
            return Ok(());
        }
        self.told = now;
        answer(FromClient::Progress(done))
    }

    fn report(&self) -> ClientReport {
        ClientReport {
            completed: self.completed,
            failed: self.failures.count,
            first_error: self.failures.first.clone(),
            hello_retries: self.hello_retries,
            suite: self
                .suite
                .map_or_else(String::new, |suite| format!("{suite:?}")),
            elapsed_us: self.meter.elapsed_us,
            cpu_us: self.meter.cpu_us,
            traffic: self.meter.traffic,
            losses: self.losses,
            handshake: self.handshake.latency(),
            exchange: self.exchange.latency(),
        }
    }
}
