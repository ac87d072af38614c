//! Two endpoints on a network in memory, whose tasks a scheduler runs in many different orders.

use std::{
    future::{Future, poll_fn},
    net::SocketAddr,
    pin::pin,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicUsize, Ordering},
    },
    task::Poll,
    time::Duration,
};

use hybriq_proto::stats::census::Census;
use hybriq_tls::{CertificateDer, Identity, PrivateKeyDer, Trust};
use shuttle::{
    Config, FailurePersistence, MaxSteps, Runner,
    future::{JoinHandle, block_on, spawn, yield_now},
    rand::Rng as _,
    scheduler::{PctScheduler, RandomScheduler, Scheduler},
};

use crate::{
    api::connection::Connection,
    config::{ClientConfig, ServerConfig},
    endpoint::{Endpoint, EndpointBuilder, Setups, sockets::Ports},
    restart::Inheritance,
    sync::{Model, time},
    udp::{Network, Options},
    worker::{Worker, sockets::Sockets},
};

/// Number of schedules of each scenario and scheduler.
const SCHEDULES: usize = 60;

/// Alarms later than this never fire.
const HORIZON: Duration = Duration::from_secs(20);

/// Number of times that a worker may be polled in one scenario. Scenarios need 12 to 90; a worker
/// that is woken again and again for nothing needs more.
const POLLS: usize = 300;

/// Bytes of stack for each task: a handshake needs a few hundred kilobytes without optimization.
const STACK: usize = 2 << 20;

/// Numbers of the ends.
pub(super) const SERVER: usize = 0;
pub(super) const CLIENT: usize = 1;

/// Two endpoints, and the tasks that keep them going.
pub(super) struct World {
    pub(super) network: Network,
    pub(super) server: Endpoint,
    pub(super) client: Endpoint,
    tasks: Vec<JoinHandle<()>>,
    /// Tables that the server and the client had when they were new.
    fresh: [Census; 2],
    /// Polls of the server's worker and of the client's.
    polls: [Arc<AtomicUsize>; 2],
}

/// Configurations of a world. Their TLS providers are built once.
pub(super) struct Settings {
    server: (EndpointBuilder, Setups),
    client: (EndpointBuilder, Setups),
    time: Time,
}

/// How time passes during a scenario.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Time {
    /// No alarm fires, so none can wake a task that was forgotten.
    Frozen,
    /// Time passes while nobody has anything to do.
    Passing,
}

fn certificate() -> &'static (Vec<u8>, Vec<u8>) {
    static CERTIFICATE: OnceLock<(Vec<u8>, Vec<u8>)> = OnceLock::new();
    CERTIFICATE.get_or_init(|| {
        let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
        (made.cert.der().to_vec(), made.signing_key.serialize_der())
    })
}

/// Returns a server's configuration.
pub(super) fn server_config() -> ServerConfig {
    let (chain, key) = certificate();
    let chain = vec![CertificateDer::from(chain.clone())];
    let key = PrivateKeyDer::try_from(key.clone()).unwrap();
    ServerConfig::new(Identity::from_der(chain, key)).alpn(["test"])
}

/// Returns a client's configuration.
pub(super) fn client_config() -> ClientConfig {
    let root = CertificateDer::from(certificate().0.clone());
    ClientConfig::new()
        .alpn(["test"])
        .trust(Trust::roots_der([root]))
}

impl Settings {
    pub(super) fn new(server: ServerConfig, client: ClientConfig) -> Self {
        let prepare = |builder: EndpointBuilder| {
            let setups = builder.setups().unwrap();
            (builder, setups)
        };
        Self {
            server: prepare(Endpoint::builder().server(server)),
            client: prepare(Endpoint::builder().client(client)),
            time: Time::Frozen,
        }
    }

    /// Lets time pass during the scenario: for delayed acknowledgements, closing and sleeping.
    pub(super) fn in_time(mut self) -> Self {
        self.time = Time::Passing;
        self
    }
}

impl Default for Settings {
    fn default() -> Self {
        Self::new(server_config(), client_config())
    }
}

pub(super) fn server_address() -> SocketAddr {
    ([192, 0, 2, 1], 443).into()
}

pub(super) fn client_address() -> SocketAddr {
    ([192, 0, 2, 2], 1000).into()
}

impl World {
    async fn new(settings: &Settings) -> Self {
        let network = Network::default();
        let polls = [(); 2].map(|()| Arc::new(AtomicUsize::new(0)));
        let mut tasks = vec![spawn(time::pass(HORIZON))];
        let mut start = |(builder, setups): &(EndpointBuilder, Setups), address, polls: &Arc<_>| {
            let ports = Ports {
                options: Options::default(),
                accepts: true,
                has_ids: true,
                by_id: false,
            };
            let parts = builder.clone().assemble(
                vec![address],
                setups.clone(),
                1,
                ports,
                Inheritance::default(),
            );
            let shared = parts.endpoint.shared.clone();
            let mailbox = parts.mailboxes[0].clone();
            let sockets = Sockets::new(vec![network.bind(address)], parts.options);
            let worker = Worker::new(0, shared, mailbox, sockets, parts.settings);
            let endpoint = parts.endpoint;
            tasks.push(spawn(counted(worker.run(), Arc::clone(polls))));
            endpoint
        };
        let server = start(&settings.server, server_address(), &polls[0]);
        let client = start(&settings.client, client_address(), &polls[1]);
        Self {
            fresh: [server.census().await, client.census().await],
            server,
            client,
            network,
            tasks,
            polls,
        }
    }

