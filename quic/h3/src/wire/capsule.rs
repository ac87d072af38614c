//! DATAGRAM capsules (RFC 9297 §3.5).

use bytes::{Buf, Bytes};

use super::frame::{Head, Partial};
use crate::error::Violation;

/// Type of the capsule.
const DATAGRAM: u64 = 0x00;

/// Finds DATAGRAM capsules in the bytes of a stream. Holds at most the content of one; all other capsules are skipped
/// without being held (RFC 9297 §3.2).
#[derive(Debug)]
pub struct DatagramCapsules {
    most: usize,
    begun: Partial,
    at: At,
    /// The beginning of a datagram.
    content: Vec<u8>,
}

#[derive(Clone, Copy, Debug)]
enum At {
    /// Type and length.
    Head,
    /// The rest of a datagram.
    Datagram(usize),
    /// The rest of another capsule.
    Skipped(u64),
}

impl DatagramCapsules {
    /// Makes a decoder for datagrams of at most so many bytes.
    pub const fn new(most: usize) -> Self {
        Self {
            most,
            begun: Partial::new(),
            at: At::Head,
            content: Vec::new(),
        }
    }

    /// Takes the next datagram off the front of the data; `None` once no whole one is left, and all of the data was
    /// taken.
    ///
    /// # Errors
    /// A datagram is longer than the protocol allows, which ends the stream.
    pub fn next(&mut self, data: &mut Bytes) -> Result<Option<Bytes>, Violation> {
        loop {
            match self.at {
                At::Head => {
                    let Some(head) = self.begun.take(data, Head::read) else {
                        return Ok(None);
                    };
                    self.at = match usize::try_from(head.len) {
                        _ if head.kind != DATAGRAM => At::Skipped(head.len),
                        Ok(len) if len <= self.most => At::Datagram(len),
                        _ => return Err(Violation::DatagramCapsuleTooLong),
                    };
                }
                At::Datagram(left) => {
                    let part = data.split_to(left.min(data.len()));
                    let left = left - part.len();
                    if left == 0 {
                        self.at = At::Head;
                        if self.content.is_empty() {
                            return Ok(Some(part));
                        }
                        self.content.extend_from_slice(&part);
                        return Ok(Some(std::mem::take(&mut self.content).into()));
                    }
                    self.at = At::Datagram(left);
                    // Grows with what has arrived, whatever length was announced.
                    self.content.extend_from_slice(&part);
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
    pub const fn is_between(&self) -> bool {
        matches!(self.at, At::Head) && !self.begun.is_begun()
    }

    /// Returns the bytes of memory that the beginning of a datagram takes.
    pub fn held(&self) -> usize {
        self.content.capacity()
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
