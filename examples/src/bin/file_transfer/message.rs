//! Messages between the ends: JSON, each behind its length.
//!
//! ```text
//! push:  client ── Hello, Listed.. ──► server      pull:  client ── Hello ─────────► server
//!        client ◄─ Wanted, Report ──── server             client ◄─ Listed.. ─────── server
//!                                                         client ── Wanted, Report ► server
//! both:  receiver ── Request ──► sender, and the bytes come back: a stream for each request
//! ```

use std::fmt;

use hybriq::{RecvStream, SendStream, error::Printable};
use serde::{Deserialize, Serialize, de::DeserializeOwned};

use crate::{
    error::Error,
    manifest::{Draft, Manifest, RawEntry},
};

/// Longest message, in bytes.
const LONGEST: usize = 64 * 1024;
/// Bytes of messages that are written at once.
const BATCH: usize = 32 * 1024;

/// First message of a client.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Hello {
    /// The client sends into a folder of the server; `None` is the served folder itself.
    Push { path: Option<String> },
    /// The client gets a file or folder.
    Pull { path: Option<String> },
}

/// Message of the sender of files.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Listed {
    Entry(RawEntry),
    End,
    Refused(Refusal),
}

/// Message of the receiver of files.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Answer {
    /// Bytes that are missing at the receiver.
    Wanted(u64),
    /// The transfer is over.
    Report(Report),
    Refused(Refusal),
}

/// What the receiver of files has done.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Report {
    /// Files that were written.
    pub(crate) written: u64,
    /// Files that were there with the same contents.
    pub(crate) unchanged: u64,
    /// Bytes that were received.
    pub(crate) bytes: u64,
    /// Files that could not be transferred.
    pub(crate) failed: u64,
    /// The first of these, and why.
    pub(crate) first_failed: Option<String>,
}

impl Report {
    /// Returns an error if files are missing.
    pub(crate) fn complete(self) -> Result<Self, Error> {
        if self.failed == 0 {
            return Ok(self);
        }
        let first = self.first_failed.unwrap_or_default();
        Err(Error::Incomplete {
            count: self.failed,
            first: Printable(first).to_string(),
        })
    }
}

/// Reason of a server not to do what it was asked for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Refusal {
    pub(crate) reason: Reason,
    /// Explanation for humans.
    pub(crate) text: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Reason {
    ReadOnly,
    /// The path cannot be read or written.
    Path,
    /// The list of files breaks a rule.
    Manifest,
    Busy,
    NoSpace,
    /// The server's own fault.
    Other,
}

impl Refusal {
    /// Returns the part of an error of this server that the client may know, without internal details.
    pub(crate) fn of(error: &Error) -> Self {
        let reason = match error {
            Error::Manifest(_) => Reason::Manifest,
            Error::Io { .. } | Error::Name { .. } | Error::NotUnicode(_) => Reason::Path,
            Error::Busy => Reason::Busy,
            Error::NoSpace { .. } => Reason::NoSpace,
            _ => Reason::Other,
        };
        let text = match reason {
            Reason::Other => "internal error; see its log for details".to_owned(),
            _ => error.to_string(),
        };
        Self { reason, text }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Printable(&self.text).fmt(f)
    }
}

/// Bytes of a file that a receiver asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Piece {
    /// Place of the file in the list.
    pub(crate) file: u32,
    pub(crate) offset: u64,
    pub(crate) len: u32,
}

/// Writes messages to a stream.
pub(crate) struct Writer {
    send: SendStream,
    batch: Vec<u8>,
}

impl Writer {
    pub(crate) fn new(send: SendStream) -> Self {
        Self {
            send,
            batch: Vec::new(),
        }
    }

    /// Writes a message at once.
    pub(crate) async fn write(&mut self, message: &impl Serialize) -> Result<(), Error> {
        self.add(message)?;
        self.flush().await
    }

    async fn flush(&mut self) -> Result<(), Error> {
        let batch = std::mem::take(&mut self.batch);
        Ok(self.send.write_chunk(batch.into()).await?)
    }

    fn add(&mut self, message: &impl Serialize) -> Result<(), Error> {
        let text =
            serde_json::to_vec(message).map_err(|error| Error::Protocol(error.to_string()))?;
        let len = u32::try_from(text.len()).unwrap_or(u32::MAX);
        self.batch.extend_from_slice(&len.to_be_bytes());
        self.batch.extend_from_slice(&text);
        Ok(())
    }

    /// Writes a list.
    pub(crate) async fn list(&mut self, manifest: &Manifest) -> Result<(), Error> {
        for entry in manifest.entries() {
            self.add(&Listed::Entry(entry.to_raw()))?;
            if self.batch.len() >= BATCH {
                self.flush().await?;
            }
        }
        self.write(&Listed::End).await
    }

    /// Ends the stream.
    pub(crate) fn end(mut self) {
        self.send.finish();
    }

    /// Ends the stream and waits until the peer has everything.
    pub(crate) async fn finish(mut self) -> Result<(), Error> {
        Ok(self.send.acknowledged().await?)
    }
}

/// Reads messages from a stream.
pub(crate) struct Reader(RecvStream);

impl Reader {
    pub(crate) fn new(recv: RecvStream) -> Self {
        Self(recv)
    }

    /// Reads a message.
    pub(crate) async fn read<T: DeserializeOwned>(&mut self) -> Result<T, Error> {
        let mut len = [0; 4];
        fill(&mut self.0, &mut len).await?;
        let len = u32::from_be_bytes(len) as usize;
        if len > LONGEST {
            return Err(Error::Protocol(format!(
                "a message of {len} bytes; {LONGEST} are allowed"
            )));
        }
        let mut text = vec![0; len];
        fill(&mut self.0, &mut text).await?;
        parse(&text)
    }

    /// Reads a list of files of at most `max_bytes`.
    pub(crate) async fn list(&mut self, max_bytes: u64) -> Result<Manifest, Error> {
        let mut draft = Draft::new(max_bytes);
        loop {
            match self.read().await? {
                Listed::Entry(entry) => draft.push(&entry)?,
                Listed::End => return Ok(draft.finish()?),
                Listed::Refused(refusal) => return Err(Error::Refused(refusal)),
            }
        }
    }
}

/// Reads a message without its length.
pub(crate) fn parse<T: DeserializeOwned>(text: &[u8]) -> Result<T, Error> {
    serde_json::from_slice(text)
        .map_err(|error| Error::Protocol(format!("unreadable message: {error}")))
}

/// Fills the buffer from a stream.
///
/// # Errors
/// [`Error::Protocol`] if the stream ends before, else that of reading.
pub(crate) async fn fill(recv: &mut RecvStream, buffer: &mut [u8]) -> Result<(), Error> {
    let mut filled = 0;
    while let Some(rest) = buffer.get_mut(filled..).filter(|rest| !rest.is_empty()) {
        match recv.read(rest).await? {
            0 => return Err(Error::Protocol("a stream ends too early".to_owned())),
            count => filled += count,
        }
    }
    Ok(())
}
