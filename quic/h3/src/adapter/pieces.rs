//! The stream of a message, cut so that `h3` reads no more of it than it uses.
//!
//! `h3` reads on whenever it is asked for a frame or for data, and keeps what it does not need yet: with
//! frames of one byte it would keep most of a body, whatever the flow control says. So the header of a
//! DATA frame ends a piece, and so does its payload. `h3` also takes an empty DATA frame for the end of
//! the body; those are left out.
//!
//! Before each frame of the control stream, `h3` reads on as well. So each of its frames is a piece.
//!
//! Frames that are nothing to `h3` it skips as long as there are more. So the pieces come in turns, of as many frames
//! as a [`Budget`] has steps.

use std::task::{Context, Poll};

use bytes::{Buf, Bytes};

use crate::adapter::{budget::Budget, varint};

/// Types of frames (RFC 9114 §7.2).
const DATA: u64 = 0;
const HEADERS: u64 = 1;
/// Type of the signal that the rest of a stream belongs to a WebTransport session.
const WEBTRANSPORT: u64 = 0x41;
/// Longest header of a frame, in bytes: two integers.
const LONGEST: usize = 16;

/// Pieces of a stream. Data goes in by [`Pieces::push`] when [`Pieces::next`] returns nothing more, unless that is
/// because its [turn](Pieces::poll_turn) is over.
#[derive(Debug)]
pub(crate) struct Pieces {
    at: At,
    part: Part,
    /// True if each frame is a piece.
    each: bool,
    rest: Bytes,
    /// Start of a header that is not whole.
    held: [u8; LONGEST],
    have: usize,
    /// Frames that may begin in this turn.
    budget: Budget,
}

/// Position in the frames of a message.
#[derive(Clone, Copy, Debug)]
enum At {
    Header,
    /// The payload of a DATA frame, with the number of bytes left.
    Data(u64),
    /// The payload of another frame.
    Other(u64),
    /// Bytes that are no frames of a message.
    Raw,
}

/// Part of a message (RFC 9114 §4.1), as far as its frames have come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    Start,
    Head,
    Body,
    Trailers,
}

/// End of a stream.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// The stream may end here, or `h3` finds the fault.
    Clean,
    /// The start of a header, which `h3` must get to find the fault.
    InHeader(Bytes),
    /// The middle of a DATA frame.
    InData,
}

/// The header of a frame.
struct Header {
    kind: u64,
    payload: u64,
    /// Length of the header itself.
    len: usize,
}

impl Pieces {
    /// Returns those of a request or a response.
    pub(crate) fn of_message() -> Self {
        Self {
            at: At::Header,
            part: Part::Start,
            each: false,
            rest: Bytes::new(),
            held: [0; LONGEST],
            have: 0,
            budget: Budget::new(),
        }
    }

    /// Returns those of a control stream.
    pub(crate) fn of_control() -> Self {
        Self {
            each: true,
            ..Self::of_message()
        }
    }

    /// Returns those of another stream, which is not cut.
    pub(crate) fn uncut() -> Self {
        Self {
            at: At::Raw,
            ..Self::of_message()
        }
    }

    /// Sets the next data of the stream.
    pub(crate) fn push(&mut self, data: Bytes) {
        self.rest = data;
    }

    /// Is ready if a frame may begin. Otherwise wakes the task, whose next turn begins.
    pub(crate) fn poll_turn(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        self.budget.poll_turn(cx)
    }

    /// Returns true if data waits for the next turn.
    pub(crate) fn is_turn_over(&self) -> bool {
        self.budget.is_spent() && !self.rest.is_empty()
    }

    /// Returns the next piece of the data, which is not empty, unless a frame begins that is one too many for this
    /// turn.
    pub(crate) fn next(&mut self) -> Option<Bytes> {
        while !self.rest.is_empty() {
            let piece = match self.at {
                At::Header if self.budget.is_spent() => return None,
                At::Raw => std::mem::take(&mut self.rest),
                At::Data(left) => {
                    let passed = left.min(self.rest.len() as u64);
                    self.at = if passed == left {
                        At::Header
                    } else {
                        At::Data(left - passed)
                    };
                    self.rest.split_to(passed as usize)
                }
                At::Header | At::Other(_) => self.other(),
            };
            if !piece.is_empty() {
                return Some(piece);
            }
        }
        None
    }

