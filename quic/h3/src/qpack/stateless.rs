//! Field sections that refer to no dynamic table: that of this end has no capacity.

use super::{
    Error,
    decoder::{Decoder, Fault, NOT_HUFFMAN, Part, in_section},
    integer::{Coded, Reader},
};

/// The decoder of a table without capacity, whatever the connection.
static DECODER: Decoder = Decoder::new(0, 0, u64::MAX);

/// A field of a section, where it stands.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Seen<'s> {
    pub(crate) name: &'s [u8],
    pub(crate) value: &'s [u8],
    /// Bytes of the section from the field on.
    pub(crate) rest: &'s [u8],
}

impl Seen<'_> {
    /// Returns the number of bytes of the section behind the start of the name, which must be a literal.
    pub(crate) fn behind_name(&self) -> Option<usize> {
        let mut reader = Reader::new(self.rest);
        let (Coded::Plain(name) | Coded::Huffman(name)) = reader.string(3, usize::MAX).ok()?;
        Some(reader.remaining() + name.len())
    }
}

/// Gives each field of a section in turn. Strings without Huffman code are not copied.
///
/// # Errors
/// [`Error::Section`]: the section cannot be decoded. Fields in front of the fault were given.
pub(crate) fn each(section: &[u8], mut give: impl FnMut(Seen<'_>)) -> Result<(), Error> {
    let mut reader = Reader::new(section);
    let prefix = DECODER.prefix(&mut reader).map_err(in_section)?;
    let (mut name, mut value) = (Vec::new(), Vec::new());
    while reader.remaining() > 0 {
        let rest = reader.rest();
        let line = DECODER.line(&mut reader, prefix).map_err(in_section)?;
        give(Seen {
            name: text(line.name, &mut name).map_err(in_section)?,
            value: text(line.value, &mut value).map_err(in_section)?,
            rest,
        });
    }
    Ok(())
}

/// Returns the bytes of a string. Those in Huffman code are decoded into `scratch`.
fn text<'t>(part: Part<'t>, scratch: &'t mut Vec<u8>) -> Result<&'t [u8], Fault> {
    Ok(match part {
        Part::Fixed(text) => text.as_bytes(),
        Part::Entry(bytes) => bytes,
        Part::Coded(Coded::Plain(bytes)) => bytes,
        Part::Coded(string @ Coded::Huffman(bytes)) => {
            scratch.clear();
            // The shortest codes have five bits.
            scratch.reserve(bytes.len() * 8 / 5);
            let decoded = string.decode(scratch);
            decoded.map_err(|_| Fault::Is(NOT_HUFFMAN))?;
            scratch
        }
    })
}
