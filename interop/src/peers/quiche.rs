//! quiche 0.30 on BoringSSL: a TLS stack that shares nothing with the others.
//!
//! netbench's loop runs it, on threads of its own, because nothing there is `Send`. Jobs and pipes
//! lead from a test to a connection.

use std::{
    future::Future,
    net::{SocketAddr, UdpSocket},
    pin::Pin,
    rc::Rc,
    sync::{Arc, LazyLock, Mutex, OnceLock, PoisonError},
};

use bytes::Bytes;
use hybriq::Group;
use hybriq_netbench::stacks::{
    self, Tls,
    quiche::{Admission, Ended, Endpoint, Kind, Line, Receiver, Sender},
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt, DuplexStream},
    sync::{mpsc, oneshot},
    task::{JoinSet, spawn_local},
};
use tokio_util::task::LocalPoolHandle;

use super::settings;
use crate::{
    Activity, Answer, Bulk, Client, Connection, Early, Failure, Feature, Groups, Handshake, Peer,
    Reader, Role, SERVER_NAME, Server, Setup, Validation, Writer,
};

/// Threads that run the connections.
static THREADS: LazyLock<LocalPoolHandle> = LazyLock::new(|| LocalPoolHandle::new(2));
/// Maximum number of bytes in a pipe between a stream and its user.
const PIPE: usize = 64 * 1024;
/// Connection ids of an end: enough for a second path.
const IDS: u64 = 4;
/// Value of BoringSSL's `ssl_early_data_accepted`.
const EARLY_DATA_ACCEPTED: u32 = 2;

/// quiche with its own TLS library.
///
/// Its public API tells neither the group nor the HelloRetryRequest.
#[derive(Clone, Copy, Debug)]
pub struct Quiche;

impl Peer for Quiche {
    fn name(&self) -> &'static str {
        "quiche"
    }

    fn supports(&self, role: Role, groups: Groups) -> bool {
        // BoringSSL sends shares for the first classical and the first post-quantum group.
        role == Role::Client && groups != Groups::ClassicalShareFirst || role == Role::Server
    }

    // BoringSSL follows the client's order.
    fn retries_for_post_quantum(&self) -> bool {
        false
    }

    fn lacks(&self, role: Role, feature: Feature) -> Option<&'static str> {
        match feature {
            Feature::KeyUpdates => Some("quiche starts no key updates"),
            Feature::KeyUpdateCount => Some("quiche counts no key updates"),
            // Its own clients wait for it just as often.
            Feature::Rebinding if role == Role::Server => {
                Some("quiche's server often stalls when its client is rebound in a transfer")
            }
            _ => None,
        }
    }

    fn serve(&self, setup: &Setup) -> Result<Server, Failure> {
        let config = stacks::quiche::server(&tls(setup, Role::Server), &settings::transport(setup));
        let mut config = config.map_err(Failure::set_up)?;
        config.set_active_connection_id_limit(IDS);
        let socket = UdpSocket::bind(("127.0.0.1", 0)).map_err(Failure::set_up)?;
        let address = socket.local_addr().map_err(Failure::set_up)?;
        let admission = match setup.validation {
            Validation::ByHandshake => Admission::AtOnce,
            Validation::ByRetry => Admission::AfterRetry,
        };
        let (outcomes, received) = mpsc::unbounded_channel();
        let activity = Arc::new(Activity::default());
        let noting = Arc::clone(&activity);
        let task = THREADS.spawn_pinned(move || async move {
            let Ok(endpoint) = Endpoint::start(socket, config, admission) else {
                return;
            };
            let endpoint = Serving(endpoint);
            endpoint.0.allow_paths();
            let mut connections = JoinSet::new();
            while let Some(line) = endpoint.0.accept().await {
                let line = Closing(line);
                let (outcomes, activity) = (outcomes.clone(), Arc::clone(&noting));
                connections.spawn_local(async move {
                    tokio::join!(
                        async {
                            let told = established(&line.0).await;
                            let _ = outcomes.send(told.map(|_| Handshake::default()));
                        },
                        echo_connection(&line.0, &activity)
                    );
                });
            }
        });
        Ok(Server::new(address, received, activity, task))
    }

    fn client(&self, setup: &Setup) -> Result<Box<dyn Client>, Failure> {
        // A wrong configuration must be reported here.
        client_config(setup)?;
        Ok(Box::new(Remembering {
            setup: setup.clone(),
            ticket: Ticket::default(),
        }))
    }
}

