mod ack;
mod allowed;
mod round_trip;
mod rules;
mod writer;

use super::{Encode, Frame};
use crate::wire::{Reader, Writer, error::TransportError};

/// The bytes of one frame.
fn encoded(frame: &impl Encode) -> Vec<u8> {
    let mut buffer = vec![0xee; frame.size()];
    let mut writer = Writer::new(&mut buffer);
    frame.encode(&mut writer);
    assert_eq!(writer.remaining(), 0, "size() is not what encode() writes");
    buffer
}

/// The only frame in the bytes.
fn decoded(bytes: &[u8]) -> Result<Frame<'_>, TransportError> {
    let mut reader = Reader::new(bytes);
    let frame = Frame::decode(&mut reader)?;
    assert!(
        reader.is_empty(),
        "{frame:?} leaves {} bytes",
        reader.remaining()
    );
    Ok(frame)
}

/// All frames of a payload.
fn decoded_all(bytes: &[u8]) -> Vec<Frame<'_>> {
    let mut reader = Reader::new(bytes);
    let mut frames = Vec::new();
    while !reader.is_empty() {
        frames.push(Frame::decode(&mut reader).expect("a frame"));
    }
    frames
}