    /// Returns the number of times that the workers of server and client were polled so far.
    pub(super) fn polls(&self) -> [usize; 2] {
        self.polls
            .each_ref()
            .map(|polls| polls.load(Ordering::Relaxed))
    }

    /// Waits, and checks that an end's worker is polled at most this many times meanwhile.
    pub(super) async fn polled_at_most(&self, most: usize, end: usize, wait: Duration) {
        let before = self.polls()[end];
        time::sleep(wait).await;
        let polls = self.polls()[end] - before;
        assert!(polls <= most, "the worker was polled {polls} times");
    }

    /// Connects both ends.
    pub(super) async fn connect(&self) -> (Connection, Connection) {
        let server = self.server.clone();
        let accept = spawn(async move { server.accept().await.unwrap().accept().await });
        let client = self.client.connect(server_address(), "localhost").await;
        (accept.await.unwrap().unwrap(), client.unwrap())
    }

    /// Closes everything, and waits until all tasks have ended.
    async fn end(self) {
        time::run();
        self.client.close(0, b"");
        self.server.close(0, b"");
        self.client.idle().await;
        self.server.idle().await;
        for (endpoint, fresh) in [&self.server, &self.client].into_iter().zip(&self.fresh) {
            let mut left = endpoint.census().await.grown_since(fresh);
            // An answer to a stranger may still wait for the worker's next turn, and a task that nobody
            // awaits for its own.
            for _ in 0..100 {
                if !left.is_empty() {
                    yield_now().await;
                    left = endpoint.census().await.grown_since(fresh);
                }
            }
            assert!(left.is_empty(), "an endpoint without connections: {left}");
        }
        drop((self.client, self.server));
        let mut tasks = self.tasks.into_iter();
        let keeper = tasks.next().unwrap();
        for worker in tasks {
            worker.await.unwrap();
        }
        time::stop();
        keeper.await.unwrap();
        let polls = self.polls.map(|polls| polls.load(Ordering::Relaxed));
        assert!(
            polls.iter().all(|&count| count <= POLLS),
            "the workers were polled {polls:?} times"
        );
    }
}

/// Counts the polls of a future.
async fn counted<F: Future>(future: F, polls: Arc<AtomicUsize>) -> F::Output {
    let mut future = pin!(future);
    poll_fn(|cx| {
        polls.fetch_add(1, Ordering::Relaxed);
        future.as_mut().poll(cx)
    })
    .await
}

/// Returns a number below `end`.
pub(super) fn random(end: usize) -> usize {
    shuttle::rand::thread_rng().gen_range(0..end)
}

/// Lets others run a few times.
pub(super) async fn pause() {
    for _ in 0..random(6) {
        yield_now().await;
    }
}

/// Polls a future a few times, woken or not, and then drops it, woken or not, unless it is ready.
pub(super) async fn abandon<F: Future>(future: F) -> Option<F::Output> {
    let mut future = pin!(future);
    for _ in 0..random(4) {
        let polled = poll_fn(|cx| Poll::Ready(future.as_mut().poll(cx)));
        if let Poll::Ready(output) = polled.await {
            return Some(output);
        }
        pause().await;
    }
    None
}

/// Runs a scenario under many schedules. The scenario must end, and both endpoints must end after
/// it: a task that nobody wakes is a deadlock, which the scheduler reports with its schedule.
///
/// `HYBRIQ_SCHEDULES` sets the number of schedules.
pub(super) fn check<F>(settings: Settings, scenario: fn(Arc<World>) -> F)
where
    F: Future<Output = ()> + Send + 'static,
{
    let schedules = std::env::var("HYBRIQ_SCHEDULES");
    let schedules = schedules.map_or(SCHEDULES, |count| count.parse().unwrap());
    let settings = Arc::new(settings);
    run(RandomScheduler::new(schedules), settings.clone(), scenario);
    run(PctScheduler::new(3, schedules), settings, scenario);
}

fn run<F>(
    scheduler: impl Scheduler + 'static,
    settings: Arc<Settings>,
    scenario: fn(Arc<World>) -> F,
) where
    F: Future<Output = ()> + Send + 'static,
{
    let mut config = Config::new();
    config.stack_size = STACK;
    config.max_steps = MaxSteps::FailAfter(1_000_000);
    config.silence_warnings = true;
    config.failure_persistence = FailurePersistence::None;
    let model = Model::enter();
    Runner::new(scheduler, config).run(move || {
        time::start();
        if settings.time == Time::Passing {
            time::run();
        }
        block_on(async {
            let world = Arc::new(World::new(&settings).await);
            scenario(world.clone()).await;
            Arc::into_inner(world).unwrap().end().await;
        });
        time::end();
    });
    drop(model);
}
