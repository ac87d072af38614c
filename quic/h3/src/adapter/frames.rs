//! A look at the peer's frames before `h3` sees them.
//!
//! `h3` collects every frame but DATA as a whole, however long it says it is, and ignores
//! PRIORITY_UPDATE. So frames are followed here, without copying the stream.

use std::fmt;

use bytes::{Buf, Bytes, BytesMut};
use h3::error::Code;

use crate::adapter::{
    MAX_FIELD_SECTION,
    goaway::Goaway,
    message::{self, Fault, Part},
    varint,
};

/// Types of frames (RFC 9114 §7.2).
const DATA: u64 = 0;
const HEADERS: u64 = 1;
const CANCEL_PUSH: u64 = 3;
const SETTINGS: u64 = 4;
const GOAWAY: u64 = 7;
const MAX_PUSH_ID: u64 = 0xd;
/// Type of the signal that the rest of a stream belongs to a WebTransport session.
const WEBTRANSPORT: u64 = 0x41;
/// Type of PRIORITY_UPDATE frames for requests (RFC 9218 §7.1).
const PRIORITY_UPDATE: u64 = 0xf_0700;
/// Largest number of fields of a section: a `HeaderMap` takes no more, and panics.
pub(crate) const MOST_FIELDS: usize = 24_576;
/// Longest frame of the control stream that is looked into, in bytes.
const LONGEST_CONTROL: u64 = 1024;

/// Error: the peer breaks a rule, or a limit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Violation {
    pub(crate) scope: Scope,
    /// Code of HTTP/3.
    pub(crate) code: u64,
    pub(crate) reason: String,
}

/// Part that a violation ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scope {
    Stream,
    Connection,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.reason)
    }
}

impl std::error::Error for Violation {}

impl Violation {
    pub(crate) fn on_stream(code: Code, reason: &str) -> Self {
        Self {
            scope: Scope::Stream,
            code: code.value(),
            reason: reason.to_owned(),
        }
    }

    pub(crate) fn on_connection(code: Code, reason: &str) -> Self {
        Self {
            scope: Scope::Connection,
            code: code.value(),
            reason: reason.to_owned(),
        }
    }
}

/// A PRIORITY_UPDATE frame (RFC 9218 §7.1).
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PriorityUpdate {
    /// Stream of the request.
    pub(crate) stream: u64,
    /// The priority field.
    pub(crate) field: Bytes,
}

/// Frames that are of interest to the connection.
pub(crate) enum Notice {
    /// A PRIORITY_UPDATE frame.
    Priority(PriorityUpdate),
    /// The settings of the peer: identifiers and values.
    Settings(Vec<(u64, u64)>),
}

/// Stream whose frames are followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stream {
    /// A request, at its server.
    Request,
    /// A response, at its client.
    Response,
    /// The control stream of a client, at its server.
    ControlOfClient,
    /// The control stream of a server, at its client.
    ControlOfServer,
    /// A stream without frames.
    Raw,
}

/// Position in the frames of a stream.
#[derive(Debug)]
pub(crate) struct Frames {
    stream: Stream,
    at: At,
    limit: u64,
    /// Largest size of a field section that `h3` takes.
    section_limit: u64,
    /// First bytes of an integer that is not whole yet.
    integer: [u8; 8],
    have: usize,
    /// Part of the message that the next field section is.
    part: Part,
    /// Position in the stream of the name `:protocol` of the request.
    protocol: Option<u64>,
    /// Number of bytes that were followed.
    offset: u64,
    /// Number of bytes before the frame that is followed.
    start: u64,
    /// Value of the last MAX_PUSH_ID frame.
    max_push: u64,
    goaway: Option<Goaway>,
}

#[derive(Debug)]
enum At {
    /// The type of a frame.
    Type,
    /// The length of a frame of this type.
    Length(u64),
    /// The payload of a DATA frame, with the number of bytes left.
    Data(u64),
    /// The payload of a frame that is not looked into.
    Other(u64),
    /// A field section of this length, with the number of bytes left. Those before are held by the caller.
    Section { len: u64, left: u64 },
    /// The payload of a frame of the control stream that is looked into.
    Collected {
        kind: u64,
        left: u64,
        payload: BytesMut,
    },
    /// Bytes that are no frames.
    Raw,
}

