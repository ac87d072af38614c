//! The `CONNECTION_CLOSE` frame.

use crate::wire::{FrameType, Reader, VarInt, Writer, error::Violation, frame::Encode, limits};

/// `CONNECTION_CLOSE` (RFC 9000 §19.19).
///
/// When the frame is written, the reason is cut to [`limits::CLOSE_REASON`] bytes, and by
/// [`FrameWriter::close`](crate::wire::frame::FrameWriter::close) to the bytes that fit.
///
/// Exhaustive: the specification of the frame fixes its fields.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ConnectionClose<'a> {
    /// Closed by the transport (0x1c).
    Transport {
        /// The error code.
        code: u64,
        /// Type of the frame at fault, if it is known. Never PADDING: on the wire its type means
        /// that no frame is known.
        frame: Option<FrameType>,
        /// Reason for humans.
        reason: &'a [u8],
    },
    /// Closed by the application (0x1d).
    Application {
        /// The application's error code.
        code: u64,
        /// Reason for humans.
        reason: &'a [u8],
    },
}

impl<'a> ConnectionClose<'a> {
    pub(in crate::wire::frame) fn decode(
        ty: FrameType,
        reader: &mut Reader<'a>,
    ) -> Result<Self, Violation> {
        let code = reader.varint()?;
        if ty == FrameType::APPLICATION_CLOSE {
            return Ok(Self::Application {
                code,
                reason: reader.prefixed()?,
            });
        }
        Ok(Self::Transport {
            code,
            frame: Some(FrameType(reader.varint()?)).filter(|ty| *ty != FrameType::PADDING),
            reason: reader.prefixed()?,
        })
    }

    pub(in crate::wire::frame) const fn frame_type(&self) -> FrameType {
        match self {
            Self::Transport { .. } => FrameType::CONNECTION_CLOSE,
            Self::Application { .. } => FrameType::APPLICATION_CLOSE,
        }
    }

    /// Returns the frame with its reason cut so that it fits into `space` bytes, or `None` if it
    /// does not fit without one.
    pub(in crate::wire::frame) fn shrunk_to(mut self, space: usize) -> Option<Self> {
        let room = space.checked_sub(self.fixed_size())?;
        let len = self.reason().len().min(room);
        let length_size = VarInt::saturating(len as u64).size();
        let len = len.min(room.checked_sub(length_size)?);
        let (Self::Transport { reason, .. } | Self::Application { reason, .. }) = &mut self;
        *reason = cut(reason, len);
        Some(self)
    }

    /// Returns the bytes before the length of the reason.
    fn fixed_size(&self) -> usize {
        match *self {
            Self::Transport { code, frame, .. } => {
                1 + VarInt::saturating(code).size() + VarInt::saturating(on_wire(frame)).size()
            }
            Self::Application { code, .. } => 1 + VarInt::saturating(code).size(),
        }
    }

    /// Returns the reason as it is written.
    fn reason(&self) -> &'a [u8] {
        let (Self::Transport { reason, .. } | Self::Application { reason, .. }) = *self;
        cut(reason, limits::CLOSE_REASON)
    }
}

impl Encode for ConnectionClose<'_> {
    const ACK_ELICITING: bool = false;

    fn size(&self) -> usize {
        let len = self.reason().len();
        self.fixed_size() + VarInt::saturating(len as u64).size() + len
    }

    fn encode(&self, writer: &mut Writer<'_>) {
        writer.varint(self.frame_type().0);
        match *self {
            Self::Transport { code, frame, .. } => {
                writer.varint(code);
                writer.varint(on_wire(frame));
            }
            Self::Application { code, .. } => writer.varint(code),
        }
        writer.prefixed(self.reason());
    }
}

/// Returns the field that names the frame at fault, 0 if none is known (RFC 9000 §19.19).
const fn on_wire(frame: Option<FrameType>) -> u64 {
    match frame {
        Some(FrameType(ty)) => ty,
        None => 0,
    }
}

/// Returns at most `len` bytes of the reason, without splitting a UTF-8 character.
pub(in crate::wire::frame) fn cut(reason: &[u8], len: usize) -> &[u8] {
    let Some((head, tail)) = reason.split_at_checked(len) else {
        return reason;
    };
    let is_continuation = |byte: &u8| byte & 0xc0 == 0x80;
    if !tail.first().is_some_and(is_continuation) {
        return head;
    }
    let lead = head
        .iter()
        .rposition(|byte| !is_continuation(byte))
        .unwrap_or(0);
    head.split_at_checked(lead).map_or(head, |(whole, _)| whole)
}
