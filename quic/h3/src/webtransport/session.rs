//! One end of a session.

use bytes::Bytes;
use hybriq_proto::Direction;

use super::{
    Capsule, Decoder, Terms,
    flow::{Flow, Given},
};
use crate::error::Violation;

/// One end of a session, without I/O: the capsules on the stream of its request, and its flow control. The streams
/// themselves belong to the caller.
///
/// # The loop of a driver
/// 1. Give the content of the request's stream to [`on_data`](Self::on_data), and its end to [`on_fin`](Self::on_fin);
///    read the [events](Self::poll_event) afterwards.
/// 2. Whenever [`has_output`](Self::has_output), send what [`take_output`](Self::take_output) returns as the content of
///    that stream. After the capsule that closes the session, end the stream.
/// 3. Report what the streams of the session use.
///
/// What is held is limited: the output to one capsule of each type.
#[derive(Debug)]
pub struct Session {
    decoder: Decoder,
    /// `None` without flow control.
    flow: Option<Flow>,
    /// WT_DRAIN_SESSION waits to be sent, or was sent.
    drain: Option<Told>,
    /// WT_CLOSE_SESSION waits to be sent, or was sent.
    close: Option<(Told, Capsule)>,
    /// The peer has closed the session.
    is_closed: bool,
    credit: bool,
    draining: bool,
    closed: Option<(u32, String)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Told {
    Waiting,
    Sent,
}

/// Event from the peer of a session.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Event {
    /// The peer allows more streams or more data.
    Credit,
    /// The peer asks this end to end the session soon.
    Drain,
    /// The peer has closed the session.
    Closed {
        /// Code of the application.
        code: u32,
        /// Reason, which may be empty.
        reason: String,
    },
}

impl Session {
    /// Creates one end.
    pub fn new(terms: Terms) -> Self {
        Self {
            decoder: Decoder::default(),
            flow: terms
                .flow
                .map(|windows| Flow::new(windows.own, windows.peer)),
            drain: None,
            close: None,
            is_closed: false,
            credit: false,
            draining: false,
            closed: None,
        }
    }

    /// Returns true if the session has flow control.
    pub const fn has_flow_control(&self) -> bool {
        self.flow.is_some()
    }

    /// Takes content of the request's stream.
    ///
    /// # Errors
    /// The peer broke a rule, which ends the session: reset and stop the stream of its request with the code.
    pub fn on_data(&mut self, mut data: Bytes) -> Result<(), Violation> {
        if self.is_closed && !data.is_empty() {
            return Err(Violation::CapsuleAfterClose);
        }
        while let Some(capsule) = self.decoder.next(&mut data)? {
            self.on_capsule(capsule)?;
            if self.is_closed && !data.is_empty() {
                return Err(Violation::CapsuleAfterClose);
            }
        }
        Ok(())
    }

    /// Takes the end of the request's stream, which closes the session with code 0 if the peer has not closed it
    /// (draft-ietf-webtrans-http3 §6).
    ///
    /// # Errors
    /// The stream ends inside a capsule.
    pub fn on_fin(&mut self) -> Result<(), Violation> {
        if !self.decoder.is_between() {
            return Err(Violation::CapsuleCut);
        }
        if !self.is_closed {
            self.is_closed = true;
            self.closed = Some((0, String::new()));
        }
        Ok(())
    }

    fn on_capsule(&mut self, capsule: Capsule) -> Result<(), Violation> {
        // Without flow control, its capsules are ignored (draft-ietf-webtrans-http3 §5.1).
        match (capsule, &mut self.flow) {
            (Capsule::Close { code, reason }, _) => {
                self.is_closed = true;
                self.closed = Some((code, reason));
            }
            (Capsule::Drain, _) => self.draining = true,
            (Capsule::MaxData(limit), Some(flow)) => self.credit |= flow.got.data.raise(limit)?,
            (Capsule::MaxStreams(direction, limit), Some(flow)) => {
                self.credit |= flow.on_max_streams(direction, limit)?;
            }
            (Capsule::OfStream, Some(_)) => return Err(Violation::CapsuleOfStream),
            _ => {}
        }
        Ok(())
    }

    /// Returns the next event.
    pub fn poll_event(&mut self) -> Option<Event> {
        if std::mem::take(&mut self.credit) {
            return Some(Event::Credit);
        }
        if std::mem::take(&mut self.draining) {
            return Some(Event::Drain);
        }
        let (code, reason) = self.closed.take()?;
        Some(Event::Closed { code, reason })
    }

    /// Returns true if [`Event::Credit`] comes next.
    pub const fn has_credit(&self) -> bool {
        self.credit
    }

