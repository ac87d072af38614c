//! The server process.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::time::Duration;

use hybriq::tls::Identity;
use hybriq::{Connection, Endpoint, Incoming, RecvStream, SendStream, ServerConfig};
use tokio::sync::Notify;

use crate::measure::{Failures, Losses, Meter};
use crate::message::{FromServer, ServerReport, ServerSpec, ToServer, Work};
use crate::pipe::{FromParent, tell};
use crate::{Failure, bulk, client, machine, os};

/// How long connections may take to drain after the client is done with them.
const DRAIN: Duration = Duration::from_secs(2);

/// Reads its specification, serves, and reports until the parent needs no more.
pub(crate) async fn serve() -> Result<(), Failure> {
    let mut parent = FromParent::open()?;
    let spec: ServerSpec = parent.expect().await?;
    if let Some(core) = spec.core {
        os::pin_to_core(core)?;
    }
    let endpoint = endpoint(&spec)?;
    answer(FromServer::Listening(endpoint.local_address()))?;

    let tally = Rc::new(Tally::new(endpoint.clone()));
    let work = Rc::new(Answer::to(spec.settings.work)?);
    tokio::task::spawn_local(accept(endpoint, Rc::clone(&tally), work));
    while let Some(command) = parent.next().await? {
        match command {
            ToServer::Measure { after } => {
                tally.drained(after).await;
                tally.start()?;
                answer(FromServer::Measuring)?;
            }
            ToServer::Pause { after } => {
                tally.drained(after).await;
                answer(FromServer::Report(tally.pause()?))?;
            }
        }
    }
    Ok(())
}

fn answer(message: FromServer) -> Result<(), Failure> {
    Ok(tell(&Ok::<_, String>(message))?)
}

fn endpoint(spec: &ServerSpec) -> Result<Endpoint, Failure> {
    let settings = &spec.settings;
    let identity = Identity::from_pem(settings.chain.as_bytes(), spec.key.as_bytes())?;
    // Without tickets every handshake is a full one.
    let config = ServerConfig::new(identity)
        .alpn([client::ALPN])
        .tls(spec.tls.backend()?)
        .key_exchange(spec.tls.policy.key_exchange())
        .without_tickets()
        .transport(client::transport(settings));
    Ok(Endpoint::server(spec.listen, config)?)
}

async fn accept(endpoint: Endpoint, tally: Rc<Tally>, work: Rc<Answer>) {
    while let Some(incoming) = endpoint.accept().await {
        let (tally, work) = (Rc::clone(&tally), Rc::clone(&work));
        tokio::task::spawn_local(async move {
            let outcome = work.connection(incoming).await;
            tally.record(outcome);
        });
    }
}

/// What the server does on each stream.
enum Answer {
    Respond { request: usize, response: Vec<u8> },
    Bulk { bytes: u64, pattern: bulk::Pattern },
}

impl Answer {
    fn to(work: Work) -> Result<Self, Failure> {
        Ok(match work {
            Work::RequestResponse { request, response } => Self::Respond {
                request: request.try_into()?,
                response: vec![0x5a; response.try_into()?],
            },
            Work::Bulk { bytes } => Self::Bulk {
                bytes,
                pattern: bulk::Pattern::new(),
            },
        })
    }

    /// Serves one connection until the client closes it.
    async fn connection(&self, incoming: Incoming) -> Result<Connection, Failure> {
        let connection = incoming.accept().await?;
        while let Some((send, receive)) = connection.accept_bidi().await? {
            self.stream(send, receive).await?;
        }
        Ok(connection)
    }

    async fn stream(&self, mut send: SendStream, mut receive: RecvStream) -> Result<(), Failure> {
        match self {
            Self::Respond { request, response } => {
                let got = receive.read_to_end(*request).await?.len();
                if got != *request {
                    return Err(format!("a request of {got} bytes, expected {request}").into());
                }
                send.write_all(response).await?;
            }
            Self::Bulk { bytes, pattern } => pattern.send(&mut send, *bytes).await?,
        }
        send.finish();
        Ok(())
    }
}

/// What was counted so far.
struct Tally {
    endpoint: Endpoint,
    /// Connections that ended since the meter was last started or paused.
    ended: Cell<u64>,
    progressed: Notify,
    counts: RefCell<Counts>,
}

#[derive(Default)]
struct Counts {
    completed: u64,
    failures: Failures,
    losses: Losses,
    meter: Meter,
    rss_at_start_kib: Option<u64>,
    rss_after_1000_kib: Option<u64>,
}

impl Tally {
    fn new(endpoint: Endpoint) -> Self {
        Self {
            endpoint,
            ended: Cell::new(0),
            progressed: Notify::new(),
            counts: RefCell::default(),
        }
    }

    fn start(&self) -> Result<(), Failure> {
        let mut counts = self.counts.borrow_mut();
        self.ended.set(0);
        counts.rss_at_start_kib.get_or_insert_with(machine::rss_kib);
        counts.meter.start(&self.endpoint)
    }

    fn record(&self, outcome: Result<Connection, Failure>) {
        let mut counts = self.counts.borrow_mut();
        self.ended.set(self.ended.get() + 1);
        self.progressed.notify_one();
        if counts.meter.is_running() {
            counts.record(outcome);
        }
    }

    /// Waits until that many connections have ended, but not for ever: one that the client gave
    /// up may never have reached us.
    async fn drained(&self, connections: u64) {
        let drained = async {
            while self.ended.get() < connections {
                self.progressed.notified().await;
            }
        };
        let _ = tokio::time::timeout(DRAIN, drained).await;
    }

    fn pause(&self) -> Result<ServerReport, Failure> {
        let mut counts = self.counts.borrow_mut();
        self.ended.set(0);
        counts.meter.pause(&self.endpoint)?;
        Ok(counts.report())
    }
}

impl Counts {
    fn record(&mut self, outcome: Result<Connection, Failure>) {
        match outcome {
            Ok(connection) => {
                self.completed += 1;
                self.losses.add(&connection.stats());
            }
            Err(failure) => self.failures.record(&failure),
        }
        if self.completed == 1000 {
            self.rss_after_1000_kib.get_or_insert_with(machine::rss_kib);
        }
    }

    fn report(&self) -> ServerReport {
        ServerReport {
            completed: self.completed,
            failed: self.failures.count,
            first_error: self.failures.first.clone(),
            cpu_us: self.meter.cpu_us,
            traffic: self.meter.traffic,
            losses: self.losses,
            rss_at_start_kib: self.rss_at_start_kib.unwrap_or(0),
            rss_after_1000_kib: self.rss_after_1000_kib,
            rss_at_end_kib: machine::rss_kib(),
        }
    }
}
