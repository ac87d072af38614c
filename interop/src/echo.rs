//! Echoes of streams, and transfers that check them.

use std::{io, time::Duration};

use aws_lc_rs::digest::{Context, Digest, SHA256};
use hybriq_sim::Rng;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt, BufReader},
    sync::oneshot,
    time::timeout,
};

use crate::{Connection, Failure, Reader, Writer};

const CHUNK: usize = 64 * 1024;
/// Time after which a waiting writer counts as blocked by its reader.
const PAUSE: Duration = Duration::from_millis(100);

/// Echoes a stream and finishes it, as servers do with every stream.
pub async fn echo_stream(mut writer: Writer, reader: Reader) {
    // A failed copy means that the client is gone or reset the stream; it has the error, and a
    // truncated echo fails its checksum.
    let mut reader = BufReader::with_capacity(CHUNK, reader);
    if tokio::io::copy_buf(&mut reader, &mut writer).await.is_ok() {
        let _ = writer.shutdown().await;
    }
}

/// Returns an error with its causes: what a stream reports is often "connection lost" alone.
fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text = format!("{text}: {error}");
        cause = error.source();
    }
    text
}

/// Pseudo-random bytes without a period, the same for the same seed.
#[derive(Clone, Copy, Debug)]
pub struct Bulk {
    /// Number of bytes.
    pub bytes: usize,
    /// Seed of the bytes.
    pub seed: u64,
}

/// Digests of the sent and received bytes of a stream.
#[derive(Debug)]
pub struct Receipt {
    /// Number of bytes received.
    pub bytes: usize,
    sent: Digest,
    received: Digest,
}

impl Receipt {
    /// Returns true if the SHA-256 of both directions is the same.
    pub fn is_intact(&self) -> bool {
        self.sent.as_ref() == self.received.as_ref()
    }
}

impl Bulk {
    /// Sends the bytes on a new stream while it reads the echo.
    ///
    /// # Errors
    /// The error that ended the stream early.
    pub async fn exchange(self, connection: &dyn Connection) -> Result<Receipt, Failure> {
        let (writer, reader) = connection.open().await?;
        Sender::new(self, writer).exchange(reader).await
    }

    /// Works like [`Bulk::exchange`], on an open stream.
    ///
    /// # Errors
    /// The error that ended the stream early.
    pub async fn exchange_on(self, writer: Writer, reader: Reader) -> Result<Receipt, Failure> {
        Sender::new(self, writer).exchange(reader).await
    }

    /// Works like [`Bulk::exchange`], and signals when half of the bytes are written.
    ///
    /// # Errors
    /// The error that ended the stream early.
    pub async fn exchange_and_tell(
        self,
        connection: &dyn Connection,
        halfway: oneshot::Sender<()>,
    ) -> Result<Receipt, Failure> {
        let (writer, reader) = connection.open().await?;
        let mut sender = Sender::new(self, writer);
        sender.halfway = Some((self.bytes / 2, halfway));
        sender.exchange(reader).await
    }

    /// Works like [`Bulk::exchange`], but reads nothing until the limits of both ends have stopped
    /// the writer. There must be more bytes than limits and buffers allow.
    ///
    /// # Errors
    /// The error that ended the stream early, or a writer that nothing stopped.
    pub async fn exchange_late(self, connection: &dyn Connection) -> Result<Receipt, Failure> {
        let (writer, reader) = connection.open().await?;
        let mut sender = Sender::new(self, writer);
        // No verdict depends on the pause: if it ends too early on a slow machine, this is an
        // ordinary exchange.
        while let Ok(written) = timeout(PAUSE, sender.write_some()).await {
            written.map_err(|error| write_failed(&error))?;
            if sender.left == 0 {
                return Err(Failure::Other("no limit stopped the writer".into()));
            }
        }
        sender.exchange(reader).await
    }
}

/// Sender of a [`Bulk`].
struct Sender {
    writer: Writer,
    left: usize,
    random: Rng,
    chunk: Vec<u8>,
    /// Index in the chunk of the first byte not written yet.
    unwritten: usize,
    /// Number of remaining bytes at which to signal, and the receiver of the signal.
    halfway: Option<(usize, oneshot::Sender<()>)>,
    digest: Context,
}

impl Sender {
    fn new(bulk: Bulk, writer: Writer) -> Self {
        Self {
            writer,
            left: bulk.bytes,
            // The generator would stay at 0.
            random: Rng::new(bulk.seed),
            // An odd size, so that chunks have different positions in every packet.
            chunk: vec![0; CHUNK - 7],
            unwritten: CHUNK - 7,
            halfway: None,
            digest: Context::new(&SHA256),
        }
    }

    async fn exchange(self, reader: Reader) -> Result<Receipt, Failure> {
        let (sent, received) = tokio::join!(self.finish(), receive(reader));
        let (bytes, received) =
            received.map_err(|error| Failure::Other(format!("read: {}", chain(&error))))?;
        let sent = sent.map_err(|error| write_failed(&error))?;
        Ok(Receipt {
            bytes,
            sent,
            received,
        })
    }

    async fn finish(mut self) -> io::Result<Digest> {
        while self.left > 0 {
            self.write_some().await?;
        }
        self.writer.shutdown().await?;
        Ok(self.digest.finish())
    }

    /// Writes some bytes. Cancel safe.
    async fn write_some(&mut self) -> io::Result<()> {
        if self.unwritten == self.chunk.len() {
            self.fill();
        }
        let chunk = &self.chunk[self.unwritten..];
        let chunk = &chunk[..chunk.len().min(self.left)];
        let written = self.writer.write(chunk).await?;
        self.digest.update(&chunk[..written]);
        self.unwritten += written;
        self.left -= written;
        if let Some((_, to)) = self.halfway.take_if(|(left, _)| self.left <= *left) {
            let _ = to.send(());
        }
        Ok(())
    }

    fn fill(&mut self) {
        self.random.fill(&mut self.chunk);
        self.unwritten = 0;
    }
}

fn write_failed(error: &io::Error) -> Failure {
    Failure::Other(format!("write: {error}"))
}

async fn receive(mut reader: Reader) -> io::Result<(usize, Digest)> {
    let mut digest = Context::new(&SHA256);
    let mut chunk = vec![0; CHUNK];
    let mut bytes = 0;
    loop {
        let len = reader.read(&mut chunk).await?;
        if len == 0 {
            return Ok((bytes, digest.finish()));
        }
        digest.update(&chunk[..len]);
        bytes += len;
    }
}