impl Frames {
    /// Returns the position at the start of a stream, behind the type of one that is unidirectional.
    pub(crate) fn new(stream: Stream, limit: u64) -> Self {
        Self {
            stream,
            at: if stream == Stream::Raw {
                At::Raw
            } else {
                At::Type
            },
            limit,
            section_limit: u64::MAX,
            integer: [0; 8],
            have: 0,
            part: if stream == Stream::Response {
                Part::Response
            } else {
                Part::Request
            },
            protocol: None,
            offset: 0,
            start: 0,
            max_push: 0,
            goaway: None,
        }
    }

    /// Tells about the server's GOAWAY frames.
    pub(crate) fn telling(self, goaway: Goaway) -> Self {
        Self {
            goaway: Some(goaway),
            ..self
        }
    }

    /// Sets the largest size of a field section that `h3` takes.
    pub(crate) fn section_limit(self, section_limit: u64) -> Self {
        Self {
            section_limit,
            ..self
        }
    }

    /// Returns true for the stream of a request or a response.
    pub(crate) fn is_message(&self) -> bool {
        matches!(self.stream, Stream::Request | Stream::Response)
    }

    /// Returns true once the head of the message has come.
    pub(crate) fn is_past_head(&self) -> bool {
        self.part == Part::Trailers
    }

    /// Returns true for the control stream of the peer.
    pub(crate) fn is_control(&self) -> bool {
        matches!(
            self.stream,
            Stream::ControlOfClient | Stream::ControlOfServer
        )
    }

    /// Returns the number of bytes, at the end of those that were followed, of a frame that is not whole.
    /// DATA frames need not be.
    pub(crate) fn unfinished(&self) -> usize {
        match self.at {
            At::Raw | At::Data(_) => 0,
            At::Type if self.have == 0 => 0,
            _ => (self.offset - self.start) as usize,
        }
    }

    /// Takes the position in the stream of the name `:protocol` of the request.
    pub(crate) fn take_protocol(&mut self) -> Option<u64> {
        self.protocol.take()
    }

    /// Follows the next bytes of the stream, behind the [unfinished](Self::unfinished) ones that are held. Calls
    /// `notice` for each whole frame of interest.
    ///
    /// # Errors
    /// The peer breaks a rule, or a frame other than DATA is longer than the limit.
    pub(crate) fn follow(
        &mut self,
        held: &[u8],
        mut data: &[u8],
        mut notice: impl FnMut(Notice),
    ) -> Result<(), Violation> {
        let end = self.offset + data.len() as u64;
        while !data.is_empty() {
            self.offset = end - data.len() as u64;
            match &mut self.at {
                At::Raw => return Ok(()),
                At::Data(left) | At::Other(left) => {
                    let passed = (*left).min(data.len() as u64);
                    data.advance(passed as usize);
                    *left -= passed;
                    if *left == 0 {
                        self.at = At::Type;
                    }
                }
                At::Section { len, left } => {
                    let (len, passed) = (*len, (*left).min(data.len() as u64));
                    let (part, rest) = data.split_at(passed as usize);
                    data = rest;
                    *left -= passed;
                    if *left > 0 {
                        continue;
                    }
                    self.at = At::Type;
                    self.offset = end - data.len() as u64 - len;
                    if part.len() as u64 == len {
                        // A section that came as a whole is read where it is.
                        self.read_fields(part)?;
                    } else {
                        let before = held.len().saturating_sub(len as usize - part.len());
                        let before = held.get(before..).unwrap_or_default();
                        self.read_fields(&[before, part].concat())?;
                    }
                }
                At::Collected {
                    kind,
                    left,
                    payload,
                } => {
                    let passed = (*left).min(data.len() as u64);
                    let (part, rest) = data.split_at(passed as usize);
                    data = rest;
                    *left -= passed;
                    if *left > 0 {
                        payload.extend_from_slice(part);
                        continue;
                    }
                    let (kind, mut payload) = (*kind, std::mem::take(payload));
                    self.at = At::Type;
                    if payload.is_empty() {
                        // A frame that came as a whole is read where it is.
                        self.offset = end - (data.len() + part.len()) as u64;
                        self.read(kind, part, &mut notice)?;
                    } else {
                        payload.extend_from_slice(part);
                        self.offset = end - (data.len() + payload.len()) as u64;
                        self.read(kind, &payload, &mut notice)?;
                    }
                }
                At::Type | At::Length(_) => {
                    if self.have == 0 && matches!(self.at, At::Type) {
                        self.start = self.offset;
                    }
                    let Some(value) = self.integer(&mut data) else {
                        break;
                    };
                    self.at = self.after(value)?;
                }
            }
        }
        self.offset = end;
        Ok(())
    }

