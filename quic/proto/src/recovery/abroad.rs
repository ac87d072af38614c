//! Bytes that are under way on paths that were left.

/// Bytes in flight on paths that were left, until they are acknowledged or lost.
///
/// A path that is taken into use starts with an empty window, whatever is under way on the one
/// before. Only that one is passed over: what was left under way earlier counts, or else a peer that
/// acknowledges nothing would get another window with each change of path.
#[derive(Debug, Default)]
pub(super) struct Abroad {
    bytes: u64,
    /// Bytes of the path that was left last, which don't count against the window.
    passed_over: u64,
}

impl Abroad {
    /// Takes over what is in flight on a path that is left.
    pub(super) const fn on_left(&mut self, in_flight: u64) {
        self.bytes += in_flight;
        self.passed_over = in_flight;
    }

    /// Notes bytes that were acknowledged or lost.
    #[inline]
    pub(super) const fn on_settled(&mut self, bytes: u64) {
        self.bytes = self.bytes.saturating_sub(bytes);
    }

    /// Returns the bytes that count against the window of the path in use.
    #[inline]
    pub(super) const fn burden(&self) -> u64 {
        self.bytes.saturating_sub(self.passed_over)
    }
}

#[cfg(test)]
mod tests {
    use super::Abroad;

    #[test]
    fn only_the_path_left_last_is_passed_over() {
        let mut abroad = Abroad::default();
        abroad.on_left(1000);
        assert_eq!(abroad.burden(), 0);
        abroad.on_left(300);
        assert_eq!(abroad.burden(), 1000);
        abroad.on_left(0);
        assert_eq!(abroad.burden(), 1300);
        abroad.on_settled(1200);
        assert_eq!(abroad.burden(), 100);
    }
}
