use std::io;

use aws_lc_rs::digest::{Context, Digest, SHA256};
use tokio::io::{AsyncReadExt, AsyncWriteExt, BufReader};

use crate::{Connection, Failure, Reader, Writer};

const CHUNK: usize = 64 * 1024;

/// Sends back everything that comes, then ends the stream. What a server does with every stream.
pub async fn echo_stream(mut writer: Writer, reader: Reader) {
    // A failed copy means the client is gone or gave up the stream; it has the error, and a
    // truncated echo fails its checksum.
    let mut reader = BufReader::with_capacity(CHUNK, reader);
    if tokio::io::copy_buf(&mut reader, &mut writer).await.is_ok() {
        let _ = writer.shutdown().await;
    }
}

/// Bytes without a period a window or a packet could hide behind, the same for the same seed.
#[derive(Clone, Copy, Debug)]
pub struct Bulk {
    /// How many.
    pub bytes: usize,
    /// Which.
    pub seed: u64,
}

/// What went out on a stream and what came back.
#[derive(Debug)]
pub struct Receipt {
    /// Bytes that came back.
    pub bytes: usize,
    sent: Digest,
    received: Digest,
}

impl Receipt {
    /// Whether the SHA-256 of both directions is the same.
    pub fn is_intact(&self) -> bool {
        self.sent.as_ref() == self.received.as_ref()
    }
}

impl Bulk {
    fn fill(&mut self, chunk: &mut [u8]) {
        for word in chunk.chunks_mut(8) {
            // xorshift64*, Vigna 2016.
            self.seed ^= self.seed >> 12;
            self.seed ^= self.seed << 25;
            self.seed ^= self.seed >> 27;
            let bytes = self.seed.wrapping_mul(0x2545_f491_4f6c_dd1d).to_le_bytes();
            let len = word.len();
            word.copy_from_slice(&bytes[..len]);
        }
    }

    /// Sends the bytes on a new stream while it reads what comes back.
    ///
    /// # Errors
    /// Whatever ends the stream before its end.
    pub async fn exchange(self, connection: &dyn Connection) -> Result<Receipt, Failure> {
        let (writer, reader) = connection.open().await?;
        let (sent, received) = tokio::join!(self.send(writer), receive(reader));
        let (bytes, received) =
            received.map_err(|error| Failure::Other(format!("read: {error}")))?;
        let sent = sent.map_err(|error| Failure::Other(format!("write: {error}")))?;
        Ok(Receipt {
            bytes,
            sent,
            received,
        })
    }

    async fn send(mut self, mut writer: Writer) -> io::Result<Digest> {
        let mut digest = Context::new(&SHA256);
        // An odd size, so that chunks fall differently in every packet. The seed must not be 0.
        let mut chunk = vec![0; CHUNK - 7];
        self.seed |= 1;
        while self.bytes > 0 {
            let len = self.bytes.min(chunk.len());
            self.fill(&mut chunk[..len]);
            digest.update(&chunk[..len]);
            writer.write_all(&chunk[..len]).await?;
            self.bytes -= len;
        }
        writer.shutdown().await?;
        Ok(digest.finish())
    }
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
