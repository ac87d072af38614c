//! Heads and trailers that are sent.

use http::{HeaderMap, Request, StatusCode};
use hybriq_proto::StreamId;

use super::Connection;
use crate::{
    message::Fields,
    qpack::FieldRef,
    wire::{
        frame::{DATA, HEADERS, Head},
        varint,
    },
};

/// The peer accepts no field section of this size (RFC 9114 §4.2.2). Nothing was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
#[error("the fields have {size} bytes, of which the peer takes {most}")]
pub struct TooLarge {
    /// Size of the section, in bytes (RFC 9114 §4.2.2).
    pub size: u64,
    /// Largest size that the peer accepts.
    pub most: u64,
}

impl Connection {
    /// Appends the HEADERS frame of a request. Its protocol of extended CONNECT is among its extensions, as
    /// [`Protocol`](crate::Protocol).
    ///
    /// Send the [output](Self::take_output) of the encoder stream before it or together with it. This applies to
    /// all three functions.
    ///
    /// # Errors
    /// The server accepts no fields of this size.
    pub fn write_request<T>(
        &mut self,
        stream: StreamId,
        request: &Request<T>,
        out: &mut Vec<u8>,
    ) -> Result<(), TooLarge> {
        let mut fields = Fields::new();
        fields.request(request);
        self.write(stream, &fields, out)
    }

    /// Appends the HEADERS frame of a response. `extra` are fields that the map does not have: none that are
    /// [sensitive](http::HeaderValue::is_sensitive) or belong to connections, with values as in the map.
    ///
    /// # Errors
    /// The client accepts no fields of this size.
    pub fn write_response<'f>(
        &mut self,
        stream: StreamId,
        status: StatusCode,
        fields: &'f HeaderMap,
        extra: impl IntoIterator<Item = FieldRef<'f>>,
        out: &mut Vec<u8>,
    ) -> Result<(), TooLarge> {
        let mut all = Fields::new();
        all.response(&status, fields, extra);
        self.write(stream, &all, out)
    }

    /// Appends the HEADERS frame of trailers.
    ///
    /// # Errors
    /// The peer accepts no fields of this size.
    pub fn write_trailers(
        &mut self,
        stream: StreamId,
        trailers: &HeaderMap,
        out: &mut Vec<u8>,
    ) -> Result<(), TooLarge> {
        let mut fields = Fields::new();
        fields.trailers(trailers);
        self.write(stream, &fields, out)
    }

    fn write(
        &mut self,
        stream: StreamId,
        fields: &Fields<'_>,
        out: &mut Vec<u8>,
    ) -> Result<(), TooLarge> {
        let size = fields.size();
        let settings = self.peer_settings();
        let most = settings.and_then(|settings| settings.max_field_section_size);
        if let Some(most) = most.filter(|most| size > *most) {
            return Err(TooLarge { size, most });
        }
        // A section takes fewer bytes than its size, which counts 32 more for each field.
        let bytes = match size {
            0..0x40 => 1,
            0x40..0x4000 => 2,
            _ => 4,
        };
        out.reserve(1 + bytes + size as usize / 2);
        out.push(HEADERS as u8);
        let start = out.len() + bytes;
        out.resize(start, 0);
        let [_, encoder, _] = &mut self.output;
        self.encoder.encode(stream.0, fields.iter(), out, encoder);
        let len = (out.len() - start) as u64;
        if let Some(place) = out.get_mut(start - bytes..start) {
            match bytes {
                1 => place.fill(len as u8),
                2 => place.copy_from_slice(&(len as u16 | 0x4000).to_be_bytes()),
                _ => place.copy_from_slice(&(len as u32 | 0x8000_0000).to_be_bytes()),
            }
        }
        Ok(())
    }
}

/// Appends the head of a DATA frame, before `len` bytes of content.
pub fn put_data_head(len: u64, out: &mut Vec<u8>) {
    let len = len.min(varint::MAX);
    Head { kind: DATA, len }.put(out);
}
