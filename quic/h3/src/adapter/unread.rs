//! Received data on its way to `h3`.

use std::task::{Context, Poll};

use bytes::{Bytes, BytesMut};
use h3::error::Code;

use crate::adapter::{
    frames::{Frames, Notice, Violation},
    message,
    pieces::{End, Pieces},
};

/// Received data of a stream that `h3` has not got yet.
///
/// `h3` looks at all parts of a frame whenever it gets another one. So it gets frames as a whole, except
/// for the payload of DATA frames, which it passes on as it comes.
#[derive(Debug)]
pub(crate) struct Unread {
    /// The type of a unidirectional stream, which comes before its frames.
    kind: Bytes,
    pieces: Pieces,
    frames: Frames,
    /// The beginning of a frame that is not whole.
    held: BytesMut,
    /// Number of bytes of frames that `h3` got.
    passed: u64,
    renaming: Renaming,
}

/// Whether the field `:protocol` is renamed, for which the request is copied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Renaming {
    Off,
    On,
    Done,
}

impl Unread {
    pub(crate) fn new(frames: Frames) -> Self {
        Self {
            kind: Bytes::new(),
            pieces: if frames.is_message() {
                Pieces::of_message()
            } else if frames.is_control() {
                Pieces::of_control()
            } else {
                Pieces::uncut()
            },
            frames,
            held: BytesMut::new(),
            passed: 0,
            renaming: Renaming::Off,
        }
    }

    /// Sets data that was read already, and the number of bytes of the stream's type at its front.
    pub(crate) fn set_head(&mut self, mut head: Bytes, type_len: usize) {
        self.kind = head.split_to(type_len.min(head.len()));
        self.pieces.push(head);
    }

    /// Renames the field `:protocol` of the request.
    pub(crate) fn with_renaming(mut self) -> Self {
        self.renaming = Renaming::On;
        self
    }

    /// Returns true if the field `:protocol` was renamed.
    pub(crate) fn has_renamed(&self) -> bool {
        self.renaming == Renaming::Done
    }

    /// Returns true once the head of the message has come.
    pub(crate) fn is_past_head(&self) -> bool {
        self.frames.is_past_head()
    }

    /// Returns the number of bytes that wait for the rest of their frame.
    pub(crate) fn held(&self) -> usize {
        self.held.len()
    }

    /// Takes the next data of the stream, when [`next`](Self::next) returns nothing more in its turn.
    pub(crate) fn push(&mut self, data: Bytes) {
        self.pieces.push(data);
    }

    /// Is ready if more may be read. Otherwise wakes the task, whose next turn begins.
    pub(crate) fn poll_turn(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        self.pieces.poll_turn(cx)
    }

    /// Returns true if data waits for the next turn.
    pub(crate) fn is_turn_over(&self) -> bool {
        self.pieces.is_turn_over()
    }

    /// Returns the next data for `h3`. Calls `notice` for each whole frame of interest.
    ///
    /// # Errors
    /// The peer breaks a rule or a limit.
    pub(crate) fn next(
        &mut self,
        mut notice: impl FnMut(Notice),
    ) -> Result<Option<Bytes>, Violation> {
        if !self.kind.is_empty() {
            return Ok(Some(std::mem::take(&mut self.kind)));
        }
        while let Some(piece) = self.pieces.next() {
            self.frames.follow(&self.held, &piece, &mut notice)?;
            let whole = self.whole(piece);
            if !whole.is_empty() {
                return Ok(Some(self.rename(whole)));
            }
        }
        Ok(None)
    }

    /// Returns what of the data belongs to whole frames, with what is held of the first.
    fn whole(&mut self, mut data: Bytes) -> Bytes {
        let unfinished = self.frames.unfinished();
        if unfinished == 0 && self.held.is_empty() {
            return data;
        }
        if unfinished > data.len() {
            self.held.extend_from_slice(&data);
            return Bytes::new();
        }
        let rest = data.split_off(data.len() - unfinished);
        if !self.held.is_empty() {
            self.held.extend_from_slice(&data);
            data = std::mem::take(&mut self.held).freeze();
        }
        self.held.extend_from_slice(&rest);
        data
    }

    fn rename(&mut self, data: Bytes) -> Bytes {
        let start = self.passed;
        self.passed += data.len() as u64;
        if self.renaming != Renaming::On {
            return data;
        }
        let at = self.frames.take_protocol();
        let at = at.and_then(|at| usize::try_from(at.checked_sub(start)?).ok());
        let Some(at) = at else {
            return data;
        };
        let copy = |data: Bytes| BytesMut::from(&data[..]);
        let mut data = data.try_into_mut().unwrap_or_else(copy);
        if let Some(first) = data.get_mut(at) {
            message::rename(first);
            self.renaming = Renaming::Done;
        }
        data.freeze()
    }

