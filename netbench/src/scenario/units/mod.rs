//! Sizes, times, rates and shares with their units, as command lines and scenarios write them.

pub(crate) mod quantity;

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use hybriq_sim::Chance;
use hybriq_sim::link::{self, GilbertElliott};

/// A share of datagrams: `1%`, `0.25%`.
#[derive(Clone, Copy, Debug, Default, PartialEq, PartialOrd)]
pub(crate) struct Share(f64);

impl Share {
    /// Returns the chance of one datagram to be part of it.
    pub(crate) fn chance(self) -> Chance {
        Chance::share(self.0)
    }
}

impl FromStr for Share {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        text.strip_suffix('%')
            .and_then(number)
            .filter(|percent| *percent <= 100.0)
            .map(|percent| Self(percent / 100.0))
            .ok_or_else(|| "expected a share of 0% to 100%, such as 1% or 0.25%".to_owned())
    }
}

impl fmt::Display for Share {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Undoes the division without rounding errors.
        write!(f, "{}%", (self.0 * 1e8).round() / 1e6)
    }
}

/// Bits a second: `500kbit`, `10mbit`, `2.5gbit`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Rate(u64);

impl Rate {
    const UNITS: [(&str, f64); 4] = [("gbit", 1e9), ("mbit", 1e6), ("kbit", 1e3), ("bit", 1.0)];

    /// Returns the rate in bits a second.
    pub(crate) const fn bits(self) -> u64 {
        self.0
    }

    /// Returns the number of bytes that pass in that time.
    pub(crate) fn bytes_in(self, time: Duration) -> u64 {
        (self.0 as f64 / 8.0 * time.as_secs_f64()) as u64
    }
}

impl FromStr for Rate {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let lower = text.to_ascii_lowercase();
        Self::UNITS
            .iter()
            .find_map(|(unit, bits)| Some(number(lower.strip_suffix(unit)?)? * bits))
            .filter(|bits| (1.0..=1e12).contains(bits))
            .map(|bits| Self(bits as u64))
            .ok_or_else(|| "expected bits a second, such as 500kbit, 10mbit or 1gbit".to_owned())
    }
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bits = self.0 as f64;
        let (unit, factor) = Self::UNITS
            .into_iter()
            .find(|(_, factor)| bits >= *factor)
            .unwrap_or(("bit", 1.0));
        write!(f, "{}{unit}", bits / factor)
    }
}

/// Maximum queue for the line.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Queue {
    /// `64KiB`
    Bytes(u64),
    /// `100ms`: as much as the line sends in that time.
    Time(Duration),
    /// `1bdp`: a multiple of the rate times the round trip without queues.
    Bdp(f64),
}

impl Queue {
    /// Ten full Ethernet frames: even the smallest buffer holds an initial burst.
    pub(crate) const FLOOR: u64 = 15_000;

    /// Returns the same in bytes.
    pub(crate) fn bytes(self, rate: Rate, round_trip: Duration) -> u64 {
        match self {
            Self::Bytes(bytes) => bytes,
            Self::Time(time) => rate.bytes_in(time),
            Self::Bdp(times) => rate
                .bytes_in(round_trip.mul_f64(times.min(1e6)))
                .max(Self::FLOOR),
        }
    }
}

impl FromStr for Queue {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if let Some(times) = text.strip_suffix("bdp") {
            return number(times)
                .map(Self::Bdp)
                .ok_or_else(|| "expected a number before bdp, such as 1bdp or 0.5bdp".to_owned());
        }
        time(text)
            .map(Self::Time)
            .or_else(|_| size(text).map(Self::Bytes))
            .map_err(|_| "expected bytes, a time or a multiple of the bandwidth-delay product, such as 64KiB, 100ms or 1bdp".to_owned())
    }
}

/// Losses in bursts, a Gilbert-Elliott model whose bad state loses everything: `1%x8` loses 1% of
/// all datagrams, 8 in a row on average.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Burst {
    share: Share,
    mean: f64,
}