    /// Takes [`Event::Credit`] alone.
    pub fn take_credit(&mut self) -> bool {
        std::mem::take(&mut self.credit)
    }

    /// Asks the peer to end the session soon, once.
    pub fn drain(&mut self) {
        self.drain.get_or_insert(Told::Waiting);
    }

    /// Closes the session, once. The first [`LONGEST_REASON`](super::LONGEST_REASON) bytes of the reason are sent.
    pub fn close(&mut self, code: u32, reason: &str) {
        let capsule = || Capsule::close(code, reason);
        self.close.get_or_insert_with(|| (Told::Waiting, capsule()));
    }

    /// Returns true if there is something to send.
    pub fn has_output(&self) -> bool {
        if let Some((told, _)) = &self.close {
            return *told == Told::Waiting;
        }
        let of_flow = self.flow.as_ref().is_some_and(Flow::has_output);
        of_flow || self.drain == Some(Told::Waiting)
    }

    /// Takes what is to be sent. Nothing follows the capsule that closes the session.
    pub fn take_output(&mut self) -> Bytes {
        let mut out = Vec::new();
        if self.is_closing() {
            return Bytes::new();
        }
        if let Some(flow) = &mut self.flow {
            flow.write(&mut out);
        }
        if self.drain == Some(Told::Waiting) {
            self.drain = Some(Told::Sent);
            Capsule::Drain.write(&mut out);
        }
        if let Some((told, capsule)) = &mut self.close {
            *told = Told::Sent;
            capsule.write(&mut out);
        }
        out.into()
    }

    /// Returns true once the capsule that closes the session was taken.
    pub const fn is_closing(&self) -> bool {
        matches!(self.close, Some((Told::Sent, _)))
    }

    /// Notes that the peer opened a stream.
    ///
    /// # Errors
    /// The peer may open no more streams.
    pub fn on_stream(&mut self, direction: Direction) -> Result<(), Violation> {
        let given = self.given(|flow| flow.given.streams(direction));
        if given.is_none_or(|given| given.take(1)) {
            Ok(())
        } else {
            Err(Violation::SessionStreamLimit)
        }
    }

    /// Notes that a stream of the peer is over, so that it may open another.
    pub fn on_stream_over(&mut self, direction: Direction) {
        if let Some(given) = self.given(|flow| flow.given.streams(direction)) {
            given.give_back(1);
        }
    }

    /// Notes that this many bytes of stream data arrived, not counting the headers of streams.
    ///
    /// # Errors
    /// The peer may not send that many.
    pub fn on_received(&mut self, bytes: u64) -> Result<(), Violation> {
        let given = self.given(|flow| &mut flow.given.data);
        if given.is_none_or(|given| given.take(bytes)) {
            Ok(())
        } else {
            Err(Violation::SessionDataLimit)
        }
    }

    /// Notes that this many bytes of streams were read, or are not needed.
    pub fn on_consumed(&mut self, bytes: u64) {
        if let Some(given) = self.given(|flow| &mut flow.given.data) {
            given.give_back(bytes);
        }
    }

    fn given<'a>(
        &'a mut self,
        of: impl FnOnce(&'a mut Flow) -> &'a mut Given,
    ) -> Option<&'a mut Given> {
        self.flow.as_mut().map(of)
    }

    /// Uses one of the streams that the peer allows. If there is none, returns false and informs the peer; an
    /// [`Event::Credit`] follows.
    pub fn take_stream(&mut self, direction: Direction) -> bool {
        let Some(flow) = &mut self.flow else {
            return true;
        };
        flow.got.streams(direction).take(1) == 1
    }

    /// Notes that a stream that was taken was not opened.
    pub fn give_back_stream(&mut self, direction: Direction) {
        if let Some(flow) = &mut self.flow {
            flow.got.streams(direction).give_back(1);
            self.credit = true;
        }
    }

    /// Uses up to this many of the bytes that the peer allows. If there are none, returns 0 and informs the peer; an
    /// [`Event::Credit`] follows.
    pub fn take_data(&mut self, most: u64) -> u64 {
        match &mut self.flow {
            Some(flow) if most > 0 => flow.got.data.take(most),
            _ => most,
        }
    }

    /// Notes that bytes that were taken were not sent: their stream was reset.
    pub fn give_back_data(&mut self, bytes: u64) {
        if let Some(flow) = self.flow.as_mut().filter(|_| bytes > 0) {
            flow.got.data.give_back(bytes);
            self.credit = true;
        }
    }

    /// Returns the bytes of memory that the session holds besides itself.
    pub fn held(&self) -> usize {
        self.decoder.held()
    }
}
