//! Frames of packets in qlog.

use std::time::Duration;

use hybriq_proto::{
    events::KeyLevel,
    wire::{
        error::Code,
        frame::{
            Ack, ConnectionClose, Direction, Frame, FrameReader, FrameType, NewConnectionId,
            ResetStreamAt,
        },
    },
};

use crate::{
    json::{List, Object},
    schema::Schema,
};

/// Largest number of frames that are listed for one packet. A peer can send hundreds of tiny frames
/// in one packet.
const MOST: usize = 64;

/// Writes the frames of a packet. Returns the number of frames left out.
pub(crate) fn write(
    list: &mut List<'_>,
    mut frames: FrameReader<'_>,
    schema: Schema,
    exponent: u8,
) -> usize {
    for _ in 0..MOST {
        let Some((frame, size)) = frames.next() else {
            return 0;
        };
        list.object(|object| {
            let mut fields = Fields {
                object,
                schema,
                size: size as u64,
            };
            fields.write(&frame, exponent);
        });
    }
    frames.count()
}

/// Returns the exponent that scales the delays of ACK frames in packets of this level.
pub(crate) const fn ack_delay_exponent(level: KeyLevel, announced: u8) -> u8 {
    match level {
        KeyLevel::OneRtt | KeyLevel::ZeroRtt => announced,
        KeyLevel::Initial | KeyLevel::Handshake => 3,
    }
}

/// Writes the name of a transport error, and its number if the name does not contain it.
pub(crate) fn write_code(object: &mut Object<'_>, key: &str, code: Code, number: NumberKey) {
    let name = match code {
        Code::NO_ERROR => "no_error",
        Code::INTERNAL_ERROR => "internal_error",
        Code::CONNECTION_REFUSED => "connection_refused",
        Code::FLOW_CONTROL_ERROR => "flow_control_error",
        Code::STREAM_LIMIT_ERROR => "stream_limit_error",
        Code::STREAM_STATE_ERROR => "stream_state_error",
        Code::FINAL_SIZE_ERROR => "final_size_error",
        Code::FRAME_ENCODING_ERROR => "frame_encoding_error",
        Code::TRANSPORT_PARAMETER_ERROR => "transport_parameter_error",
        Code::CONNECTION_ID_LIMIT_ERROR => "connection_id_limit_error",
        Code::PROTOCOL_VIOLATION => "protocol_violation",
        Code::INVALID_TOKEN => "invalid_token",
        Code::APPLICATION_ERROR => "application_error",
        Code::CRYPTO_BUFFER_EXCEEDED => "crypto_buffer_exceeded",
        Code::KEY_UPDATE_ERROR => "key_update_error",
        Code::AEAD_LIMIT_REACHED => "aead_limit_reached",
        Code::NO_VIABLE_PATH => "no_viable_path",
        _ => "",
    };
    if !name.is_empty() {
        object.text(key, name);
    } else if code.alert().is_some() {
        object.shown(key, format_args!("crypto_error_{:#05x}", code.0));
    } else {
        match number {
            NumberKey::Same => object.uint(key, code.0),
            NumberKey::Own(number) => {
                object.text(key, "unknown");
                object.uint(number, code.0);
            }
        }
    }
}

/// Field for the number of a code without a name.
#[derive(Clone, Copy)]
pub(crate) enum NumberKey {
    /// The same field as the name.
    Same,
    /// A separate field.
    Own(&'static str),
}

impl NumberKey {
    pub(crate) const fn of(schema: Schema) -> Self {
        match schema {
            Schema::V03 => Self::Same,
            Schema::Draft13 => Self::Own("error_code"),
        }
    }
}

/// Fields of one frame.
struct Fields<'a, 'b> {
    object: &'a mut Object<'b>,
    schema: Schema,
    /// Bytes of the frame.
    size: u64,
}

impl Fields<'_, '_> {
    fn write(&mut self, frame: &Frame<'_>, exponent: u8) {
        let (name, stream) = frame.in_qlog();
        self.object.text("frame_type", name);
        if let Some(id) = stream {
            self.object.uint("stream_id", id);
        }
        match frame {
            Frame::Padding(_) => return self.padding(),
            Frame::Ack(ack) => self.ack(ack, exponent),
            Frame::ResetStream(frame) => {
                self.application_code(frame.code);
                self.object.uint("final_size", frame.final_size);
            }
            Frame::ResetStreamAt(frame) => self.reset_stream_at(*frame),
            Frame::StopSending(frame) => self.application_code(frame.code),
            Frame::Crypto(frame) => return self.data(frame.offset, frame.data.len()),
            Frame::NewToken(frame) => {
                let len = frame.token.len() as u64;
                self.object.object("token", |token| {
                    token.object("raw", |raw| raw.uint("length", len));
                });
            }
            Frame::Stream(frame) => {
                if frame.fin {
                    self.object.flag("fin", true);
                }
                return self.data(frame.offset, frame.data.len());
            }
            Frame::Datagram(frame) => return self.raw(Some(frame.data.len())),
            Frame::MaxData(frame) => self.object.uint("maximum", frame.max),
            Frame::MaxStreamData(frame) => self.object.uint("maximum", frame.max),
            Frame::MaxStreams(frame) => {
                self.stream_type(frame.direction);
                self.object.uint("maximum", frame.max);
            }
            Frame::DataBlocked(frame) => self.object.uint("limit", frame.limit),
            Frame::StreamDataBlocked(frame) => self.object.uint("limit", frame.limit),
            Frame::StreamsBlocked(frame) => {
                self.stream_type(frame.direction);
                self.object.uint("limit", frame.limit);
            }
            Frame::NewConnectionId(frame) => self.new_connection_id(frame),
            Frame::RetireConnectionId(frame) => {
                self.object.uint("sequence_number", frame.sequence);
            }
            Frame::PathChallenge(frame) => self.object.hex("data", &frame.0),
            Frame::PathResponse(frame) => self.object.hex("data", &frame.0),
            Frame::ConnectionClose(frame) => self.connection_close(frame),
            Frame::AckFrequency(frame) => {
                self.object.uint("sequence_number", frame.sequence);
                self.object.uint("ack_eliciting_threshold", frame.threshold);
                self.object.ms(
                    "request_max_ack_delay",
                    Duration::from_micros(frame.max_delay),
                );
                self.object.uint("reordering_threshold", frame.reordering);
            }
            Frame::Ping | Frame::HandshakeDone | Frame::ImmediateAck => {}
        }
        if self.schema == Schema::Draft13 {
            self.raw(None);
        }
    }

