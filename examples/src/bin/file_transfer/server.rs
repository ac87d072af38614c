//! The server.

use std::{net::SocketAddr, path::PathBuf, sync::Arc, time::Duration};

use hybriq::{Connection, Endpoint, Incoming, PostQuantum, transport::Congestion};
use tokio::task::{JoinSet, spawn_blocking};

use crate::{
    endpoint::{self, First, Gate, NOT_AUTHORIZED, PROTOCOL, STOPPED, peer_key},
    error::Error,
    folder::{Folder, Own},
    message::{Answer, Hello, Listed, Reader, Reason, Refusal, Report, Writer},
    path::RelativePath,
    progress::{Progress, Show},
    receiver::Receiver,
    room::Room,
    root::{Missing, Root},
    scan::Scan,
    sender::Source,
};

/// Time in which a client that was told the result closes its connection.
const LEAVE: Duration = Duration::from_secs(5);

/// Options of a server.
pub(crate) struct Settings {
    pub(crate) served: PathBuf,
    pub(crate) listen: SocketAddr,
    pub(crate) first: First,
    pub(crate) pushes: Pushes,
    pub(crate) streams: u8,
    pub(crate) congestion: Congestion,
    pub(crate) show: Show,
}

/// Whether clients may push.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pushes {
    Refused,
    /// Allowed up to this number of bytes.
    UpTo(u64),
}

/// A server that listens.
pub(crate) struct Server {
    endpoint: Endpoint,
    shared: Arc<Shared>,
    own: Own,
}

struct Shared {
    root: Root,
    room: Arc<Room>,
    gate: Arc<Gate>,
    pushes: Pushes,
    streams: u8,
    show: Show,
}

impl Server {
    /// Begins to listen.
    pub(crate) fn bind(folder: &Folder, settings: Settings) -> Result<Self, Error> {
        let failed = |error| Error::Io {
            what: settings.served.display().to_string(),
            error,
        };
        let root = Root::open(&settings.served).map_err(failed)?;
        let own = folder.own()?;
        let authorized = folder.authorized();
        // A list that cannot be read is told now, not to the first client.
        authorized.all()?;
        let gate = Gate::new(authorized, settings.first);
        let endpoint = endpoint::server(settings.listen, &own, &gate, settings.congestion)?;
        let Settings {
            pushes,
            streams,
            show,
            ..
        } = settings;
        let shared = Shared {
            root,
            room: Arc::default(),
            gate,
            pushes,
            streams,
            show,
        };
        Ok(Self {
            endpoint,
            shared: Arc::new(shared),
            own,
        })
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.endpoint.local_address()
    }

    pub(crate) fn own(&self) -> &Own {
        &self.own
    }

    /// Serves until the endpoint is closed.
    pub(crate) async fn run(&self) {
        let mut sessions = JoinSet::new();
        loop {
            tokio::select! {
                incoming = self.endpoint.accept() => match incoming {
                    Some(incoming) => {
                        sessions.spawn(Arc::clone(&self.shared).session(incoming));
                    }
                    None => return,
                },
                Some(_) = sessions.join_next() => {}
            }
        }
    }

    /// Closes all connections. Interrupted transfers can be resumed later.
    pub(crate) async fn stop(&self) {
        self.endpoint.close(STOPPED, b"the server stops");
        self.endpoint.idle().await;
    }
}

impl Shared {
    fn log(&self, line: &str) {
        if self.show == Show::Bar {
            println!("{line}");
        }
    }

    async fn session(self: Arc<Self>, incoming: Incoming) {
        let from = incoming.peer_address();
        let line = match self.serve(incoming).await {
            Ok(what) => format!("{from}: {what}"),
            Err(error) => format!("{from}: {error}"),
        };
        self.log(&line);
    }

    async fn serve(&self, incoming: Incoming) -> Result<String, Error> {
        let connection = incoming.accept().await.map_err(Error::Connect)?;
        let connection = PostQuantum::prove(connection)?;
        let key = peer_key(&connection)?;
        let Some(name) = self.gate.enter(key)? else {
            connection.close(NOT_AUTHORIZED, b"not authorized");
            return Ok(format!("refused {key}: another client was the first"));
        };
        let Some((send, recv)) = connection.accept_bidi().await? else {
            return Ok(format!("{name} left"));
        };
        let (mut writer, mut reader) = (Writer::new(send), Reader::new(recv));
        let asked = reader.read().await;
        let done = match asked {
            Ok(Hello::Push { path }) => {
                self.push(&connection, &mut writer, &mut reader, path).await
            }
            Ok(Hello::Pull { path }) => {
                self.pull(&connection, &mut writer, &mut reader, path).await
            }
            Err(error) => Err(error),
        };
        match done {
            Ok(report) => {
                // The client closes once it has the report.
                let _ = tokio::time::timeout(LEAVE, connection.closed()).await;
                Ok(format!("{name} {report}"))
            }
            Err(error) => {
                if let Error::Protocol(reason) = &error {
                    connection.close(PROTOCOL, reason.as_bytes());
                } else {
                    // The client closes once it has read the refusal.
                    let _ = tokio::time::timeout(LEAVE, connection.closed()).await;
                }
                Err(error)
            }
        }
    }

