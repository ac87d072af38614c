//! A child's end of the pipes to its parent.

use std::io::{self, Write};
use std::os::fd::AsFd;

use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::io::{AsyncBufReadExt, BufReader, Lines};
use tokio::net::unix::pipe::Receiver;

use crate::system::failure::Failure;

/// Reads the parent's lines from standard input, on this thread.
pub(crate) struct FromParent(Lines<BufReader<Receiver>>);

impl FromParent {
    pub(crate) fn open() -> Result<Self, Failure> {
        let stdin = io::stdin().as_fd().try_clone_to_owned()?;
        let receiver = Receiver::from_owned_fd(stdin)
            .map_err(|_| "this part is started by `netbench run`, which talks to it over a pipe")?;
        Ok(Self(BufReader::new(receiver).lines()))
    }

    /// Returns the next line; `None` if the parent is gone, or needs nothing more.
    pub(crate) async fn next<T: DeserializeOwned>(&mut self) -> Result<Option<T>, Failure> {
        match self.0.next_line().await? {
            Some(line) => Ok(Some(serde_json::from_str(&line)?)),
            None => Ok(None),
        }
    }

    /// Returns the next line of a parent that must still exist.
    pub(crate) async fn expect<T: DeserializeOwned>(&mut self) -> Result<T, Failure> {
        self.next()
            .await?
            .ok_or_else(|| "the parent is gone".into())
    }
}

/// Sends the parent one message on standard output. The lines are few and short, so the pipe never
/// fills.
pub(crate) fn tell<T: Serialize>(message: &T) -> io::Result<()> {
    let mut line = serde_json::to_string(message)?;
    line.push('\n');
    let mut out = io::stdout().lock();
    out.write_all(line.as_bytes())?;
    out.flush()
}
