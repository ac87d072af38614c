//! The client: pushes and pulls.

use std::{
    fs,
    io::{self, IsTerminal as _},
    path::Path,
    sync::Arc,
};

use hybriq::{ConnectError, Connection, Endpoint, PostQuantum, transport::Congestion};
use tokio::task::spawn_blocking;

use crate::{
    endpoint::{self, PROTOCOL, Pin, peer_key},
    error::Error,
    fingerprint::Fingerprint,
    folder::{Folder, Own},
    message::{Answer, Hello, Reader, Report, Writer},
    options::NewKey,
    path::RelativePath,
    progress::{Progress, Show},
    receiver::Receiver,
    remote::Remote,
    root::Root,
    scan::Scan,
    sender::Source,
};

/// A client.
pub(crate) struct Client {
    pub(crate) folder: Folder,
    pub(crate) congestion: Congestion,
    pub(crate) streams: u8,
    pub(crate) show: Show,
    pub(crate) new_key: NewKey,
}

/// What a transfer has done.
#[derive(Debug)]
pub(crate) struct Done {
    pub(crate) report: Report,
    /// Links and special files of this end that were left out.
    pub(crate) skipped: u64,
}

impl Client {
    /// Sends a file, or what is in a folder.
    pub(crate) async fn push(&self, from: &Path, to: &Remote) -> Result<Done, Error> {
        let progress = Progress::begin(self.show, "reading the files");
        let from = from.to_owned();
        let scan = spawn_blocking(move || Scan::of(&from)).await??;
        let skipped = scan.skipped;
        let source = Source::new(scan);
        let run = async |connection: &PostQuantum<Connection>| {
            push_over(connection, &source, to.path.as_ref(), &progress).await
        };
        let report = self.with(to, &progress, run).await?;
        Ok(Done { report, skipped })
    }

    /// Gets a file, or what is in a folder.
    pub(crate) async fn pull(&self, from: &Remote, to: &Path) -> Result<Done, Error> {
        let failed = |error| Error::Io {
            what: to.display().to_string(),
            error,
        };
        fs::create_dir_all(to).map_err(failed)?;
        let root = Root::open(to).map_err(failed)?;
        let progress = Progress::begin(self.show, "the server reads its files");
        let run = async |connection: &PostQuantum<Connection>| {
            let path = from.path.as_ref();
            pull_over(connection, root, path, self.streams, &progress).await
        };
        let report = self.with(from, &progress, run).await?;
        Ok(Done { report, skipped: 0 })
    }

    /// Connects, and runs a transfer over the connection.
    async fn with(
        &self,
        remote: &Remote,
        progress: &Progress,
        run: impl AsyncFnOnce(&PostQuantum<Connection>) -> Result<Report, Error>,
    ) -> Result<Report, Error> {
        let own = self.folder.own()?;
        let met = self.meet(&own, remote, progress).await;
        let (endpoint, connection) = met.map_err(|error| error.for_client(own.fingerprint))?;
        let done = run(&connection).await;
        match &done {
            Err(Error::Protocol(_) | Error::Manifest(_)) => {
                connection.close(PROTOCOL, b"see the client");
            }
            _ => connection.close(0, b""),
        }
        progress.end();
        endpoint.idle().await;
        done.map_err(|error| error.for_client(own.fingerprint))?
            .complete()
    }

    /// Connects to a server with the key that is known for it, or makes its key known.
    async fn meet(
        &self,
        own: &Own,
        remote: &Remote,
        progress: &Progress,
    ) -> Result<(Endpoint, PostQuantum<Connection>), Error> {
        let hosts = self.folder.known_hosts();
        let known = hosts.named(&remote.authority)?;
        let pin = Pin::new(known.as_ref().map(|known| known.key));
        let endpoint = endpoint::client(own, &pin, self.congestion.clone())?;
        let connected = connect(&endpoint, remote).await;
        let host = remote.authority.clone();
        if let (Some(known), Some(shown)) = (&known, pin.other()) {
            return Err(Error::KeyChanged {
                host,
                known: known.key,
                shown,
                file: hosts.file().to_owned(),
                line: known.line,
            });
        }
        let connection = PostQuantum::prove(connected?)?;
        if known.is_none() {
            let shown = peer_key(&connection)?;
            progress.pause();
            if !self.accepts(&host, shown).await? {
                return Err(Error::Unknown { host, shown });
            }
            hosts.add(&host, shown)?;
        }
        Ok((endpoint, connection))
    }

