//! What HTTP/3 puts on streams: types and lengths, settings.

pub(crate) mod capsule;
pub(crate) mod datagram;
pub(crate) mod frame;
pub(crate) mod settings;
pub(crate) mod varint;