    /// Returns the position after an integer.
    fn after(&self, value: u64) -> Result<At, Violation> {
        Ok(match self.at {
            At::Type if value == WEBTRANSPORT => At::Raw,
            At::Type => At::Length(value),
            At::Length(kind) if kind != DATA && value > self.limit => {
                return Err(Violation {
                    scope: if self.is_control() {
                        Scope::Connection
                    } else {
                        Scope::Stream
                    },
                    code: Code::H3_EXCESSIVE_LOAD.value(),
                    reason: format!("a frame of {value} bytes, where {} are allowed", self.limit),
                });
            }
            At::Length(_) if value == 0 => At::Type,
            At::Length(HEADERS) if self.is_message() => At::Section {
                len: value,
                left: value,
            },
            At::Length(kind) if self.looks_into(kind, value) => At::Collected {
                kind,
                left: value,
                payload: BytesMut::new(),
            },
            At::Length(DATA) => At::Data(value),
            At::Length(_) => At::Other(value),
            At::Data(_) | At::Other(_) | At::Section { .. } | At::Collected { .. } | At::Raw => {
                At::Raw
            }
        })
    }

    /// Returns true if a frame of this type and length is looked into.
    fn looks_into(&self, kind: u64, len: u64) -> bool {
        match self.stream {
            Stream::ControlOfClient => {
                let known = [CANCEL_PUSH, SETTINGS, MAX_PUSH_ID, PRIORITY_UPDATE];
                known.contains(&kind) && len <= LONGEST_CONTROL
            }
            Stream::ControlOfServer => [SETTINGS, GOAWAY].contains(&kind) && len <= LONGEST_CONTROL,
            Stream::Request | Stream::Response | Stream::Raw => false,
        }
    }

    /// Looks into a frame, whose payload starts at the offset.
    fn read(
        &mut self,
        kind: u64,
        mut payload: &[u8],
        notice: &mut impl FnMut(Notice),
    ) -> Result<(), Violation> {
        match kind {
            // Nothing was promised (RFC 9114 §7.2.3).
            CANCEL_PUSH => {
                let reason = "a push that was not promised is cancelled";
                return Err(Violation::on_connection(Code::H3_ID_ERROR, reason));
            }
            SETTINGS => {
                let mut settings = Vec::new();
                while !payload.is_empty() {
                    let pair = (varint::read(&mut payload), varint::read(&mut payload));
                    let (Some(id), Some(value)) = pair else {
                        let reason = "the SETTINGS frame ends in the middle of a setting";
                        return Err(Violation::on_connection(Code::H3_FRAME_ERROR, reason));
                    };
                    settings.push((id, value));
                }
                notice(Notice::Settings(settings));
            }
            GOAWAY => {
                // `h3` judges ids that are malformed.
                if let Some(first) = varint::read(&mut payload) {
                    if let Some(goaway) = &self.goaway {
                        goaway.announce(first);
                    }
                }
            }
            MAX_PUSH_ID => {
                let id = varint::read(&mut payload).unwrap_or_default();
                if id < self.max_push {
                    let reason = "MAX_PUSH_ID is less than before";
                    return Err(Violation::on_connection(Code::H3_ID_ERROR, reason));
                }
                self.max_push = id;
            }
            _ => {
                let stream = varint::read(&mut payload);
                // RFC 9218 §7.1: the stream of a request.
                let Some(stream) = stream.filter(|stream| stream % 4 == 0) else {
                    let reason = "PRIORITY_UPDATE for a stream that carries no request";
                    return Err(Violation::on_connection(Code::H3_ID_ERROR, reason));
                };
                let field = Bytes::copy_from_slice(payload);
                notice(Notice::Priority(PriorityUpdate { stream, field }));
            }
        }
        Ok(())
    }

