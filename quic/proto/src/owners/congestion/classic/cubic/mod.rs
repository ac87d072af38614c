//! The CUBIC congestion controller (RFC 9438).

use std::time::{Duration, Instant};

use super::{Avoidance, Cause, Classic};
use crate::owners::congestion::Acked;

#[cfg(test)]
mod tests;

/// Steepness of the curve, in segments per second cubed (RFC 9438 §5.1).
const C: f64 = 0.4;

/// Part of the window that remains after a loss (§4.6).
const BETA: f64 = 0.7;

/// Part of the window that remains after a mark: alternative backoff (RFC 8511 §3.1). A queue that
/// marks is kept short, so that with 0.7 the link would run dry.
const BETA_ECN: f64 = 0.85;

/// Growth of the Reno-friendly window per round trip, in segments, with which it sends on average
/// as much as Reno with its larger reduction (§4.3).
const ALPHA: f64 = 3.0 * (1.0 - BETA) / (1.0 + BETA);

/// Largest growth of the window in a round trip, as a factor (§4.2).
const MAX_GROWTH: f64 = 1.5;

/// CUBIC (RFC 9438) with HyStart++ (RFC 9406), PRR (RFC 9937) and an undo of spurious losses (RFC
/// 9438 §4.9).
pub type Cubic = Classic<Curve>;

/// Growth of CUBIC: a function of the time since the last congestion, flat around the window at
/// which it occurred.
///
/// Windows are in bytes; RFC 9438 counts segments.
#[derive(Clone, Debug, Default)]
pub struct Curve {
    /// W_max, the window to return to. `None` before congestion, and after persistent congestion.
    w_max: Option<f64>,
    /// Window before the last reduction: cwnd_prior.
    prior: Option<f64>,
    /// State of congestion avoidance since the last reduction.
    epoch: Option<Epoch>,
}

/// One stage of congestion avoidance.
#[derive(Clone, Debug)]
struct Epoch {
    /// Window at which the curve is flat: W_max.
    plateau: f64,
    /// Time at which it is reached, in seconds: K.
    k: f64,
    /// Steepness of the curve in bytes.
    steepness: f64,
    /// Window that Reno would have: W_est.
    reno: f64,
    /// Time during which the window was used: t.
    elapsed: Duration,
    /// Time up to which `elapsed` was counted.
    counted: Instant,
    /// Fraction of a byte that the window still has to grow by.
    fraction: f64,
}

impl Avoidance for Curve {
    const NAME: &'static str = "Cubic";

    fn on_congestion(&mut self, window: u64, cause: Cause) -> u64 {
        let window = window as f64;
        let beta = match cause {
            Cause::Loss => BETA,
            Cause::Mark => BETA_ECN,
        };
        // Fast convergence (§4.7): a flow that did not get back to its last window makes room.
        self.w_max = Some(match self.w_max {
            Some(last) if window < last => window * f64::midpoint(1.0, beta),
            _ => window,
        });
        self.prior = Some(window);
        self.epoch = None;
        (window * beta).round() as u64
    }

    fn on_persistent_congestion(&mut self) {
        self.w_max = None;
        self.epoch = None;
    }

    fn on_resume(&mut self) {
        self.w_max = None;
        self.prior = None;
        self.epoch = None;
    }

    fn on_acked(&mut self, window: u64, acked: &Acked, datagram_size: u64) -> u64 {
        let current = window as f64;
        let segment = datagram_size as f64;
        let prior = *self.prior.get_or_insert(current);
        let epoch = self
            .epoch
            .get_or_insert_with(|| Epoch::new(acked.now, current, self.w_max, segment));
        epoch.count(acked.now);
        // No more than one window can be acknowledged in a round trip.
        let share = (acked.bytes as f64 / current).min(1.0);
        let alpha = if epoch.reno < prior { ALPHA } else { 1.0 };
        epoch.reno += alpha * segment * share;
        if epoch.window_at(Duration::ZERO) < epoch.reno {
            epoch.fraction = 0.0;
            return (epoch.reno.min(current * MAX_GROWTH) as u64).max(window);
        }
        let target = epoch
            .window_at(acked.rtt.smoothed)
            .clamp(current, current * MAX_GROWTH);
        let grown = current + (target - current) * share + epoch.fraction;
        epoch.fraction = grown.fract();
        (grown as u64).max(window)
    }

    fn on_unused(&mut self, now: Instant) {
        if let Some(epoch) = &mut self.epoch {
            epoch.counted = epoch.counted.max(now);
        }
    }
}

impl Epoch {
    fn new(now: Instant, window: f64, w_max: Option<f64>, segment: f64) -> Self {
        let plateau = w_max.unwrap_or(window).max(window);
        let steepness = C * segment;
        Self {
            plateau,
            k: ((plateau - window) / steepness).cbrt(),
            steepness,
            reno: window,
            elapsed: Duration::ZERO,
            counted: now,
            fraction: 0.0,
        }
    }

    fn count(&mut self, now: Instant) {
        let passed = now.saturating_duration_since(self.counted);
        self.elapsed = self.elapsed.saturating_add(passed);
        self.counted = self.counted.max(now);
    }

    /// Returns the curve after the additional time `later`: W_cubic(t) (§4.2).
    fn window_at(&self, later: Duration) -> f64 {
        let t = self.elapsed.saturating_add(later).as_secs_f64();
        self.steepness * (t - self.k).powi(3) + self.plateau
    }
}
