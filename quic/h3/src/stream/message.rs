//! The receiving half of a stream that carries a message (RFC 9114 §4.1).

use std::marker::PhantomData;

use bytes::{Buf as _, Bytes};
use http::{Method, Request, Response};
use hybriq_proto::StreamId;

use super::{Received, Start};
use crate::{
    connection::Connection,
    error::Violation,
    message::{Content, Head, Section},
    qpack::Decoded,
    wire::frame::{self, Partial},
};

/// The receiving half of a stream that carries a message: a request at a server, a response at a client.
///
/// Give it what arrives with [`on_data`](Self::on_data) and [`on_fin`](Self::on_fin), and take from it with
/// [`poll`](Self::poll). Data is not copied, unless a head arrives in several parts. If the stream is read only when
/// `poll` returns [`Received::NeedData`], the transport's flow control follows the reader.
#[derive(Debug)]
pub struct Receiver<H> {
    id: StreamId,
    at: At,
    /// What arrived and was not taken.
    data: Bytes,
    is_fin: bool,
    /// The beginning of the head of a frame.
    begun: Partial,
    /// The beginning of a field section, or one that waits for entries of the dynamic table.
    section: Vec<u8>,
    stage: Stage,
    content: Content,
    asked: Asked,
    head: PhantomData<fn() -> H>,
}

/// Frames that carry nothing for which a receiver is polled once.
const TURN: usize = 64;

/// Position in the frames of the stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum At {
    /// The head of a frame.
    Head,
    /// DATA, with the number of bytes left.
    Data(u64),
    /// A field section, with the number of bytes left.
    Section(u64),
    /// A field section that is whole, and waits for entries.
    Blocked,
    /// The rest of a frame that nobody needs.
    Skipped(u64),
    /// Bytes without frames, of a session of WebTransport.
    Session,
    /// Nothing more is read.
    End,
}

/// Part of a message that comes next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// The first frame of the stream.
    Start,
    Head,
    Content,
    /// DATA alone (RFC 9114 §4.4).
    Tunnel,
    /// Nothing but frames of unknown types.
    AfterTrailers,
    /// Content and trailers that nobody reads, behind a head that is too large.
    Unread,
}

/// Request that a response answers: the properties that affect its response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Asked {
    /// An ordinary one.
    All,
    Head,
    Connect,
}

impl Receiver<Request<()>> {
    /// Creates the receiver of a request.
    pub fn request(id: StreamId) -> Self {
        Self::new(id, Asked::All)
    }
}

impl Receiver<Response<()>> {
    /// Creates the receiver of the response to a request of this method.
    pub fn response(id: StreamId, method: &Method) -> Self {
        let asked = match *method {
            Method::HEAD => Asked::Head,
            Method::CONNECT => Asked::Connect,
            _ => Asked::All,
        };
        Self::new(id, asked)
    }
}

impl<H> Receiver<H> {
    fn new(id: StreamId, asked: Asked) -> Self {
        Self {
            id,
            at: At::Head,
            data: Bytes::new(),
            is_fin: false,
            begun: Partial::default(),
            section: Vec::new(),
            stage: Stage::Start,
            content: Content::Any,
            asked,
            head: PhantomData,
        }
    }

    /// Returns the id of the stream.
    pub const fn id(&self) -> StreamId {
        self.id
    }

    /// Takes the next data of the stream, in order. No earlier data is held only if the last poll returned
    /// [`Received::NeedData`].
    pub fn on_data(&mut self, data: Bytes) {
        if self.data.is_empty() {
            self.data = data;
        } else {
            self.data = [&self.data[..], &data[..]].concat().into();
        }
    }

    /// Notes that the stream has no more data than was given.
    pub fn on_fin(&mut self) {
        self.is_fin = true;
    }

    /// Returns true if the message is over, or will be at the next poll without an error: nothing more can come.
    pub fn is_end(&self) -> bool {
        let is_over = self.is_fin && self.data.is_empty() && self.is_between_frames();
        self.at == At::End || (is_over && self.stage_may_end() && self.content.on_end().is_ok())
    }

    /// Returns true if the next poll would only ask for data.
    pub fn needs_data(&self) -> bool {
        let may_starve = match self.at {
            At::Head => true,
            At::Data(left) | At::Section(left) | At::Skipped(left) => left > 0,
            At::Blocked | At::Session | At::End => false,
        };
        may_starve && self.data.is_empty() && !self.is_fin
    }

    /// Returns the number of bytes of content that must come, if that is known.
    pub const fn content_left(&self) -> Option<u64> {
        match self.content {
            Content::Exactly(left) => Some(left),
            Content::Nothing => Some(0),
            Content::Any => None,
        }
    }

    /// Returns the bytes of memory that the receiver holds: data that was not taken, and sections that are not
    /// whole or wait.
    pub fn held(&self) -> usize {
        self.data.len() + self.section.capacity()
    }