/// Returns the TLS settings of one end, without the group that BoringSSL lacks.
fn tls(setup: &Setup, role: Role) -> Tls<'_> {
    let mut tls = settings::tls(setup, role);
    tls.groups
        .retain(|group| *group != Group::SECP256R1MLKEM768);
    tls
}

fn client_config(setup: &Setup) -> Result<stacks::quiche::Config, Failure> {
    let config = stacks::quiche::client(&tls(setup, Role::Client), &settings::transport(setup));
    let mut config = config.map_err(Failure::set_up)?;
    config.set_active_connection_id_limit(IDS);
    Ok(config)
}

/// Server's endpoint, which stops when this is dropped.
struct Serving(Rc<Endpoint>);

impl Drop for Serving {
    fn drop(&mut self) {
        self.0.stop();
    }
}

/// Server's connection, which is closed when this is dropped.
struct Closing(Rc<Line>);

impl Drop for Closing {
    fn drop(&mut self) {
        self.0.close(0);
    }
}

async fn echo_connection(line: &Rc<Line>, activity: &Activity) {
    loop {
        tokio::select! {
            id = line.accept(Kind::Bidi) => {
                let Ok(id) = id else { return };
                let path = line.quic().borrow().path_stats().find(|path| path.active);
                if let Some(path) = path {
                    activity.saw_client_at(path.peer_addr);
                }
                spawn_local(echo_stream(id, Rc::clone(line)));
            }
            datagram = line.receive_datagram() => {
                let Ok(datagram) = datagram else { return };
                let _ = line.send_datagram(datagram).await;
            }
        }
    }
}

async fn echo_stream(id: u64, line: Rc<Line>) {
    let mut writer = Sender::new(id, Rc::clone(&line));
    let mut reader = Receiver::new(id, line);
    // A failure means that the client is gone or reset the stream; it has the error.
    while let Ok(Some(bytes)) = reader.receive().await {
        if writer.send(bytes).await.is_err() {
            return;
        }
    }
    let _ = writer.finish().await;
}

/// Facts that an end learns from its handshake.
#[derive(Clone, Copy, Debug)]
struct Told {
    resumed: bool,
    early_data: bool,
}

/// Waits for the outcome of the handshake.
async fn established(line: &Line) -> Result<Told, Failure> {
    line.wait(|| {
        let quic = line.quic().borrow();
        if quic.is_established() {
            return Some(Ok(Told {
                resumed: quic.is_resumed(),
                early_data: quic.early_data_reason() == EARLY_DATA_ACCEPTED,
            }));
        }
        drop(quic);
        line.ended().map(|ended| Err(failure(ended)))
    })
    .await
}

fn failure(ended: Ended) -> Failure {
    match ended {
        Ended::Transport(close) => close.into(),
        other => Failure::other(other),
    }
}

/// Latest session ticket of a client.
type Ticket = Arc<Mutex<Option<Vec<u8>>>>;

/// A client with its latest ticket.
struct Remembering {
    setup: Setup,
    ticket: Ticket,
}

impl Remembering {
    fn start(&self, server: SocketAddr) -> Result<Opened, Failure> {
        let config = client_config(&self.setup)?;
        let socket = UdpSocket::bind(("127.0.0.1", 0)).map_err(Failure::set_up)?;
        let ticket = Arc::clone(&self.ticket);
        let (jobs, mut queue) = mpsc::unbounded_channel::<Job>();
        THREADS.spawn_pinned(move || async move {
            let endpoint = Endpoint::start(socket, config, Admission::Never);
            let endpoint = endpoint.map_err(Failure::set_up)?;
            endpoint.allow_paths();
            let old = ticket
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .clone();
            let line = endpoint.connect(server, SERVER_NAME, old.as_deref());
            let line = line.map_err(Failure::set_up)?;
            spawn_local(remember(Rc::clone(&line), ticket));
            while let Some(job) = queue.recv().await {
                spawn_local(job(Rc::clone(&endpoint), Rc::clone(&line)));
            }
            line.close(0);
            endpoint.stop();
            Ok::<(), Failure>(())
        });
        Ok(Opened {
            jobs,
            told: OnceLock::new(),
        })
    }
}

