use crate::proto::streams::StreamId;

/// STREAM (RFC 9000 §19.8).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Stream<'a> {
    /// The stream.
    pub id: StreamId,
    /// Where the data starts.
    pub offset: u64,
    /// Whether the stream ends behind the data.
    pub fin: bool,
    /// The data.
    pub data: &'a [u8],
}

/// RESET_STREAM (RFC 9000 §19.4).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ResetStream {
    /// The stream.
    pub id: StreamId,
    /// The application's error code.
    pub code: u64,
    /// Bytes the sender sent at most.
    pub final_size: u64,
}

/// STOP_SENDING (RFC 9000 §19.5).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct StopSending {
    /// The stream.
    pub id: StreamId,
    /// The application's error code.
    pub code: u64,
}
