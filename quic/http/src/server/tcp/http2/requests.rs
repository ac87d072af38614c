//! The requests of a connection, as its frames show them.

use crate::versions::http2::{
    Late, Side, Streams,
    frames::{CONTINUATION, DATA, Frame, GOAWAY, HEADERS, PRIORITY, RST_STREAM},
};

/// Error code of streams that were not processed (RFC 9113 §7).
const REFUSED_STREAM: u32 = 0x7;

/// Requests beyond SETTINGS_MAX_CONCURRENT_STREAMS that are excused because the client did not know the limit yet.
const EXCUSED: u32 = 256;

/// Requests that the client has begun.
#[derive(Debug)]
pub(super) struct Requests {
    streams: Streams<Request>,
    /// The last stream that the server accepts.
    most: u32,
    /// Number of all requests. A frame that makes h2 reset a stream that does not exist counts as one.
    count: u64,
    /// True if the last field block began a request.
    is_last_new: bool,
    /// Length of that field block, as far as its frames have announced it.
    block: u64,
    /// The open stream whose trailers that field block has, until they are counted.
    trailers: Option<u32>,
    /// Bytes of the trailers of closed streams, until they are reported.
    closed: u64,
    /// True if the client has seen the settings.
    has_settings: bool,
    excused: u32,
}

/// An open stream.
#[derive(Debug)]
struct Request {
    begun: Begun,
    /// Bytes that its trailers take.
    trailers: u64,
}

/// When a request began.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Begun {
    BeforeSettings,
    Later,
}

impl Requests {
    pub(super) const fn new() -> Self {
        Self {
            streams: Streams::new(),
            most: u32::MAX,
            count: 0,
            is_last_new: false,
            block: 0,
            trailers: None,
            closed: 0,
            has_settings: false,
            excused: 0,
        }
    }

    /// Returns the number of open streams.
    pub(super) fn open(&self) -> usize {
        self.streams.len()
    }

    /// Returns the number of requests with complete fields. `is_in_block` is true if the last field block is
    /// incomplete.
    pub(super) fn whole(&self, is_in_block: bool) -> u64 {
        self.count
            .saturating_sub((is_in_block && self.is_last_new).into())
    }

    /// Notes a frame of the client. Returns the length of its data, if it is for an open stream.
    pub(super) fn on_received(&mut self, frame: Frame, late: &mut Late) -> Option<u64> {
        let is_open = self.streams.get(frame.stream).is_some();
        match frame.kind {
            HEADERS if self.is_request(frame.stream) => {
                self.count += 1;
                let begun = if self.has_settings {
                    Begun::Later
                } else {
                    Begun::BeforeSettings
                };
                let trailers = 0;
                self.streams.open(frame.stream, Request { begun, trailers });
            }
            HEADERS | DATA if !is_open && frame.stream <= self.most => late.add(),
            // That resets a stream, which need not exist.
            PRIORITY if !is_open && frame.depends_on_itself() => {
                self.count += 1;
                late.add();
            }
            RST_STREAM if is_open => {
                let request = self.streams.remove(frame.stream);
                self.on_closed(request);
                // h2 may keep the stream until it can send something.
                late.add();
            }
            _ => self.has_settings |= frame.is_settings_ack(),
        }
        match frame.kind {
            HEADERS => {
                self.is_last_new = !is_open && self.streams.get(frame.stream).is_some();
                self.block = frame.len();
                self.trailers = is_open.then_some(frame.stream);
            }
            CONTINUATION => self.block += frame.len(),
            _ => {}
        }
        if frame.is_end_stream() {
            let request = self.streams.end(frame.stream, Side::Peer);
            self.on_closed(request);
        }
        (is_open && frame.kind == DATA).then(|| frame.data_len())
    }

    /// Returns the length of the last field block, as far as its frames have announced it.
    pub(super) fn block(&self) -> u64 {
        self.block
    }

    /// Counts the field block that has just ended, if it has trailers. `count` returns the bytes that they take.
    pub(super) fn on_whole_block(&mut self, count: impl FnOnce(u64) -> u64) {
        let Some(stream) = self.trailers.take() else {
            return;
        };
        let bytes = count(self.block);
        match self.streams.get(stream) {
            Some(request) => request.trailers += bytes,
            None => self.closed += bytes,
        }
    }

    /// Returns the bytes of trailers of streams that were closed since the last call.
    pub(super) fn take_closed(&mut self) -> u64 {
        std::mem::take(&mut self.closed)
    }

    fn on_closed(&mut self, request: Option<Request>) {
        self.closed += request.map_or(0, |request| request.trailers);
    }

    fn is_request(&self, stream: u32) -> bool {
        self.streams.is_new(stream) && stream <= self.most
    }

    /// Notes a frame of the server.
    pub(super) fn on_sent(&mut self, frame: Frame, late: &mut Late) {
        match frame.kind {
            RST_STREAM => {
                let request = self.streams.remove(frame.stream);
                match request.as_ref().map(|request| request.begun) {
                    None => late.on_reset_sent(),
                    Some(Begun::BeforeSettings)
                        if frame.error_code() == REFUSED_STREAM && self.excused < EXCUSED =>
                    {
                        self.excused += 1;
                        self.count = self.count.saturating_sub(1);
                    }
                    Some(_) => {}
                }
                self.on_closed(request);
            }
            GOAWAY => {
                self.most = frame.last_stream();
                for request in self.streams.truncate(self.most) {
                    self.count = self.count.saturating_sub(1);
                    self.closed += request.trailers;
                }
            }
            _ if frame.is_end_stream() => {
                let request = self.streams.end(frame.stream, Side::Local);
                self.on_closed(request);
            }
            _ => {}
        }
    }
}
