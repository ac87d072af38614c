//! Reads of a known length, and to the end of a stream.

use super::recv::{End, RecvStream};
use crate::errors::{ReadError, ReadExactError};

/// Number of bytes that [`RecvStream::read_to_end`] asks for at once.
const CHUNK: usize = 64 * 1024;

/// Whole parts of a stream.
impl RecvStream {
    /// Fills the buffer.
    ///
    /// # Errors
    /// [`ReadExactError::TooShort`] if the stream ends before, otherwise as for [`read`](Self::read). The beginning of
    /// the buffer then has what was read.
    ///
    /// # Cancel safety
    /// Not cancel safe: data already read is lost if the future is dropped before it is ready.
    ///
    /// # Examples
    /// ```no_run
    /// # async fn example(mut recv: hybriq::RecvStream) -> Result<(), hybriq::ReadExactError> {
    /// let mut length = [0; 4];
    /// recv.read_exact(&mut length).await?;
    /// let mut message = vec![0; u32::from_be_bytes(length) as usize];
    /// recv.read_exact(&mut message).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn read_exact(&mut self, buffer: &mut [u8]) -> Result<(), ReadExactError> {
        let wanted = buffer.len();
        let mut read = 0;
        while let Some(rest) = buffer.get_mut(read..).filter(|rest| !rest.is_empty()) {
            match self.read(rest).await? {
                0 => return Err(ReadExactError::TooShort { read, wanted }),
                count => read += count,
            }
        }
        Ok(())
    }

    /// Reads the rest of the stream, at most `limit` bytes.
    ///
    /// # Errors
    /// [`ReadError::TooLong`] beyond the limit, otherwise as for [`read`](Self::read).
    ///
    /// # Cancel safety
    /// Not cancel safe: data already read is lost if the future is dropped before it is ready.
    pub async fn read_to_end(&mut self, limit: usize) -> Result<Vec<u8>, ReadError> {
        let mut all = Vec::new();
        while let Some(chunk) = self.read_chunk(CHUNK).await? {
            if chunk.len() > limit - all.len() {
                // Otherwise the rest would look like a whole stream.
                let error = ReadError::TooLong { limit };
                self.end = End::Failed(Box::new(error.clone()));
                return Err(error);
            }
            all.extend_from_slice(&chunk);
        }
        Ok(all)
    }
}
