//! DATAGRAM capsules (RFC 9297 §3.5).

use bytes::{Buf, Bytes};

use super::frame::{Head, Partial};
use crate::error::Violation;

/// Type of the capsule.
const DATAGRAM: u64 = 0x00;

/// Finds the contents of capsules in the bytes of a stream. Holds at most one of those that are wanted, as far as it has
/// arrived; all others are skipped without being held (RFC 9297 §3.2).
#[derive(Debug, Default)]
pub(crate) struct Contents {
    begun: Partial,
    at: At,
    /// The beginning of a content.
    content: Vec<u8>,
}

#[derive(Clone, Copy, Debug, Default)]
enum At {
    /// Type and length.
    #[default]
    Head,
    /// The rest of a content that is wanted.
    Content { kind: u64, left: usize },
    /// The rest of another one.
    Skipped(u64),
}

impl Contents {
    const fn new() -> Self {
        Self {
            begun: Partial::new(),
            at: At::Head,
            content: Vec::new(),
        }
    }

    /// Takes the next content off the front of the data, with its type; `None` once all of the data was taken and no
    /// complete datagram is left. `longest` returns the largest length of a type that is wanted.
    ///
    /// # Errors
    /// A content is longer, which is this violation.
    pub(crate) fn next(
        &mut self,
        data: &mut Bytes,
        longest: impl Fn(u64) -> Option<usize>,
        too_long: Violation,
    ) -> Result<Option<(u64, Bytes)>, Violation> {
        loop {
            match self.at {
                At::Head => {
                    let Some(head) = self.begun.take(data, Head::read) else {
                        return Ok(None);
                    };
                    let kind = head.kind;
                    self.at = match (longest(kind), usize::try_from(head.len)) {
                        (None, _) => At::Skipped(head.len),
                        (Some(most), Ok(left)) if left <= most => At::Content { kind, left },
                        _ => return Err(too_long),
                    };
                }
                At::Content { kind, left } => {
                    let part = data.split_to(left.min(data.len()));
                    if part.len() < left && part.is_empty() {
                        return Ok(None);
                    }
                    let rest = left - part.len();
                    if rest == 0 && self.content.is_empty() {
                        self.at = At::Head;
                        return Ok(Some((kind, part)));
                    }
                    // Grows with what has arrived, whatever length was announced, but never beyond it.
                    if self.content.capacity() - self.content.len() < part.len() {
                        let more = part.len().max(self.content.len()).min(left);
                        self.content.reserve_exact(more);
                    }
                    self.content.extend_from_slice(&part);
                    if rest == 0 {
                        self.at = At::Head;
                        return Ok(Some((kind, std::mem::take(&mut self.content).into())));
                    }
                    self.at = At::Content { kind, left: rest };
                    return Ok(None);
                }
                At::Skipped(left) => {
                    let passed = left.min(data.len() as u64);
                    data.advance(passed as usize);
                    if passed < left {
                        self.at = At::Skipped(left - passed);
                        return Ok(None);
                    }
                    self.at = At::Head;
                }
            }
        }
    }

    /// Returns true between two capsules, where the stream may end.
    pub(crate) const fn is_between(&self) -> bool {
        matches!(self.at, At::Head) && !self.begun.is_begun()
    }

    /// Returns the bytes of memory that the beginning of a content takes.
    pub(crate) fn held(&self) -> usize {
        self.content.capacity()
    }
}

/// Finds DATAGRAM capsules in the bytes of a stream. Holds at most the content of one; all other capsules are skipped
/// without being held (RFC 9297 §3.2).
#[derive(Debug)]
pub struct DatagramCapsules {
    most: usize,
    contents: Contents,
}

impl DatagramCapsules {
    /// Creates a decoder for datagrams of at most `most` bytes.
    pub const fn new(most: usize) -> Self {
        Self {
            most,
            contents: Contents::new(),
        }
    }

    /// Takes the next datagram off the front of the data; `None` once no whole one is left, and all of the data was
    /// taken.
    ///
    /// # Errors
    /// A datagram is longer than the protocol allows, which ends the stream.
    pub fn next(&mut self, data: &mut Bytes) -> Result<Option<Bytes>, Violation> {
        let longest = |kind| (kind == DATAGRAM).then_some(self.most);
        let too_long = Violation::DatagramCapsuleTooLong;
        let found = self.contents.next(data, longest, too_long)?;
        Ok(found.map(|(_, content)| content))
    }

    /// Returns true between two capsules, where the stream may end.
    pub const fn is_between(&self) -> bool {
        self.contents.is_between()
    }

    /// Returns the bytes of memory that the beginning of a datagram takes.
    pub fn held(&self) -> usize {
        self.contents.held()
    }
}

/// Appends the head of a DATAGRAM capsule whose content has `len` bytes.
pub fn put_datagram_capsule_head(len: usize, out: &mut Vec<u8>) {
    let len = len as u64;
    Head {
        kind: DATAGRAM,
        len,
    }
    .put(out);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn datagrams_are_found_however_the_stream_is_cut() {
        let mut stream = Vec::new();
        put_datagram_capsule_head(3, &mut stream);
        stream.extend(b"one");
        // A capsule of an unknown type, and an empty datagram.
        stream.extend([0x17, 2, 9, 9, 0, 0]);
        put_datagram_capsule_head(100, &mut stream);
        stream.extend([7; 100]);
        for piece in [1, 2, 7, stream.len()] {
            let mut capsules = DatagramCapsules::new(100);
            let mut found = Vec::new();
            for data in stream.chunks(piece) {
                let mut data = Bytes::copy_from_slice(data);
                while let Some(datagram) = capsules.next(&mut data).expect("no violation") {
                    found.push(datagram);
                }
                assert!(data.is_empty());
            }
            assert!(capsules.is_between() && capsules.held() == 0);
            assert_eq!(found, [&b"one"[..], b"", &[7; 100]], "{piece}");
        }
    }

    /// A length alone costs nothing, and capsules of other types may have any.
    #[test]
    fn announced_lengths_are_not_held() {
        let mut capsules = DatagramCapsules::new(65_528);
        let mut data = Vec::new();
        put_datagram_capsule_head(65_528, &mut data);
        data.push(1);
        assert_eq!(capsules.next(&mut data.into()), Ok(None));
        assert!(capsules.held() < 64 && !capsules.is_between());
        let mut capsules = DatagramCapsules::new(10);
        let mut endless =
            Bytes::from_static(&[0x17, 0xff, 255, 255, 255, 255, 255, 255, 255, 1, 2]);
        assert_eq!(capsules.next(&mut endless), Ok(None));
        assert_eq!(capsules.held(), 0);
        let mut capsules = DatagramCapsules::new(10);
        let too_long = capsules.next(&mut Bytes::from_static(&[0, 11]));
        assert_eq!(too_long, Err(Violation::DatagramCapsuleTooLong));
    }
}