    /// Returns what the stream is, once its first bytes have arrived. [`poll`](Self::poll) needs no such call.
    ///
    /// # Errors
    /// The peer names a session that cannot exist.
    pub fn start(&mut self, connection: &Connection) -> Result<Option<Start>, Violation> {
        if self.stage != Stage::Start || self.at != At::Head || !connection.takes_sessions() {
            return Ok(Some(Start::Message));
        }
        let (mut begun, mut data) = (self.begun, self.data.clone());
        match begun.take(&mut data, frame::Head::read) {
            Some(head) if head.kind == frame::WEBTRANSPORT_STREAM => {
                self.data = data;
                self.at = At::Session;
                // The length is the id of the session.
                let id = Connection::session_id(StreamId(head.len))?;
                Ok(Some(Start::Session(id)))
            }
            None if !self.is_fin => Ok(None),
            _ => Ok(Some(Start::Message)),
        }
    }

    /// Takes what arrived and was not read: bytes of a session, after [`Received::Session`].
    pub fn take_rest(&mut self) -> Bytes {
        std::mem::take(&mut self.data)
    }

    /// Gives the stream up: it was reset, or nobody reads it. Drops what is held, and cancels the stream in QPACK
    /// (RFC 9204 §2.2.2.2).
    pub fn cancel(&mut self, connection: &mut Connection) {
        if self.at != At::End && self.at != At::Session {
            connection.decoder.cancel(self.id.0);
        }
        self.at = At::End;
        self.data = Bytes::new();
        self.section = Vec::new();
    }

    fn is_between_frames(&self) -> bool {
        self.at == At::Head && !self.begun.is_begun()
    }

    fn stage_may_end(&self) -> bool {
        !matches!(self.stage, Stage::Start | Stage::Head)
    }
}

impl<H: Head> Receiver<H> {
    /// Returns what comes next.
    ///
    /// # Errors
    /// The peer broke a rule. [`Violation::scope`] says whether it ends the stream or the connection; the receiver can
    /// no longer be used.
    pub fn poll(&mut self, connection: &mut Connection) -> Result<Received<H>, Violation> {
        let polled = self.poll_frames(connection);
        if let Ok(Received::Head(_)) = polled {
            self.skip_reserved();
        }
        if self.data.is_empty() {
            // An empty slice would keep the memory of the whole.
            self.data = Bytes::new();
        }
        if polled.is_err() {
            self.cancel(connection);
        }
        polled
    }

    fn poll_frames(&mut self, connection: &mut Connection) -> Result<Received<H>, Violation> {
        let mut frames = 0;
        loop {
            match self.at {
                At::Head if frames == TURN && !self.data.is_empty() => return Ok(Received::Pause),
                At::Head => match self.begun.take(&mut self.data, frame::Head::read) {
                    Some(head) => {
                        frames += 1;
                        if let Some(received) = self.on_frame(head, connection)? {
                            return Ok(received);
                        }
                    }
                    None if self.is_fin => return self.on_end(),
                    None => return Ok(Received::NeedData),
                },
                At::Data(left) => {
                    let data = self.take(left);
                    if data.is_empty() {
                        return self.starved();
                    }
                    self.at = match left - data.len() as u64 {
                        0 => At::Head,
                        left => At::Data(left),
                    };
                    self.content.on_data(data.len())?;
                    return Ok(Received::Data(data));
                }
                At::Section(left) => {
                    if self.section.is_empty() && self.data.len() as u64 >= left {
                        // A section that arrived as a whole is read where it is.
                        let mut data = std::mem::take(&mut self.data);
                        let received = self.on_section(data.split_at(left as usize).0, connection);
                        data.advance(left as usize);
                        self.data = data;
                        return received;
                    }
                    let part = self.take(left);
                    self.collect(&part, left);
                    self.at = At::Section(left - part.len() as u64);
                    if self.at != At::Section(0) {
                        return self.starved();
                    }
                    self.at = At::Blocked;
                }
                At::Blocked => {
                    let section = std::mem::take(&mut self.section);
                    return self.on_section(&section, connection);
                }
                At::Skipped(left) => {
                    let passed = self.take(left).len() as u64;
                    self.at = match left - passed {
                        0 => At::Head,
                        left => At::Skipped(left),
                    };
                    if self.at != At::Head {
                        return self.starved();
                    }
                }
                At::Session | At::End => return Ok(Received::End),
            }
        }
    }

    /// Takes up to `most` bytes of the received data.
    fn take(&mut self, most: u64) -> Bytes {
        let len = most.min(self.data.len() as u64) as usize;
        self.data.split_to(len)
    }

    /// Keeps a part of a section of which `left` bytes are missing. The buffer doubles, but has no room beyond the
    /// section.
    fn collect(&mut self, part: &[u8], left: u64) {
        let section = &mut self.section;
        if section.capacity() - section.len() < part.len() {
            let most = usize::try_from(left).unwrap_or(usize::MAX);
            section.reserve_exact(section.len().max(part.len()).min(most));
        }
        section.extend_from_slice(part);
    }

    /// Nothing is left inside a frame.
    fn starved(&self) -> Result<Received<H>, Violation> {
        if self.is_fin {
            Err(Violation::FrameCut)
        } else {
            Ok(Received::NeedData)
        }
    }