    /// Returns what `h3` gets at the end of the stream, for it finds most ends in the middle of a frame.
    /// `None` if it got everything.
    ///
    /// # Errors
    /// The stream ends in the middle of a DATA frame.
    pub(crate) fn at_end(&mut self) -> Result<Option<Bytes>, Violation> {
        match self.pieces.end() {
            End::Clean if self.held.is_empty() => Ok(None),
            End::Clean => Ok(Some(std::mem::take(&mut self.held).freeze())),
            End::InHeader(start) => Ok(Some(start)),
            End::InData => {
                let reason = "the stream ends in the middle of a DATA frame";
                Err(Violation::on_connection(Code::H3_FRAME_ERROR, reason))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::adapter::frames::Stream;

    /// Largest frame of these tests.
    const MOST: u64 = 1 << 20;

    fn unread(stream: Stream) -> Unread {
        Unread::new(Frames::new(stream, MOST))
    }

    /// Returns what `h3` gets of a stream that comes in chunks of a size.
    fn passed(unread: &mut Unread, stream: &[u8], size: usize) -> Vec<Bytes> {
        let mut all = Vec::new();
        for chunk in stream.chunks(size) {
            unread.push(Bytes::copy_from_slice(chunk));
            while let Some(data) = unread.next(|_| {}).expect("no rule is broken") {
                all.push(data);
            }
        }
        all
    }

    /// A frame of this type, with a payload of `len` bytes.
    fn frame(kind: u8, len: u32) -> Vec<u8> {
        let mut frame = vec![kind];
        frame.extend((len | 0x8000_0000).to_be_bytes());
        frame.resize(frame.len() + len as usize, 0x21);
        frame
    }

    /// However small the parts are in which frames come, `h3` gets each frame once.
    #[test]
    fn frames_that_trickle_in_are_passed_as_a_whole() {
        let streams = [
            Stream::Response,
            Stream::ControlOfClient,
            Stream::ControlOfServer,
        ];
        for stream in streams {
            let frames = [
                frame(0x21, MOST as u32),
                frame(0x21, 3),
                frame(0x21, 70_000),
            ];
            let mut unread = unread(stream);
            let passed = passed(&mut unread, &frames.concat(), 1);
            assert!(passed == frames, "{} parts", passed.len());
            assert_eq!(unread.held(), 0);
        }
    }

    /// A section of a request, the body and trailers behind it.
    #[test]
    fn requests_that_trickle_in_are_passed_frame_by_frame() {
        let get = [0, 0, 0xd1, 0xd7, 0xc1, 0x50, 1, b'a'];
        let mut head = vec![1, 0x80, 0, 0x50, 0];
        head.extend(get);
        // `age: 0` from the static table.
        head.resize(head.len() + 0x5000 - get.len(), 0xc2);
        let (data, trailers) = ([0, 2, 5, 6], [1, 3, 0, 0, 0xc2]);
        let all = [&head[..], &data, &trailers].concat();
        let passed = passed(&mut unread(Stream::Request), &all, 1);
        let expected = [&head[..], &data[..2], &[5], &[6], &trailers];
        assert!(passed == expected, "{} parts", passed.len());
    }

    /// A frame that is not whole keeps nothing before it.
    #[test]
    fn what_is_whole_does_not_wait() {
        let mut unread = unread(Stream::Request);
        let get = [1, 8, 0, 0, 0xd1, 0xd7, 0xc1, 0x50, 1, b'a'];
        let both = [&get[..], &[0x21, 3, 1]].concat();
        assert_eq!(passed(&mut unread, &both, 100), [&get[..]]);
        assert_eq!(unread.held(), 3);
        assert_eq!(passed(&mut unread, &[2, 3], 100), [&[0x21, 3, 1, 2, 3][..]]);
        assert_eq!(unread.at_end(), Ok(None));
    }

    /// Many frames that come at once are passed one by one on a control stream: `h3` reads more before
    /// each.
    #[test]
    fn frames_of_a_control_stream_are_cut() {
        let stream = [0x21, 0, 0x21, 1, 7, 0x21, 0];
        let frames = [&[0x21, 0][..], &[0x21, 1, 7], &[0x21, 0]];
        for size in 1..=stream.len() {
            let mut unread = unread(Stream::ControlOfClient);
            assert_eq!(passed(&mut unread, &stream, size), frames);
        }
        let head = Bytes::from_static(&[0, 0x21, 0, 0x21]);
        let mut unread = unread(Stream::ControlOfClient);
        unread.set_head(head, 1);
        let mut next = || unread.next(|_| {}).expect("no rule is broken");
        assert_eq!(next().as_deref(), Some(&[0][..]));
        assert_eq!(next().as_deref(), Some(&[0x21, 0][..]));
        assert_eq!(next(), None);
    }

    #[test]
    fn the_end_in_the_middle_of_a_frame_is_left_to_h3() {
        for size in 1..4 {
            let mut unread = unread(Stream::Response);
            assert!(passed(&mut unread, &[1, 9, 0, 0], size).is_empty());
            let rest = unread.at_end().expect("no rule is broken");
            assert_eq!(rest.as_deref(), Some(&[1, 9, 0, 0][..]));
            assert_eq!(unread.at_end(), Ok(None));
        }
    }
}