    /// Writes the size of the frame in bytes, and that of its payload if it has any.
    fn raw(&mut self, payload: Option<usize>) {
        let size = self.size;
        self.object.object("raw", |raw| {
            raw.uint("length", size);
            if let Some(payload) = payload {
                raw.uint("payload_length", payload as u64);
            }
        });
    }

    fn padding(&mut self) {
        match self.schema {
            Schema::V03 => {
                self.object.uint("length", self.size);
                self.object.uint("payload_length", self.size);
            }
            Schema::Draft13 => self.raw(None),
        }
    }

    fn data(&mut self, offset: u64, len: usize) {
        self.object.uint("offset", offset);
        match self.schema {
            Schema::V03 => self.object.uint("length", len as u64),
            Schema::Draft13 => self.raw(Some(len)),
        }
    }

    fn ack(&mut self, ack: &Ack<'_>, exponent: u8) {
        // The delay is below 2^62 and the exponent at most 20: more than a century does not matter.
        let delay = ack.delay.saturating_mul(1 << exponent.min(20));
        self.object.ms("ack_delay", Duration::from_micros(delay));
        self.object.list("acked_ranges", |ranges| {
            for range in ack.ranges() {
                ranges.list(|ends| {
                    ends.uint(range.start().get());
                    ends.uint(range.end().get());
                });
            }
        });
        if let Some(ecn) = ack.ecn {
            self.object.uint("ect1", ecn.ect1);
            self.object.uint("ect0", ecn.ect0);
            self.object.uint("ce", ecn.ce);
        }
    }

    fn stream_type(&mut self, direction: Direction) {
        let name = match direction {
            Direction::Bidi => "bidirectional",
            Direction::Uni => "unidirectional",
        };
        self.object.text("stream_type", name);
    }

    fn application_code(&mut self, code: u64) {
        if self.schema == Schema::Draft13 {
            self.object.text("error", "unknown");
        }
        self.object.uint("error_code", code);
    }

    fn reset_stream_at(&mut self, frame: ResetStreamAt) {
        self.application_code(frame.code);
        self.object.uint("final_size", frame.final_size);
        self.object.uint("reliable_size", frame.reliable_size);
    }

    /// Writes the id without its stateless reset token, because anybody could end the connection
    /// with the token.
    fn new_connection_id(&mut self, frame: &NewConnectionId) {
        let cid = frame.cid.as_bytes();
        self.object.uint("sequence_number", frame.sequence);
        self.object.uint("retire_prior_to", frame.retire_prior_to);
        self.object.uint("connection_id_length", cid.len() as u64);
        self.object.hex("connection_id", cid);
    }

    fn connection_close(&mut self, frame: &ConnectionClose<'_>) {
        let error = match self.schema {
            Schema::V03 => "error_code",
            Schema::Draft13 => "error",
        };
        let reason = match *frame {
            ConnectionClose::Transport {
                code,
                frame,
                reason,
            } => {
                self.object.text("error_space", "transport");
                let code = Code(code);
                // qlog 0.3 has names of TLS alerts for the end of a connection, but not for the
                // frame.
                if self.schema == Schema::V03 && code.alert().is_some() {
                    self.object.uint(error, code.0);
                } else {
                    write_code(self.object, error, code, NumberKey::of(self.schema));
                }
                if let Some(FrameType(ty)) = frame {
                    self.object.uint("trigger_frame_type", ty);
                }
                reason
            }
            ConnectionClose::Application { code, reason } => {
                self.object.text("error_space", "application");
                self.application_code(code);
                reason
            }
        };
        if !reason.is_empty() {
            self.object.text("reason", &shortened(reason));
        }
    }
}

/// Returns the beginning of a reason that the peer chose.
pub(crate) fn shortened(reason: &[u8]) -> std::borrow::Cow<'_, str> {
    const BYTES: usize = 512;
    String::from_utf8_lossy(reason.get(..BYTES).unwrap_or(reason))
}
