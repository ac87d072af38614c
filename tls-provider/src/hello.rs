//! To be written.

/// What a ClientHello says.
#[derive(Clone, Debug)]
pub struct ClientHello;
/// Why bytes are not a ClientHello.
#[derive(Clone, Debug)]
pub struct HelloError;