/// Keeps the latest ticket until the end of the connection.
async fn remember(line: Rc<Line>, ticket: Ticket) {
    line.wait(|| {
        if let Some(session) = line.quic().borrow().session() {
            let mut ticket = ticket.lock().unwrap_or_else(PoisonError::into_inner);
            if ticket.as_deref() != Some(session) {
                *ticket = Some(session.to_vec());
            }
        }
        line.ended()
    })
    .await;
}

impl Client for Remembering {
    fn connect(&self, server: SocketAddr) -> Answer<'_, Result<Box<dyn Connection>, Failure>> {
        Box::pin(async move {
            let opened = self.start(server)?;
            opened.established().await?;
            Ok(Box::new(opened) as Box<dyn Connection>)
        })
    }

    fn connect_early(&self, server: SocketAddr, bulk: Bulk) -> Answer<'_, Result<Early, Failure>> {
        Box::pin(async move {
            let opened = self.start(server)?;
            let (echo, told) = tokio::join!(bulk.exchange(&opened), opened.established());
            Ok(Early {
                accepted: told?.early_data,
                connection: Box::new(opened),
                echo,
            })
        })
    }
}

/// Work for the thread of a connection.
type Job = Box<dyn FnOnce(Rc<Endpoint>, Rc<Line>) -> Pin<Box<dyn Future<Output = ()>>> + Send>;

/// A connection that another thread runs.
struct Opened {
    jobs: mpsc::UnboundedSender<Job>,
    told: OnceLock<Told>,
}

impl Opened {
    /// Does a job on the thread of the connection.
    async fn run<T, F>(
        &self,
        job: impl FnOnce(Rc<Endpoint>, Rc<Line>) -> F + Send + 'static,
    ) -> Result<T, Failure>
    where
        T: Send + 'static,
        F: Future<Output = Result<T, Failure>> + 'static,
    {
        let (to, answer) = oneshot::channel();
        let job = |endpoint, line| {
            let done = job(endpoint, line);
            Box::pin(async move {
                let _ = to.send(done.await);
            }) as _
        };
        let _ = self.jobs.send(Box::new(job));
        let over = |_| Err(Failure::Other("the connection is over".into()));
        answer.await.unwrap_or_else(over)
    }

    async fn established(&self) -> Result<Told, Failure> {
        let told = self.run(async |_, line| established(&line).await).await?;
        let _ = self.told.set(told);
        Ok(told)
    }
}

impl Connection for Opened {
    fn handshake(&self) -> Handshake {
        Handshake {
            resumed: self.told.get().map(|told| told.resumed),
            ..Handshake::default()
        }
    }

    fn open(&self) -> Answer<'_, Result<(Writer, Reader), Failure>> {
        Box::pin(self.run(async |_, line| {
            let id = line.open(Kind::Bidi).await.map_err(failure)?;
            let (writer, outgoing) = tokio::io::duplex(PIPE);
            let (incoming, reader) = tokio::io::duplex(PIPE);
            spawn_local(send(outgoing, Sender::new(id, Rc::clone(&line))));
            spawn_local(receive(Receiver::new(id, line), incoming));
            Ok((Box::new(writer) as Writer, Box::new(reader) as Reader))
        }))
    }

    fn datagram(&self, bytes: Vec<u8>) -> Answer<'_, Result<Vec<u8>, Failure>> {
        Box::pin(self.run(async move |_, line| {
            line.send_datagram(bytes.into())
                .await
                .map_err(Failure::other)?;
            Ok(line.receive_datagram().await.map_err(failure)?.into())
        }))
    }

    fn migrate(&self) -> Answer<'_, Result<(), Failure>> {
        Box::pin(
            self.run(async |endpoint, line| endpoint.migrate(&line).await.map_err(Failure::other)),
        )
    }

    fn close(&self) {
        let _ = self
            .jobs
            .send(Box::new(|_, line| Box::pin(async move { line.close(0) })));
    }
}

/// Moves the bytes of a pipe to a stream.
async fn send(mut pipe: DuplexStream, mut stream: Sender) {
    let mut chunk = vec![0; PIPE];
    while let Ok(len @ 1..) = pipe.read(&mut chunk).await {
        let bytes = Bytes::copy_from_slice(&chunk[..len]);
        if stream.send(bytes).await.is_err() {
            return;
        }
    }
    let _ = stream.finish().await;
}

/// Moves the bytes of a stream to a pipe.
async fn receive(mut stream: Receiver, mut pipe: DuplexStream) {
    while let Ok(Some(bytes)) = stream.receive().await {
        if pipe.write_all(&bytes).await.is_err() {
            return;
        }
    }
}
