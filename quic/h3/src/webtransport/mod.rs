//! WebTransport over HTTP/3 without I/O (draft-ietf-webtrans-http3): settings of its dialects, capsules, codes, flow
//! control, and the streams that wait for sessions.
//!
//! Sections of the draft are those of draft 15.
//!
//! # Examples
//! Two ends of a session agree on what their settings say, and one asks the other for the end:
//! ```
//! use hybriq::tls::Side;
//! use hybriq_h3::{Settings, webtransport::{Dialect, Event, Session, Terms, Windows, announce}};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let windows = Windows::new(16, 16, 1 << 20);
//! let mut settings = Settings::new();
//! settings.enable_connect_protocol = true;
//! announce(&mut settings, 1, windows);
//! let terms = Terms::of(Side::Client, windows, &settings)?;
//! assert_eq!(terms.dialect, Dialect::Draft15);
//!
//! let (mut one, mut other) = (Session::new(terms), Session::new(terms));
//! one.drain();
//! other.on_data(one.take_output())?;
//! assert_eq!(other.poll_event(), Some(Event::Drain));
//! # Ok(())
//! # }
//! ```

mod capsule;
mod dialect;
mod flow;
mod protocols;
mod session;
mod waiting;

#[cfg(test)]
mod tests;

use hybriq_proto::{Direction, StreamId};

pub use crate::error::{from_wire, to_wire};
pub use capsule::{Capsule, Decoder, LONGEST_REASON};
pub use dialect::{Dialect, FlowControl, Terms, Unsupported, announce};
pub(crate) use dialect::{is_announced, keeps_windows};
pub use flow::Windows;
pub use protocols::{AVAILABLE_PROTOCOLS, PROTOCOL, choice, offer, offered};
pub use session::{Event, Session};
pub use waiting::{Bounds, Held, STREAM_OVERHEAD, Waiting};

use crate::wire::{
    frame::{WEBTRANSPORT_STREAM, uni},
    varint,
};

/// Returns the bytes at the start of a stream of a session (draft-ietf-webtrans-http3 §4.2 and §4.3).
pub fn stream_head(session: StreamId, direction: Direction) -> Vec<u8> {
    let mut head = Vec::with_capacity(10);
    let kind = match direction {
        Direction::Bidi => WEBTRANSPORT_STREAM,
        Direction::Uni => uni::WEBTRANSPORT,
    };
    varint::put(kind, &mut head);
    varint::put(session.0, &mut head);
    head
}
