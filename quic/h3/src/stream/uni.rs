//! Unidirectional streams of the peer (RFC 9114 §6.2).

use bytes::Bytes;
use hybriq_proto::StreamId;

use crate::{
    connection::{Connection, ControlReceiver, Critical},
    error::Violation,
    wire::{
        frame::{Partial, uni},
        varint,
    },
};

/// A unidirectional stream of the peer.
#[derive(Debug, Default)]
pub struct UniReceiver {
    kind: Kind,
    begun: Partial,
}

#[derive(Debug, Default)]
enum Kind {
    /// The type has not arrived.
    #[default]
    Unknown,
    /// Apart, because most streams have no such state.
    Control(Box<ControlReceiver>),
    Encoder,
    Decoder,
    /// A stream of WebTransport, whose session is not known.
    Session,
    /// A stream that is read no more.
    Over,
}

/// What becomes of a unidirectional stream.
#[derive(Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Uni {
    /// More data is needed.
    NeedData,
    /// Nobody needs the stream: stop it with this violation's code.
    Ignored(Violation),
    /// The rest of the stream belongs to the session of WebTransport on this stream, and begins with these bytes.
    Session(StreamId, Bytes),
}

impl UniReceiver {
    /// Creates the receiver of a new stream.
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns true once the connection needs the stream: its end ends the connection (RFC 9114 §6.2.1).
    pub const fn is_critical(&self) -> bool {
        matches!(self.kind, Kind::Control(_) | Kind::Encoder | Kind::Decoder)
    }

    /// Returns true if the type of the stream is not known yet.
    pub const fn is_opening(&self) -> bool {
        matches!(self.kind, Kind::Unknown | Kind::Session)
    }

    /// Takes the next data of the stream, in order. Afterwards there may be [events](Connection::poll_event).
    ///
    /// # Errors
    /// The peer broke a rule, which ends the connection.
    pub fn on_data(
        &mut self,
        mut data: Bytes,
        connection: &mut Connection,
    ) -> Result<Uni, Violation> {
        loop {
            match &mut self.kind {
                Kind::Unknown => {
                    let Some(kind) = self.begun.take(&mut data, varint::read) else {
                        return Ok(Uni::NeedData);
                    };
                    self.kind = match kind {
                        uni::CONTROL => {
                            connection.on_critical(Critical::Control)?;
                            Kind::Control(Box::default())
                        }
                        uni::ENCODER => {
                            connection.on_critical(Critical::Encoder)?;
                            Kind::Encoder
                        }
                        uni::DECODER => {
                            connection.on_critical(Critical::Decoder)?;
                            Kind::Decoder
                        }
                        uni::PUSH if connection.side().is_server() => {
                            return Err(Violation::PushStreamOfClient);
                        }
                        // No MAX_PUSH_ID was sent.
                        uni::PUSH => return Err(Violation::PushNotAllowed),
                        uni::WEBTRANSPORT if connection.takes_sessions() => Kind::Session,
                        _ => {
                            self.kind = Kind::Over;
                            return Ok(Uni::Ignored(Violation::UnknownStream));
                        }
                    };
                }
                Kind::Control(control) => {
                    connection.on_control(control, data)?;
                    return Ok(Uni::NeedData);
                }
                Kind::Encoder => {
                    connection.on_encoder_stream(&data)?;
                    return Ok(Uni::NeedData);
                }
                Kind::Decoder => {
                    connection.encoder.on_decoder_stream(&data)?;
                    return Ok(Uni::NeedData);
                }
                Kind::Session => {
                    let Some(id) = self.begun.take(&mut data, varint::read) else {
                        return Ok(Uni::NeedData);
                    };
                    self.kind = Kind::Over;
                    let id = Connection::session_id(StreamId(id))?;
                    return Ok(Uni::Session(id, data));
                }
                Kind::Over => return Ok(Uni::NeedData),
            }
        }
    }

    /// Notes that the stream has ended or was reset.
    ///
    /// # Errors
    /// The connection needs the stream. A stream that ends before its type is not an error.
    pub fn on_end(&self) -> Result<(), Violation> {
        if self.is_critical() {
            Err(Violation::CriticalStreamClosed)
        } else {
            Ok(())
        }
    }
}
