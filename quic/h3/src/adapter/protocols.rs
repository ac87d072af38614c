//! Extended CONNECT (RFC 9220).

use std::{
    collections::BTreeSet,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use h3::quic::StreamId;
use http::{HeaderMap, HeaderValue};

use crate::adapter::message;

/// The protocols that requests of extended CONNECT ask for (RFC 9220 §3).
///
/// `h3` refuses all but two. The adapter makes an ordinary field of `:protocol` before `h3` decodes it,
/// and notes the stream, so that no client can pretend to have sent one.
#[derive(Clone, Debug, Default)]
pub struct Protocols(Arc<Mutex<BTreeSet<u64>>>);

impl Protocols {
    /// Removes the protocol from the fields of the request on a stream, and returns it. `None` if the
    /// request had no `:protocol`.
    pub fn take(&self, stream: StreamId, fields: &mut HeaderMap) -> Option<HeaderValue> {
        let asked = self.lock().remove(&stream.into_inner());
        asked.then(|| fields.remove(message::PROTOCOL)).flatten()
    }

    pub(crate) fn insert(&self, stream: hybriq::StreamId) {
        self.lock().insert(stream.0);
    }

    pub(crate) fn forget(&self, stream: hybriq::StreamId) {
        self.lock().remove(&stream.0);
    }

    fn lock(&self) -> MutexGuard<'_, BTreeSet<u64>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
