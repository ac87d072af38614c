//! A writer of encoded values.

use crate::wire::VarInt;

/// A cursor that fills a slice.
///
/// Callers must check [`Writer::remaining`] first; a write that does not fit is a bug of ours. It
/// is dropped (and caught by a debug assertion) instead of panicking in production.
#[derive(Debug)]
pub struct Writer<'a> {
    buffer: &'a mut [u8],
    len: usize,
}

impl<'a> Writer<'a> {
    /// Starts at the first byte.
    pub const fn new(buffer: &'a mut [u8]) -> Self {
        Self { buffer, len: 0 }
    }

    /// Returns the number of bytes written.
    pub const fn len(&self) -> usize {
        self.len
    }

    /// Returns true if nothing was written.
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns the number of bytes that still fit.
    pub const fn remaining(&self) -> usize {
        self.buffer.len() - self.len
    }

    /// Returns the bytes written.
    pub fn written(&mut self) -> &mut [u8] {
        self.buffer.split_at_mut(self.len).0
    }

    /// Returns the free space after the written bytes; claim it with [`Writer::advance`].
    pub fn free(&mut self) -> &mut [u8] {
        self.buffer.split_at_mut(self.len).1
    }

    /// Counts `len` bytes of the free space as written.
    pub fn advance(&mut self, len: usize) {
        debug_assert!(len <= self.remaining(), "advance past the end");
        self.len = (self.len + len).min(self.buffer.len());
    }

    /// Appends bytes.
    #[inline]
    pub fn put(&mut self, bytes: &[u8]) {
        let Some(target) = self.buffer.get_mut(self.len..self.len + bytes.len()) else {
            debug_assert!(false, "write of {} bytes does not fit", bytes.len());
            return;
        };
        target.copy_from_slice(bytes);
        self.len += bytes.len();
    }

    /// Appends zero bytes.
    pub fn put_zeros(&mut self, count: usize) {
        let count = count.min(self.remaining());
        self.free().split_at_mut(count).0.fill(0);
        self.len += count;
    }

    /// Appends a variable-length integer in its shortest form.
    #[inline]
    pub fn varint(&mut self, value: u64) {
        VarInt::saturating(value).encode(self);
    }

    /// Appends a length as a variable-length integer, then the bytes.
    pub fn prefixed(&mut self, bytes: &[u8]) {
        self.varint(bytes.len() as u64);
        self.put(bytes);
    }
}

impl VarInt {
    /// Writes the shortest form. The writer must have [`VarInt::size`] bytes left.
    #[inline]
    pub fn encode(self, writer: &mut Writer<'_>) {
        match self.size() {
            1 => writer.put(&[self.0 as u8]),
            2 => writer.put(&(self.0 as u16 | 0x4000).to_be_bytes()),
            4 => writer.put(&(self.0 as u32 | 0x8000_0000).to_be_bytes()),
            _ => writer.put(&(self.0 | 0xc000_0000_0000_0000).to_be_bytes()),
        }
    }
}