    /// Handles the head of a frame.
    fn on_frame(
        &mut self,
        head: frame::Head,
        connection: &mut Connection,
    ) -> Result<Option<Received<H>>, Violation> {
        let is_first = self.stage == Stage::Start;
        if is_first {
            self.stage = Stage::Head;
        }
        match (head.kind, self.stage) {
            (frame::DATA, Stage::Content | Stage::Tunnel) if head.len == 0 => {}
            (frame::DATA, Stage::Content | Stage::Tunnel) => self.at = At::Data(head.len),
            (frame::HEADERS, Stage::Head | Stage::Content) => {
                if head.len > connection.max_field_section() {
                    self.at = At::Skipped(head.len);
                    // The section is not decoded, so the peer must not wait for it.
                    connection.decoder.cancel(self.id.0);
                    return self.on_too_large().map(Some);
                }
                self.at = At::Section(head.len);
            }
            (frame::DATA | frame::HEADERS, Stage::Unread) => self.at = At::Skipped(head.len),
            (frame::PUSH_PROMISE, _) if connection.side().is_client() => {
                return Err(Violation::PushNotAllowed);
            }
            (
                frame::DATA
                | frame::HEADERS
                | frame::CANCEL_PUSH
                | frame::SETTINGS
                | frame::PUSH_PROMISE
                | frame::GOAWAY
                | frame::MAX_PUSH_ID
                | frame::PRIORITY_UPDATE
                | frame::PRIORITY_UPDATE_PUSH,
                _,
            ) => return Err(Violation::FrameNotAllowed),
            (frame::WEBTRANSPORT_STREAM, _) if connection.takes_sessions() => {
                // The length is the id of the session.
                if !is_first {
                    return Err(Violation::SessionSignalLate);
                }
                let id = StreamId(head.len);
                self.at = At::Session;
                return Connection::session_id(id).map(|id| Some(Received::Session(id)));
            }
            (kind, _) if frame::is_of_http2(kind) => return Err(Violation::FrameOfHttp2),
            _ if head.len > 0 => self.at = At::Skipped(head.len),
            _ => {}
        }
        Ok(None)
    }

    /// Decodes a field section.
    fn on_section(
        &mut self,
        encoded: &[u8],
        connection: &mut Connection,
    ) -> Result<Received<H>, Violation> {
        let pseudo: &[_] = if self.stage == Stage::Head {
            H::PSEUDO
        } else {
            &[]
        };
        let mut section = Section::new(pseudo);
        let decoder = &mut connection.decoder;
        let decoded = decoder.decode(self.id.0, encoded, |field| section.take(field))?;
        self.at = At::Head;
        match decoded {
            Decoded::Blocked => {
                self.section = encoded.to_vec();
                self.at = At::Blocked;
                return Ok(Received::Blocked);
            }
            Decoded::TooLarge => return self.on_too_large(),
            Decoded::Whole => {}
        }
        section.end()?;
        if self.stage != Stage::Head {
            self.stage = Stage::AfterTrailers;
            return Ok(Received::Trailers(section.into_trailers()));
        }
        let head = H::of(section, &mut connection.authority)?;
        if !head.is_interim() {
            self.on_head(&head)?;
        }
        Ok(Received::Head(head))
    }

    /// Notes what the head says about the content.
    fn on_head(&mut self, head: &H) -> Result<(), Violation> {
        self.content = head.content()?;
        self.stage = Stage::Content;
        if self.asked == Asked::Head {
            self.content = Content::Nothing;
        } else if head.opens_tunnel(self.asked == Asked::Connect) {
            self.content = Content::Any;
            self.stage = Stage::Tunnel;
        }
        Ok(())
    }

    /// A head that is too large is for the caller, who may answer it.
    fn on_too_large(&mut self) -> Result<Received<H>, Violation> {
        if self.stage == Stage::Head {
            self.stage = Stage::Unread;
            Ok(Received::HeadTooLarge)
        } else {
            Err(Violation::SectionTooLarge)
        }
    }

    /// Skips frames that mean nothing, so that a message that has nothing else is known to be over.
    fn skip_reserved(&mut self) {
        for _ in 0..TURN {
            let mut rest = &self.data[..];
            let head = frame::Head::read(&mut rest).filter(|head| !frame::is_known(head.kind));
            match head.map(|head| usize::try_from(head.len)) {
                Some(Ok(len)) if self.is_fin && self.is_between_frames() && len <= rest.len() => {
                    let taken = self.data.len() - rest.len() + len;
                    self.data.advance(taken);
                }
                _ => return,
            }
        }
    }

    /// Handles the end of the stream between two frames.
    fn on_end(&mut self) -> Result<Received<H>, Violation> {
        if self.begun.is_begun() {
            return Err(Violation::FrameCut);
        }
        if !self.stage_may_end() {
            return Err(H::INCOMPLETE);
        }
        self.content.on_end()?;
        self.at = At::End;
        Ok(Received::End)
    }
}
