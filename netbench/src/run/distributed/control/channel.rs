//! The connection between a controller and an agent.

use std::io::{self, ErrorKind};
use std::time::Duration;

use serde::Serialize;
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::time::timeout;

use super::lines::{LineReader, write_line};
use super::token::Seal;

/// Maximum time for a refused peer to disconnect.
const LINGER: Duration = Duration::from_secs(1);

/// Lines in both directions, sealed once the ends share a token and have greeted each other.
pub(crate) struct Channel {
    from: LineReader<OwnedReadHalf>,
    to: OwnedWriteHalf,
    seal: Option<Seal>,
}

impl Channel {
    /// Takes lines of at most `limit` bytes.
    pub(crate) fn new(stream: TcpStream, limit: usize) -> Self {
        let _ = stream.set_nodelay(true);
        let (from, to) = stream.into_split();
        Self {
            from: LineReader::new(from, limit),
            to,
            seal: None,
        }
    }

    /// Sets the maximum length of later lines.
    pub(crate) fn set_limit(&mut self, limit: usize) {
        self.from.set_limit(limit);
    }

    /// Seals all later lines, and takes no others.
    pub(crate) fn set_seal(&mut self, seal: Seal) {
        self.seal = Some(seal);
    }

    /// Returns the next line; `None` at the end of the input.
    ///
    /// # Cancel safety
    /// Data that was read is not lost.
    pub(crate) async fn next(&mut self) -> io::Result<Option<String>> {
        let line = self.from.next().await?;
        match (line, &mut self.seal) {
            (Some(line), Some(seal)) => match seal.open(&line) {
                Some(line) => Ok(Some(line.to_owned())),
                None => Err(io::Error::new(
                    ErrorKind::InvalidData,
                    "the token is not this agent's, or somebody in between changed what was said",
                )),
            },
            (line, _) => Ok(line),
        }
    }

    /// Writes one line.
    pub(crate) async fn write(&mut self, line: &str) -> io::Result<()> {
        match &mut self.seal {
            Some(seal) => write_line(&mut self.to, &seal.close(line)).await,
            None => write_line(&mut self.to, line).await,
        }
    }

    /// Writes a value as one line.
    pub(crate) async fn write_value<T: Serialize>(&mut self, value: &T) -> io::Result<()> {
        let line = serde_json::to_string(value)?;
        self.write(&line).await
    }

    /// Drains input of the peer for a moment: closing a connection with unread bytes would reset
    /// it, and the peer could not read the reason.
    pub(crate) async fn hang_up(mut self) {
        let _ = self.to.shutdown().await;
        let _ = timeout(LINGER, self.from.discard()).await;
    }
}
