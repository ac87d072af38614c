//! Bytes in flight on paths that were left.

/// Bytes in flight on paths that were left, until they are acknowledged or lost.
///
/// A path that comes into use starts with an empty window, whatever is in flight on the previous
/// one. Only that one is exempt: bytes left earlier count; otherwise a peer that acknowledges
/// nothing would get another window with each change of path.
#[derive(Debug, Default)]
pub(in crate::owners::recovery) struct LeftPaths {
    bytes: u64,
    /// Bytes in flight on the path left last, which do not count against the window.
    passed_over: u64,
    /// True if a path was left since the peer last acknowledged something.
    moved: bool,
}

impl LeftPaths {
    /// Takes over the bytes in flight on a path that is left. Returns true if another path was left
    /// since the peer last acknowledged something.
    pub(in crate::owners::recovery) const fn on_left(&mut self, in_flight: u64) -> bool {
        self.bytes += in_flight;
        self.passed_over = in_flight;
        std::mem::replace(&mut self.moved, true)
    }

    /// Notes that the peer acknowledged something.
    #[inline]
    pub(in crate::owners::recovery) const fn on_acked(&mut self) {
        self.moved = false;
    }

    /// Notes bytes that were acknowledged or lost.
    #[inline]
    pub(in crate::owners::recovery) const fn on_settled(&mut self, bytes: u64) {
        self.bytes = self.bytes.saturating_sub(bytes);
    }

    /// Returns the bytes that count against the window of the path in use.
    #[inline]
    pub(in crate::owners::recovery) const fn burden(&self) -> u64 {
        self.bytes.saturating_sub(self.passed_over)
    }
}

#[cfg(test)]
mod tests {
    use super::LeftPaths;

    #[test]
    fn only_the_path_left_last_is_passed_over() {
        let mut left_paths = LeftPaths::default();
        assert!(!left_paths.on_left(1000));
        assert_eq!(left_paths.burden(), 0);
        assert!(left_paths.on_left(300));
        assert_eq!(left_paths.burden(), 1000);
        left_paths.on_acked();
        assert!(!left_paths.on_left(0));
        assert_eq!(left_paths.burden(), 1300);
        left_paths.on_settled(1200);
        assert_eq!(left_paths.burden(), 100);
    }
}
