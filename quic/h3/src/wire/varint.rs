//! Variable-length integers (RFC 9000 §16).

use bytes::{Buf, BufMut};

/// Reads an integer if it is whole.
pub(crate) fn read(data: &mut &[u8]) -> Option<u64> {
    let first = *data.first()?;
    let bytes = data.get(..1 << (first >> 6))?;
    let value = bytes
        .iter()
        .skip(1)
        .fold(u64::from(first & 0x3f), |value, byte| {
            value << 8 | u64::from(*byte)
        });
    data.advance(bytes.len());
    Some(value)
}

/// The largest integer.
pub(crate) const MAX: u64 = (1 << 62) - 1;

/// Returns the number of bytes of an integer.
pub(crate) const fn len(value: u64) -> usize {
    match value {
        0..=0x3f => 1,
        0x40..=0x3fff => 2,
        0x4000..=0x3fff_ffff => 4,
        _ => 8,
    }
}

/// Writes an integer.
pub(crate) fn put(value: u64, out: &mut impl BufMut) {
    match len(value) {
        1 => out.put_u8(value as u8),
        2 => out.put_u16(value as u16 | 0x4000),
        4 => out.put_u32(value as u32 | 0x8000_0000),
        _ => out.put_u64(value | 0xc000_0000_0000_0000),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_are_read_and_written_as_in_rfc_9000() {
        let values: [(&[u8], u64); 4] = [
            (&[0x25], 37),
            (&[0x7b, 0xbd], 15_293),
            (&[0x9d, 0x7f, 0x3e, 0x7d], 494_878_333),
            (
                &[0xc2, 0x19, 0x7c, 0x5e, 0xff, 0x14, 0xe8, 0x8c],
                151_288_809_941_952_652,
            ),
        ];
        for (bytes, value) in values {
            let mut rest = bytes;
            assert_eq!(read(&mut rest), Some(value));
            assert!(rest.is_empty());
            let mut written = Vec::new();
            put(value, &mut written);
            assert_eq!(written, bytes);
        }
    }
}
