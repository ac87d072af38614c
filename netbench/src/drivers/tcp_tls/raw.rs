//! A connection whose only stream is its bytes: a close_notify is the stream's end, a RST gives it
//! up, and the connection is closed when both directions have ended.

use std::cell::Cell;
use std::future::poll_fn;
use std::rc::Rc;
use std::task::{Context, Poll, ready};

use bytes::{Buf as _, Bytes, BytesMut};

use super::session::Session;
use super::tls::{Finishing, Shared};
use crate::drivers::{Answer, Connection, Negotiated, Reader, Stats, Writer};
use crate::outcome::{Failed, Kind};

/// The most that is read at once: two records.
const CHUNK: usize = 32 * 1024;

pub(super) struct Raw {
    session: Session,
    taken: Cell<bool>,
    closed: Rc<Cell<Option<u64>>>,
}
