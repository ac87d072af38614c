//! Maximum filters.

#[cfg(test)]
mod tests;

/// Largest value of the current and the previous cycle: the draft's `max_bw_filter` (§5.5.3).
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct CycleMax {
    previous: u64,
    current: u64,
}

impl CycleMax {
    pub(super) fn get(&self) -> u64 {
        self.previous.max(self.current)
    }

    pub(super) fn update(&mut self, value: u64) {
        self.current = self.current.max(value);
    }

    /// Starts a new cycle, unless the current one brought no value: an estimate is not dropped
    /// without a replacement.
    pub(super) fn advance(&mut self) {
        if self.current > 0 {
            self.previous = self.current;
            self.current = 0;
        }
    }
}

#[derive(Clone, Copy, Debug, Default)]
struct Entry {
    time: u64,
    value: u64,
}

/// Largest value within a window of time. The best three are stored, so that the next best is
/// available when one leaves the window (Kathleen Nichols' filter, as §5.5.5 recommends).
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct WindowedMax {
    best: Entry,
    second: Entry,
    third: Entry,
}

impl WindowedMax {
    pub(super) fn get(&self) -> u64 {
        self.best.value
    }

    /// Takes a value at `time`, which never decreases; values count for the duration `window`.
    pub(super) fn update(&mut self, value: u64, time: u64, window: u64) {
        let new = Entry { time, value };
        let age = |entry: Entry| time.saturating_sub(entry.time);
        if value >= self.best.value || age(self.third) > window {
            (self.best, self.second, self.third) = (new, new, new);
            return;
        }
        if value >= self.second.value {
            (self.second, self.third) = (new, new);
        } else if value >= self.third.value {
            self.third = new;
        }
        if age(self.best) > window {
            (self.best, self.second, self.third) = (self.second, self.third, new);
            if age(self.best) > window {
                (self.best, self.second, self.third) = (self.second, self.third, new);
            }
        } else if self.second.time == self.best.time && age(self.best) > window / 4 {
            (self.second, self.third) = (new, new);
        } else if self.third.time == self.second.time && age(self.best) > window / 2 {
            self.third = new;
        }
    }
}