    /// Returns where the stream ends.
    pub(crate) fn end(&mut self) -> End {
        if self.have > 0 {
            let have = std::mem::take(&mut self.have);
            return End::InHeader(Bytes::copy_from_slice(
                self.held.get(..have).unwrap_or_default(),
            ));
        }
        match self.at {
            At::Data(_) => End::InData,
            At::Header | At::Other(_) | At::Raw => End::Clean,
        }
    }

    /// Returns what comes up to the payload of the next DATA frame; nothing if all of it is left out.
    fn other(&mut self) -> Bytes {
        let mut passed = 0;
        while passed < self.rest.len() {
            if let At::Other(left) = self.at {
                let payload = left.min((self.rest.len() - passed) as u64);
                passed += payload as usize;
                if payload < left {
                    self.at = At::Other(left - payload);
                    continue;
                }
                self.at = At::Header;
                if self.each {
                    break;
                }
                continue;
            }
            if self.budget.is_spent() {
                break;
            }
            let held = self.have;
            let Some(header) = self.header(passed) else {
                // All that is left belongs to the header.
                self.have += self.rest.len() - passed;
                return std::mem::take(&mut self.rest).split_to(passed);
            };
            self.have = 0;
            self.budget.step();
            let behind = passed + header.len - held;
            if header.kind == DATA
                && header.payload == 0
                && matches!(self.part, Part::Head | Part::Body)
            {
                self.part = Part::Body;
                let piece = self.rest.split_to(passed);
                self.rest.advance(behind - passed);
                return piece;
            }
            self.begin(&header);
            if held > 0 {
                self.rest.advance(behind);
                return Bytes::copy_from_slice(self.held.get(..header.len).unwrap_or_default());
            }
            passed = behind;
            match self.at {
                At::Raw => passed = self.rest.len(),
                At::Data(_) => break,
                At::Header if self.each => break,
                At::Header | At::Other(_) => {}
            }
        }
        self.rest.split_to(passed)
    }

    /// Reads the header at a position of the data, behind what is held. Copies it to there.
    fn header(&mut self, at: usize) -> Option<Header> {
        let from = self.rest.get(at..).unwrap_or_default();
        let free = self.held.get_mut(self.have..).unwrap_or_default();
        let count = free.len().min(from.len());
        for (to, from) in free.iter_mut().zip(from) {
            *to = *from;
        }
        let whole = self.held.get(..self.have + count).unwrap_or_default();
        let mut rest = whole;
        let kind = varint::read(&mut rest)?;
        let payload = if kind == WEBTRANSPORT {
            0
        } else {
            varint::read(&mut rest)?
        };
        let len = whole.len() - rest.len();
        Some(Header { kind, payload, len })
    }

