//! The clock of servers.

use std::time::{Instant, SystemTime};

use http::HeaderValue;

/// Returns the time now.
#[expect(
    clippy::disallowed_methods,
    reason = "nothing else here reads the clock"
)]
pub(super) fn now() -> Instant {
    Instant::now()
}

/// Returns the value of a `date` field (RFC 9110 §6.6.1).
#[expect(
    clippy::disallowed_methods,
    reason = "nothing else here reads the clock"
)]
pub(super) fn date() -> Option<HeaderValue> {
    let date = httpdate::fmt_http_date(SystemTime::now());
    HeaderValue::try_from(date).ok()
}