impl Burst {
    /// Returns the model that loses that share.
    pub(crate) fn model(self) -> GilbertElliott {
        let ends = Chance::share(1.0 / self.mean);
        GilbertElliott::new(Chance::share(self.begins()), ends)
    }

    /// Returns the chance that a datagram begins a burst, given that the one before was not in one.
    fn begins(self) -> f64 {
        self.share.0 / (self.mean * (1.0 - self.share.0))
    }
}

impl FromStr for Burst {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        text.split_once('x')
            .and_then(|(share, mean)| {
                let (share, mean) = (share.parse::<Share>().ok()?, number(mean)?);
                let burst = Self { share, mean };
                (mean >= 1.0 && share.0 < 1.0 && burst.begins() <= 1.0).then_some(burst)
            })
            .ok_or_else(|| {
                "expected a share and a mean length of 1 or more, such as 1%x8: 1% lost, 8 in a row"
                    .to_owned()
            })
    }
}

/// Datagrams that are held back so that later ones overtake them: `1%,5ms`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Reorder {
    share: Share,
    wait: Duration,
}

impl Reorder {
    pub(crate) fn model(self) -> link::Reorder {
        link::Reorder {
            chance: self.share.chance(),
            wait: self.wait,
        }
    }
}

impl FromStr for Reorder {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        text.split_once(',')
            .and_then(|(share, wait)| {
                Some(Self {
                    share: share.parse().ok()?,
                    wait: time(wait).ok()?,
                })
            })
            .ok_or_else(|| "expected a share and a time, such as 1%,5ms".to_owned())
    }
}

/// A time in which everything is lost: `5s,2s` begins 5 s after the first datagram and takes 2 s.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Blackout {
    start: Duration,
    end: Duration,
}

impl Blackout {
    /// Returns its beginning and end.
    pub(crate) const fn span(&self) -> (Duration, Duration) {
        (self.start, self.end)
    }
}

impl FromStr for Blackout {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        text.split_once(',')
            .and_then(|(start, lasts)| {
                let start = time(start).ok()?;
                let end = start + time(lasts).ok()?;
                Some(Self { start, end })
            })
            .ok_or_else(|| "expected a start and a duration, such as 5s,2s".to_owned())
    }
}

/// Maximum accepted time in seconds, because held datagrams take memory.
const LONGEST: f64 = 3600.0;

/// Reads `300us`, `50ms` or `2s`.
pub(crate) fn time(text: &str) -> Result<Duration, String> {
    [("us", 1e-6), ("ms", 1e-3), ("s", 1.0)]
        .into_iter()
        .find_map(|(unit, seconds)| Some(number(text.strip_suffix(unit)?)? * seconds))
        .filter(|seconds| *seconds <= LONGEST)
        .map(Duration::from_secs_f64)
        .ok_or_else(|| "expected a time up to 3600s, such as 300us, 50ms or 2s".to_owned())
}

/// Reads `123`, `4KiB`, `5MiB` or `6GiB`.
pub(crate) fn size(text: &str) -> Result<u64, String> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let unit = match text.get(digits.len()..) {
        Some("" | "B") => 1,
        Some("KiB") => 1 << 10,
        Some("MiB") => 1 << 20,
        Some("GiB") => 1 << 30,
        _ => return Err("units are B, KiB, MiB and GiB".to_owned()),
    };
    let count: u64 = digits
        .parse()
        .map_err(|_| "expected a number, for example 64MiB".to_owned())?;
    count
        .checked_mul(unit)
        .ok_or_else(|| "too large".to_owned())
}

/// Reads a plain number that is not negative.
fn number(text: &str) -> Option<f64> {
    let plain = text.chars().all(|c| c.is_ascii_digit() || c == '.');
    text.parse().ok().filter(|_| plain)
}

#[cfg(test)]
mod tests;