    /// Returns true if the user takes a key that was never seen. Nothing was sent yet.
    async fn accepts(&self, host: &str, shown: Fingerprint) -> Result<bool, Error> {
        if self.new_key == NewKey::Accept {
            return Ok(true);
        }
        if !io::stdin().is_terminal() || !io::stderr().is_terminal() {
            return Ok(false);
        }
        eprintln!(
            "The key of {host} is not known: {shown}\nIt is the right server if `file_transfer identity` prints the \
             same there. Go on? (yes/no)"
        );
        let mut answer = String::new();
        let read = move || {
            io::stdin()
                .read_line(&mut answer)
                .map(|_| answer.trim() == "yes")
        };
        let failed = |error| Error::Io {
            what: "your answer".to_owned(),
            error,
        };
        spawn_blocking(read).await?.map_err(failed)
    }
}

/// Connects to the first address of the host that answers.
async fn connect(endpoint: &Endpoint, remote: &Remote) -> Result<Connection, Error> {
    let mut failure = None;
    for address in remote.addresses().await? {
        match endpoint.connect(address, &remote.host).await {
            Ok(connection) => return Ok(connection),
            Err(error @ ConnectError::ServerName(_)) => return Err(Error::Connect(error)),
            Err(error) => failure = Some(Error::Connect(error)),
        }
    }
    let nowhere = || Error::Usage(format!("{} has no address; check the name", remote.host));
    Err(failure.unwrap_or_else(nowhere))
}

fn wire(path: Option<&RelativePath>) -> Option<String> {
    path.map(|path| path.as_str().to_owned())
}

async fn push_over(
    connection: &PostQuantum<Connection>,
    source: &Arc<Source>,
    path: Option<&RelativePath>,
    progress: &Progress,
) -> Result<Report, Error> {
    let (send, recv) = connection.open_bidi().await?;
    let (mut writer, mut reader) = (Writer::new(send), Reader::new(recv));
    writer.write(&Hello::Push { path: wire(path) }).await?;
    match writer.list(source.manifest()).await {
        // A server that refuses stops reading, and its answer says why.
        Ok(()) | Err(Error::Protocol(_)) => {}
        Err(error) => return Err(error),
    }
    let answers = async {
        loop {
            match reader.read().await? {
                Answer::Wanted(bytes) => progress.transfer(bytes),
                Answer::Report(report) => return Ok(report),
                Answer::Refused(refusal) => return Err(Error::Refused(refusal)),
            }
        }
    };
    tokio::select! {
        biased;
        report = answers => report,
        ended = source.serve(connection, progress) => {
            ended?;
            Err(Error::Protocol("the server left without a report".to_owned()))
        }
    }
}

async fn pull_over(
    connection: &PostQuantum<Connection>,
    root: Root,
    path: Option<&RelativePath>,
    streams: u8,
    progress: &Progress,
) -> Result<Report, Error> {
    let (send, recv) = connection.open_bidi().await?;
    let (mut writer, mut reader) = (Writer::new(send), Reader::new(recv));
    writer.write(&Hello::Pull { path: wire(path) }).await?;
    let manifest = reader.list(u64::MAX).await?;
    let receiver = Receiver::prepare(root, manifest, &Arc::default()).await?;
    writer.write(&Answer::Wanted(receiver.wanted())).await?;
    progress.transfer(receiver.wanted());
    let report = receiver.run(connection, streams, progress).await?;
    writer.write(&Answer::Report(report.clone())).await?;
    writer.finish().await?;
    Ok(report)
}