    fn begin(&mut self, header: &Header) {
        self.part = match (header.kind, self.part) {
            (HEADERS, Part::Body) => Part::Trailers,
            (HEADERS, Part::Start) => Part::Head,
            (DATA, Part::Head) => Part::Body,
            (_, part) => part,
        };
        self.at = match (header.kind, header.payload) {
            (WEBTRANSPORT, _) => At::Raw,
            (_, 0) => At::Header,
            (DATA, payload) => At::Data(payload),
            (_, payload) => At::Other(payload),
        };
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::adapter::budget::tests::Wakes;

    /// Cuts a stream that comes in chunks of a size.
    fn cut(pieces: &mut Pieces, stream: &[u8], size: usize) -> Vec<Bytes> {
        let mut all = Vec::new();
        for chunk in stream.chunks(size) {
            pieces.push(Bytes::copy_from_slice(chunk));
            all.extend(std::iter::from_fn(|| pieces.next()));
        }
        all
    }

    /// HEADERS, an unknown frame, DATA of two bytes, one, none and 100, trailers.
    fn message(empty: &[u8]) -> Vec<u8> {
        let head = [1, 2, 0, 0, 0x21, 1, 7, 0, 2, 5, 6, 0, 1, 8];
        let mut stream = [&head[..], empty, &[0, 0x40, 100]].concat();
        stream.resize(stream.len() + 100, 9);
        stream.extend([1, 2, 0, 0]);
        stream
    }

    #[test]
    fn data_frames_are_pieces_of_their_own() {
        let pieces = cut(&mut Pieces::of_message(), &message(&[0, 0]), 1000);
        let lens: Vec<_> = pieces.iter().map(Bytes::len).collect();
        assert_eq!(lens, [9, 2, 2, 1, 3, 100, 4]);
    }

    #[test]
    fn empty_data_frames_are_left_out_of_chunks_of_any_size() {
        let stream = message(&[0, 0, 0, 0x80, 0, 0, 0, 0x40, 0, 0]);
        for size in 1..stream.len() {
            let mut pieces = Pieces::of_message();
            assert_eq!(cut(&mut pieces, &stream, size).concat(), message(&[]));
            assert_eq!(pieces.end(), End::Clean);
        }
    }

    /// `h3` finds the fault of those outside of a body.
    #[test]
    fn empty_data_frames_elsewhere_stay() {
        for stream in [
            &[0, 0, 1, 2, 0, 0][..],
            &[1, 2, 0, 0, 0, 1, 9, 1, 2, 0, 0, 0, 0],
        ] {
            for size in 1..stream.len() {
                assert_eq!(
                    cut(&mut Pieces::of_message(), stream, size).concat(),
                    stream
                );
            }
        }
    }

    #[test]
    fn an_end_in_the_middle_of_a_frame_is_told() {
        for size in 1..8 {
            let mut pieces = Pieces::of_message();
            cut(&mut pieces, &[1, 1, 0, 0, 3, 5], size);
            assert_eq!(pieces.end(), End::InData);
            cut(&mut pieces, &[6, 7, 0], size);
            assert_eq!(pieces.end(), End::InHeader(Bytes::from_static(&[0])));
        }
    }

    /// Frames that are nothing to the caller do not keep its task from letting others run.
    #[test]
    fn frames_come_in_turns() {
        const FRAMES: usize = 1000;
        for (empty, kept) in [([0, 0], 0), ([0x21, 0], 2)] {
            let stream = [&[1, 2, 0, 0][..], &empty.repeat(FRAMES), &[0, 1, 9]].concat();
            for size in [1, 7, 1200, stream.len()] {
                for mut pieces in [Pieces::of_message(), Pieces::of_control()] {
                    let wakes = Arc::new(Wakes::default());
                    let waker = wakes.clone().into();
                    let mut cx = Context::from_waker(&waker);
                    let mut passed = 0;
                    for chunk in stream.chunks(size) {
                        pieces.push(Bytes::copy_from_slice(chunk));
                        loop {
                            let pauses = wakes.count();
                            while let Some(piece) = pieces.next() {
                                assert!(piece.len() <= 4 + 2 * Budget::STEPS as usize);
                                passed += piece.len();
                            }
                            let is_over = pieces.is_turn_over();
                            assert_eq!(
                                pieces.poll_turn(&mut cx).is_pending(),
                                wakes.count() > pauses
                            );
                            if !is_over {
                                break;
                            }
                        }
                    }
                    assert_eq!(wakes.count(), (FRAMES + 2) / Budget::STEPS as usize);
                    assert_eq!(passed, 4 + kept * FRAMES + 3);
                }
            }
        }
    }

    #[test]
    fn sessions_are_not_cut() {
        let stream = [0x40, 0x41, 0, 0, 0, 0, 0, 1];
        for size in 1..=stream.len() {
            let pieces = cut(&mut Pieces::of_message(), &stream, size);
            assert_eq!(pieces.concat(), stream);
        }
        let pieces = cut(&mut Pieces::uncut(), &stream, 3);
        assert_eq!(pieces.len(), 3);
    }
}