    /// Receives files.
    async fn push(
        &self,
        connection: &PostQuantum<Connection>,
        writer: &mut Writer,
        reader: &mut Reader,
        path: Option<String>,
    ) -> Result<String, Error> {
        match self.receive(connection, writer, reader, path).await {
            Ok(report) => {
                writer.write(&Answer::Report(report.clone())).await?;
                Ok(format!("pushed: {}", summary(&report)))
            }
            Err(error) => {
                if let Some(refusal) = refusal(&error) {
                    writer.write(&Answer::Refused(refusal)).await?;
                }
                Err(error)
            }
        }
    }

    async fn receive(
        &self,
        connection: &PostQuantum<Connection>,
        writer: &mut Writer,
        reader: &mut Reader,
        path: Option<String>,
    ) -> Result<Report, Error> {
        let Pushes::UpTo(max_bytes) = self.pushes else {
            let text = "this server is read-only".to_owned();
            return Err(Error::Refused(Refusal {
                reason: Reason::ReadOnly,
                text,
            }));
        };
        let path = safe(path)?;
        let manifest = reader.list(max_bytes).await?;
        let folder = self
            .root
            .below(path.as_ref().map(RelativePath::as_str), Missing::Create);
        let folder = folder.map_err(|error| match &path {
            Some(path) => Error::at(path)(error),
            None => Error::Io {
                what: "the served folder".to_owned(),
                error,
            },
        })?;
        let receiver = Receiver::prepare(folder, manifest, &self.room).await?;
        writer.write(&Answer::Wanted(receiver.wanted())).await?;
        let progress = Progress::begin(Show::Nothing, "");
        receiver.run(connection, self.streams, &progress).await
    }

    /// Sends files.
    async fn pull(
        &self,
        connection: &PostQuantum<Connection>,
        writer: &mut Writer,
        reader: &mut Reader,
        path: Option<String>,
    ) -> Result<String, Error> {
        let source = match self.scan(path).await {
            Ok(source) => source,
            Err(error) => {
                if let Some(refusal) = refusal(&error) {
                    writer.write(&Listed::Refused(refusal)).await?;
                }
                return Err(error);
            }
        };
        writer.list(source.manifest()).await?;
        let answers = async {
            loop {
                match reader.read().await? {
                    Answer::Wanted(_) => {}
                    Answer::Report(report) => return Ok(report),
                    Answer::Refused(refusal) => return Err(Error::Refused(refusal)),
                }
            }
        };
        let progress = Progress::begin(Show::Nothing, "");
        tokio::select! {
            biased;
            report = answers => Ok(format!("pulled: {}", summary(&report?))),
            ended = source.serve(connection, &progress) => {
                ended?;
                Ok("left without a report".to_owned())
            }
        }
    }

    async fn scan(&self, path: Option<String>) -> Result<Arc<Source>, Error> {
        let path = safe(path)?;
        let failed = |error| Error::Io {
            what: "the served folder".to_owned(),
            error,
        };
        let root = self.root.below(None, Missing::Fail).map_err(failed)?;
        let scan = spawn_blocking(move || Scan::below(&root, path.as_ref())).await??;
        Ok(Source::new(scan))
    }
}

/// Checks the path that a client named.
pub(crate) fn safe(path: Option<String>) -> Result<Option<RelativePath>, Error> {
    let checked = path.map(|path| {
        path.parse().map_err(|rule| Error::Name {
            path: path.into(),
            rule,
        })
    });
    checked.transpose()
}

/// Returns what a client is told about an error; `None` if it knows, or is gone.
fn refusal(error: &Error) -> Option<Refusal> {
    match error {
        Error::Refused(refusal) => Some(refusal.clone()),
        Error::Lost(_) | Error::Protocol(_) => None,
        error => Some(Refusal::of(error)),
    }
}

/// Describes what was done in a few words.
pub(crate) fn summary(report: &Report) -> String {
    let Report {
        written,
        unchanged,
        bytes,
        failed,
        ..
    } = report;
    let failed = match failed {
        0 => String::new(),
        failed => format!(", {failed} failed"),
    };
    format!("{written} files written, {unchanged} unchanged, {bytes} bytes received{failed}")
}
