//! Rules that operations of clients and of connections share.

use std::time::Duration;

use crate::scenario::Iterate;

/// End of a measurement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// `phases.measure` ends it, and everything in it that has no end of its own.
    ByTime,
    /// The scripts end it.
    ByScripts,
}

/// Refuses an empty loop, and an endless one.
pub(crate) fn check_iterate<T>(path: &str, iterate: &Iterate<T>, end: End) -> Result<(), String> {
    check_rate(path, iterate.rate)?;
    refuse_zero(path, "concurrency", Some(iterate.concurrency.into()))?;
    if iterate.ops.is_empty() {
        return Err(format!("{path}.ops: is empty: there is nothing to repeat"));
    }
    if iterate.times.is_none() && iterate.time.is_none() && end == End::ByScripts {
        return Err(format!(
            "{path}: never ends; give `times` or `time`, or `phases.measure`, which ends it"
        ));
    }
    Ok(())
}

/// Refuses a rate that is not a number above 0.
pub(crate) fn check_rate(path: &str, rate: Option<f64>) -> Result<(), String> {
    match rate {
        Some(rate) if !(rate.is_finite() && rate > 0.0) => Err(format!(
            "{path}.rate: {rate} a second is no rate; leave it out for a closed loop"
        )),
        _ => Ok(()),
    }
}

/// Refuses a count of 0.
pub(crate) fn refuse_zero(path: &str, key: &str, count: Option<u64>) -> Result<(), String> {
    match count {
        Some(0) => Err(format!("{path}.{key}: is 0; at least 1")),
        _ => Ok(()),
    }
}

/// Refuses a time of 0.
pub(crate) fn refuse_no_time(path: &str, key: &str, time: Duration) -> Result<(), String> {
    if time.is_zero() {
        return Err(format!("{path}.{key}: is no time at all"));
    }
    Ok(())
}
