//! The transport traits of the `h3` crate over hybriq.

mod bidi;
mod budget;
mod common;
mod connection;
mod datagrams;
mod error;
mod frames;
mod goaway;
mod head;
mod id;
mod message;
mod openings;
mod payload;
mod pieces;

mod protocols;
mod recv;
mod refusal;
mod requests;
mod send;
mod settings;
mod transport;
mod uni;
mod unread;
use crate::wire::varint;
mod watch;

use crate::qpack;
pub(crate) use crate::{H3_NO_ERROR, H3_REQUEST_CANCELLED, MAX_FIELD_SECTION, MAX_FRAME};

use crate::priority;
pub use bidi::BidiStream;
pub use connection::{Connection, OpenStreams};
pub use datagrams::{DatagramError, Datagrams};
pub use error::is_clean;
pub use goaway::Goaway;
pub use head::ResponseHead;
pub use payload::{Follows, Payload};
pub use protocols::Protocols;
pub use recv::RecvStream;
pub use refusal::Resolving;
pub use requests::{RequestError, Requests};
pub use send::SendStream;
pub use settings::PeerSettings;
pub use transport::EarlyRequests;
