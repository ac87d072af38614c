//! Streams of a connection, as its frames open and close them (RFC 9113 §5.1).

use super::frames::{DATA, Frame, GOAWAY, HEADERS, PRIORITY, RST_STREAM};

/// Error codes (RFC 9113 §7).
const PROTOCOL_ERROR: u32 = 0x1;
const FLOW_CONTROL_ERROR: u32 = 0x3;
const FRAME_SIZE_ERROR: u32 = 0x6;
const REFUSED_STREAM: u32 = 0x7;

/// Streams that the client has opened, and frames that may make h2 reset a stream although it is not open.
#[derive(Debug)]
pub(super) struct Streams {
    /// In the order of their numbers.
    open: Vec<Stream>,
    /// The last one that the client opened.
    last: u32,
    /// The last one that the server takes.
    most: u32,
    /// Requests that came, other than those that h2 answers itself.
    requests: u64,
    /// Frames for which h2 may hold the reset of a stream that is not open.
    late: usize,
}

#[derive(Clone, Copy, Debug)]
struct Stream {
    id: u32,
    /// The client has sent its end.
    is_peer_ended: bool,
    /// The server has sent its end.
    is_local_ended: bool,
    /// A response has begun.
    is_answered: bool,
}

impl Streams {
    pub(super) const fn new() -> Self {
        Self {
            open: Vec::new(),
            last: 0,
            most: u32::MAX,
            requests: 0,
            late: 0,
        }
    }

    /// Returns the number of resets that h2 may hold, at most.
    pub(super) fn unsent_resets(&self) -> usize {
        self.open.len() + self.late
    }

    #[cfg(test)]
    pub(super) fn is_empty(&self) -> bool {
        self.open.is_empty()
    }

    /// Notes that the resets for which late frames gave cause have been sent.
    pub(super) fn on_resets_sent(&mut self) {
        self.late = 0;
    }

    /// Notes a frame of the client. Returns the length of its data, if it is for an open stream.
    pub(super) fn on_received(&mut self, frame: Frame) -> Option<u64> {
        match frame.kind {
            HEADERS => self.on_headers(frame),
            DATA => {
                let Some(stream) = self.stream(frame.stream) else {
                    self.late += 1;
                    return None;
                };
                if frame.is_end_stream() {
                    stream.is_peer_ended = true;
                    self.remove_ended(frame.stream);
                }
                return Some(frame.data_len());
            }
            // One that depends on itself is an error of a stream.
            PRIORITY => self.late += 1,
            // h2 may keep the stream until it can send something.
            RST_STREAM => self.late += usize::from(self.remove(frame.stream).is_some()),
            _ => {}
        }
        None
    }

    fn on_headers(&mut self, frame: Frame) {
        if frame.stream > self.last && frame.stream <= self.most {
            self.last = frame.stream;
            self.requests += 1;
            self.open.push(Stream {
                id: frame.stream,
                is_peer_ended: frame.is_end_stream(),
                is_local_ended: false,
                is_answered: false,
            });
        } else if let Some(stream) = self.stream(frame.stream) {
            stream.is_peer_ended |= frame.is_end_stream();
            self.remove_ended(frame.stream);
        } else {
            self.late += 1;
        }
    }

    /// Notes a frame of the server, to which so many requests have come. Returns true if it resets the stream of a
    /// request that failed before it came to the server.
    pub(super) fn on_sent(&mut self, frame: Frame, came: impl FnOnce() -> u64) -> bool {
        match frame.kind {
            HEADERS | DATA => {
                if frame.kind == DATA && !frame.is_end_stream() {
                    return false;
                }
                if let Some(stream) = self.stream(frame.stream) {
                    stream.is_answered = true;
                    stream.is_local_ended |= frame.is_end_stream();
                    self.remove_ended(frame.stream);
                }
                false
            }
            RST_STREAM => self.on_reset_sent(frame, came()),
            GOAWAY => {
                self.most = frame.last_stream();
                let kept = self.open.partition_point(|stream| stream.id <= self.most);
                let ignored = (self.open.len() - kept) as u64;
                self.requests = self.requests.saturating_sub(ignored);
                self.open.truncate(kept);
                false
            }
            _ => false,
        }
    }

    fn on_reset_sent(&mut self, frame: Frame, came: u64) -> bool {
        let stream = self.remove(frame.stream);
        // Nothing tells which of the requests came.
        let has_come = came >= self.requests;
        match (frame.error_code(), stream) {
            (PROTOCOL_ERROR | FLOW_CONTROL_ERROR | FRAME_SIZE_ERROR, None) => {
                self.late = self.late.saturating_sub(1);
                self.requests += 1;
                true
            }
            (_, None) => {
                self.late = self.late.saturating_sub(1);
                false
            }
            (_, Some(_)) if has_come => false,
            (PROTOCOL_ERROR | FLOW_CONTROL_ERROR | FRAME_SIZE_ERROR, Some(stream))
                if !stream.is_answered =>
            {
                true
            }
            // There were too many at once, or its fields were too large.
            (PROTOCOL_ERROR | REFUSED_STREAM, Some(_)) => {
                self.requests -= 1;
                false
            }
            _ => false,
        }
    }

    fn position(&self, id: u32) -> Option<usize> {
        self.open.binary_search_by_key(&id, |stream| stream.id).ok()
    }

    fn stream(&mut self, id: u32) -> Option<&mut Stream> {
        let at = self.position(id)?;
        self.open.get_mut(at)
    }

    fn remove(&mut self, id: u32) -> Option<Stream> {
        let at = self.position(id)?;
        Some(self.open.remove(at))
    }

    fn remove_ended(&mut self, id: u32) {
        let stream = self.stream(id);
        if stream.is_some_and(|stream| stream.is_peer_ended && stream.is_local_ended) {
            self.remove(id);
        }
    }
}