    /// Looks into a field section.
    fn read_fields(&mut self, section: &[u8]) -> Result<(), Violation> {
        let findings = message::inspect(section, self.part).map_err(|fault| match fault {
            Fault::Malformed(reason) => Violation::on_stream(Code::H3_MESSAGE_ERROR, reason),
            Fault::Unreadable(error) => {
                let code = Code::QPACK_DECOMPRESSION_FAILED;
                Violation::on_connection(code, &error.to_string())
            }
        })?;
        // `h3` answers a head that is too large, but nobody hears of such trailers.
        if self.part == Part::Trailers && findings.size > self.section_limit {
            let (size, most) = (findings.size, self.section_limit);
            let reason = format!("trailers of {size} bytes, where {most} are allowed");
            return Err(Violation::on_stream(Code::H3_EXCESSIVE_LOAD, &reason));
        }
        if findings.count > MOST_FIELDS && self.section_limit > MAX_FIELD_SECTION {
            let count = findings.count;
            let reason = format!("{count} fields; at most {MOST_FIELDS} are allowed");
            return Err(Violation::on_stream(Code::H3_EXCESSIVE_LOAD, &reason));
        }
        if let Some(at) = findings.protocol {
            self.protocol = Some(self.offset + at as u64);
        }
        if !findings.interim {
            self.part = Part::Trailers;
        }
        Ok(())
    }

