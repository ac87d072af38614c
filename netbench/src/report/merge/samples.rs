//! Samples of several clients on one time line.

use crate::report::results::Sample;

/// Moves each sample to the interval that contains its middle, on a grid that begins `earlier_ms`
/// before these samples. No count is lost or split.
pub(super) fn align(samples: &[Sample], earlier_ms: f64, interval_ms: f64) -> Vec<Sample> {
    let mut aligned: Vec<Sample> = Vec::new();
    for sample in samples {
        let middle = earlier_ms + sample.at_ms - sample.lasted_ms / 2.0;
        let index = (middle / interval_ms).max(0.0) as usize;
        while aligned.len() <= index {
            aligned.push(Sample {
                at_ms: (aligned.len() + 1) as f64 * interval_ms,
                lasted_ms: interval_ms,
                ..Sample::default()
            });
        }
        if let Some(place) = aligned.get_mut(index) {
            add(place, sample);
        }
    }
    aligned
}

/// Returns the most common length of the samples, for the grid.
pub(super) fn interval(samples: &[Sample]) -> f64 {
    let mut lengths: Vec<f64> = samples.iter().map(|sample| sample.lasted_ms).collect();
    lengths.sort_by(f64::total_cmp);
    lengths.get(lengths.len() / 2).copied().unwrap_or(0.0)
}

fn add(place: &mut Sample, sample: &Sample) {
    place.connections += sample.connections;
    place.requests += sample.requests;
    place.failures += sample.failures;
    place.bytes_sent += sample.bytes_sent;
    place.bytes_received += sample.bytes_received;
    place.cpu_us += sample.cpu_us;
}

#[cfg(test)]
mod tests {
    use super::{align, interval};
    use crate::report::results::Sample;

    fn samples(lengths_ms: &[f64]) -> Vec<Sample> {
        let mut at_ms = 0.0;
        let sample = |&lasted_ms: &f64| {
            at_ms += lasted_ms;
            Sample {
                at_ms,
                lasted_ms,
                connections: 3,
                ..Sample::default()
            }
        };
        lengths_ms.iter().map(sample).collect()
    }

    #[test]
    fn samples_keep_their_place_where_clients_began_together() {
        let aligned = align(&samples(&[100.0, 101.0, 99.0, 40.0]), 0.0, 100.0);
        let counts: Vec<u64> = aligned.iter().map(|sample| sample.connections).collect();
        assert_eq!(counts, [3, 3, 3, 3]);
        assert!((aligned[3].at_ms - 400.0).abs() < 1e-9);
    }

    #[test]
    fn a_client_that_began_later_is_found_later() {
        let aligned = align(&samples(&[100.0, 100.0]), 230.0, 100.0);
        let counts: Vec<u64> = aligned.iter().map(|sample| sample.connections).collect();
        assert_eq!(counts, [0, 0, 3, 3]);
    }

    #[test]
    fn the_grid_is_that_of_most_samples() {
        assert!((interval(&samples(&[100.0, 100.0, 7.0])) - 100.0).abs() < 1e-9);
        assert!(interval(&[]).abs() < 1e-9);
    }
}
