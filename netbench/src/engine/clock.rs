//! Waiting for a point in time.

use tokio::time::Instant;

/// Waits until then; not at all where that is over.
pub(super) async fn until(at: Instant) {
    if at > Instant::now() {
        tokio::time::sleep_until(at).await;
    }
}