    /// Reads a variable-length integer (RFC 9000 §16), which may come in parts.
    fn integer(&mut self, data: &mut &[u8]) -> Option<u64> {
        while data.has_remaining() {
            if let Some(byte) = self.integer.get_mut(self.have) {
                *byte = data.get_u8();
            }
            self.have += 1;
            let mut so_far = self.integer.get(..self.have).unwrap_or_default();
            if let Some(value) = varint::read(&mut so_far) {
                self.have = 0;
                return Some(value);
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Follows a stream in pieces of a size. Returns the updates.
    fn follow(frames: &mut Frames, stream: &[u8], size: usize) -> Result<usize, Violation> {
        let mut updates = 0;
        let mut held = Vec::new();
        for piece in stream.chunks(size) {
            frames.follow(&held, piece, |notice| {
                let Notice::Priority(update) = notice else {
                    return;
                };
                assert_eq!(update.stream, 4);
                assert_eq!(update.field, "u=1");
                updates += 1;
            })?;
            held.extend(piece);
            held.drain(..held.len() - frames.unfinished());
        }
        Ok(updates)
    }

    /// HEADERS, two DATA frames of which one is long, an unknown frame, an empty one.
    fn request() -> Vec<u8> {
        let mut stream = vec![1, 3, 0, 0, 0xd1, 0, 0x41, 0];
        stream.resize(stream.len() + 0x100, 9);
        stream.extend([0, 0, 0x21, 2, 1, 1, 0x40, 0x21, 0]);
        stream
    }

    #[test]
    fn frames_are_followed_in_pieces_of_any_size() {
        for size in 1..300 {
            let mut frames = Frames::new(Stream::Request, 3);
            assert_eq!(follow(&mut frames, &request(), size), Ok(0));
            // HEADERS of 4 bytes come next, one more than allowed.
            let error = follow(&mut frames, &[1, 4], size).unwrap_err();
            assert_eq!((error.scope, error.code), (Scope::Stream, 0x107), "{size}");
        }
    }

    /// The map of the fields that `h3` makes has a bound of its own.
    #[test]
    fn too_many_fields_end_their_stream() {
        // `age: 0` from the static table.
        let section = |start: &[u8], count: usize| {
            let mut section = [&[0, 0], start].concat();
            section.resize(count + 2, 0xc2);
            let len = section.len() as u32 | 0x8000_0000;
            [&[1][..], &len.to_be_bytes(), &section].concat()
        };
        // `:method`, `:status`.
        for (stream, start) in [(Stream::Request, [0xd1]), (Stream::Response, [0xd9])] {
            for size in [1, 1000, usize::MAX] {
                let frames = || Frames::new(stream, 1 << 20);
                let most = section(&start, MOST_FIELDS);
                assert_eq!(follow(&mut frames(), &most, size), Ok(0));
                let more = section(&start, MOST_FIELDS + 1);
                let error = follow(&mut frames(), &more, size).unwrap_err();
                assert_eq!((error.scope, error.code), (Scope::Stream, 0x107), "{size}");
                let mut bounded = frames().section_limit(MAX_FIELD_SECTION);
                assert_eq!(follow(&mut bounded, &more, size), Ok(0));
                // Trailers.
                let mut frames = frames();
                assert_eq!(follow(&mut frames, &most, size), Ok(0));
                let trailers = section(&[], MOST_FIELDS + 1);
                let error = follow(&mut frames, &trailers, size).unwrap_err();
                assert_eq!((error.scope, error.code), (Scope::Stream, 0x107), "{size}");
            }
        }
    }

    /// Interim responses (RFC 9114 §4.1) have heads of their own.
    #[test]
    fn heads_and_trailers_are_told_apart() {
        // `:status: 103`, `:status: 200`, `age: 0`.
        let (early, head, trailers) = ([1, 3, 0, 0, 0xd8], [1, 3, 0, 0, 0xd9], [1, 3, 0, 0, 0xc2]);
        let fine = [&early[..], &early, &head, &[0, 1, 7], &trailers].concat();
        let twice = [head, head].concat();
        let request = [&[1, 3, 0, 0, 0xd1][..], &trailers, &head].concat();
        for size in 1..8 {
            let mut frames = Frames::new(Stream::Response, 100);
            assert_eq!(follow(&mut frames, &fine, size), Ok(0));
            for (stream, bytes) in [(Stream::Response, &twice), (Stream::Request, &request)] {
                let error = follow(&mut Frames::new(stream, 100), bytes, size).unwrap_err();
                assert_eq!((error.scope, error.code), (Scope::Stream, 0x10e), "{size}");
            }
        }
    }

    #[test]
    fn priority_updates_are_read_on_the_control_stream() {
        // SETTINGS, PRIORITY_UPDATE, one of a push (ignored), PRIORITY_UPDATE.
        let update = [0x80, 0xf, 7, 0, 4, 4, b'u', b'=', b'1'];
        let push = [0x80, 0xf, 7, 1, 1, 0];
        let stream = [&[4, 0][..], &update, &push, &update].concat();
        for size in 1..stream.len() {
            let mut frames = Frames::new(Stream::ControlOfClient, 100);
            assert_eq!(follow(&mut frames, &stream, size), Ok(2));
        }
    }

    #[test]
    fn the_lowest_goaway_counts() {
        let goaway = Goaway::default();
        let refuses = |id: u64| goaway.refuses(id.try_into().expect("a stream"));
        let mut frames = Frames::new(Stream::ControlOfServer, 100).telling(goaway.clone());
        assert_eq!(follow(&mut frames, &[4, 0], 1), Ok(0));
        assert!(!goaway.is_announced());
        assert!(!refuses(1 << 60));
        for (frame, first) in [([7, 2, 0x40, 8], 8), ([7, 2, 0x40, 4], 4)] {
            assert_eq!(follow(&mut frames, &frame, 1), Ok(0));
            assert!(goaway.is_announced());
            assert!(refuses(first));
            assert!(!refuses(first - 4));
        }
    }

    #[test]
    fn other_streams_have_no_frames() {
        assert_eq!(
            follow(&mut Frames::new(Stream::Raw, 5), &[0xff; 100], 7),
            Ok(0)
        );
        let mut session = vec![0x40, 0x41, 0];
        session.extend([0xff; 100]);
        assert_eq!(
            follow(&mut Frames::new(Stream::Request, 5), &session, 7),
            Ok(0)
        );
    }
}
