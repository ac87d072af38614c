//! Dates for the reader of a log.

use std::{
    fmt,
    time::{Duration, SystemTime},
};

/// A time of the system's clock. Displays as in RFC 3339, in UTC.
#[derive(Clone, Copy, Debug)]
pub(super) struct WallClock(Duration);

impl WallClock {
    #[expect(
        clippy::disallowed_methods,
        reason = "a date for the reader; nothing is decided by it"
    )]
    pub(super) fn now() -> Self {
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        Self(now.unwrap_or_default())
    }

    pub(super) const fn since_1970(&self) -> Duration {
        self.0
    }

    #[cfg(test)]
    pub(super) const fn at(since_1970: Duration) -> Self {
        Self(since_1970)
    }
}

impl fmt::Display for WallClock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = self.0.as_secs();
        let (year, month, day) = date(seconds / 86_400);
        let (hour, minute, second) = (seconds / 3600 % 24, seconds / 60 % 60, seconds % 60);
        let millis = self.0.subsec_millis();
        write!(
            f,
            "{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{millis:03}Z"
        )
    }
}

/// Returns the year, month and day for a number of days since 1970. In this calculation, years
/// begin in March, so that a leap day is the last of its year.
const fn date(days: u64) -> (u64, u64, u64) {
    let days = days + 719_468;
    let (era, day_of_era) = (days / 146_097, days % 146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month + 2) / 5 + 1;
    let (year, month) = if month < 10 {
        (year_of_era, month + 3)
    } else {
        (year_of_era + 1, month - 9)
    };
    (era * 400 + year, month, day)
}
