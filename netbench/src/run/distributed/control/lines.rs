//! Lines of JSON to and from an untrusted peer.

use std::io::{self, ErrorKind};
use std::time::Duration;

use bytes::BytesMut;
use serde::Serialize;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::time::timeout;

/// Maximum time for a peer to accept a line.
const PATIENCE: Duration = Duration::from_secs(10);

/// Reads lines of limited length.
pub(crate) struct LineReader<R> {
    from: R,
    buffer: BytesMut,
    limit: usize,
}

impl<R: AsyncRead + Unpin> LineReader<R> {
    pub(crate) fn new(from: R, limit: usize) -> Self {
        Self {
            from,
            buffer: BytesMut::new(),
            limit,
        }
    }

    /// Sets the maximum length of later lines.
    pub(crate) fn set_limit(&mut self, limit: usize) {
        self.limit = limit;
    }

    /// Returns the next line without its end; `None` at the end of the input.
    ///
    /// # Cancel safety
    /// Data that was read stays in the reader.
    pub(crate) async fn next(&mut self) -> io::Result<Option<String>> {
        let mut searched = 0;
        loop {
            let unsearched = self.buffer.get(searched..).unwrap_or_default();
            if let Some(found) = unsearched.iter().position(|byte| *byte == b'\n') {
                let line = self.buffer.split_to(searched + found + 1);
                return self.text(&line).map(Some);
            }
            searched = self.buffer.len();
            if searched > self.limit {
                return Err(self.too_long());
            }
            self.buffer.reserve(8 << 10);
            if self.from.read_buf(&mut self.buffer).await? == 0 {
                return if self.buffer.is_empty() {
                    Ok(None)
                } else {
                    Err(io::Error::new(
                        ErrorKind::UnexpectedEof,
                        "it ended within a line",
                    ))
                };
            }
        }
    }

    /// Reads and drops everything until the end.
    pub(crate) async fn discard(&mut self) {
        loop {
            self.buffer.clear();
            self.buffer.reserve(8 << 10);
            if !matches!(self.from.read_buf(&mut self.buffer).await, Ok(1..)) {
                return;
            }
        }
    }

    fn text(&self, line: &[u8]) -> io::Result<String> {
        if line.len() > self.limit {
            return Err(self.too_long());
        }
        let text = std::str::from_utf8(line).map_err(|_| invalid("a line is not UTF-8".into()))?;
        Ok(text.trim_end().to_owned())
    }

    fn too_long(&self) -> io::Error {
        invalid(format!("a line is longer than {} bytes", self.limit))
    }
}

fn invalid(what: String) -> io::Error {
    io::Error::new(ErrorKind::InvalidData, what)
}

/// Writes one line.
pub(crate) async fn write_line<W: AsyncWrite + Unpin>(to: &mut W, line: &str) -> io::Result<()> {
    let write = async {
        to.write_all(line.as_bytes()).await?;
        to.write_all(b"\n").await?;
        to.flush().await
    };
    timeout(PATIENCE, write)
        .await
        .map_err(|_| io::Error::new(ErrorKind::TimedOut, "it does not read what it is told"))?
}

/// Writes a value as one line.
pub(crate) async fn write_value<W: AsyncWrite + Unpin, T: Serialize>(
    to: &mut W,
    value: &T,
) -> io::Result<()> {
    let line = serde_json::to_string(value)?;
    write_line(to, &line).await
}

#[cfg(test)]
mod tests {
    use super::LineReader;

    async fn read(bytes: &[u8], limit: usize) -> Result<Vec<String>, String> {
        let mut reader = LineReader::new(bytes, limit);
        let mut lines = Vec::new();
        while let Some(line) = reader.next().await.map_err(|error| error.to_string())? {
            lines.push(line);
        }
        Ok(lines)
    }

    #[tokio::test(flavor = "current_thread")]
    async fn lines_come_one_by_one() {
        let lines = read(b"one\n\ntwo\r\n", 10).await.unwrap();
        assert_eq!(lines, ["one", "", "two"]);
    }

    #[tokio::test(flavor = "current_thread")]
    async fn a_line_that_is_too_long_is_refused_before_it_ends() {
        let endless = vec![b'x'; 1 << 20];
        let refused = read(&endless, 4096).await.unwrap_err();
        assert_eq!(refused, "a line is longer than 4096 bytes");
        let exact = [&endless[..4095], b"\n"].concat();
        assert_eq!(read(&exact, 4096).await.unwrap()[0].len(), 4095);
        let ended = [&endless[..5000], b"\n"].concat();
        assert_eq!(read(&ended, 4096).await.unwrap_err(), refused);
    }

    #[tokio::test(flavor = "current_thread")]
    async fn half_a_line_and_what_is_no_text_are_refused() {
        let half = read(b"whole\nhalf", 100).await.unwrap_err();
        assert_eq!(half, "it ended within a line");
        let binary = read(b"\xff\xfe\n", 100).await.unwrap_err();
        assert_eq!(binary, "a line is not UTF-8");
    }
}
