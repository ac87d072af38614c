//! Tests of the order of events in the timeline.

use crate::{Rng, ms, network::timeline::Timeline};

#[test]
fn what_is_added_comes_in_the_order_of_its_time_then_of_its_addition() {
    for seed in 0..20 {
        let mut rng = Rng::new(seed);
        let mut timeline = Timeline::new();
        let mut expected = Vec::new();
        for number in 0..500 {
            let at = ms(rng.below(50));
            timeline.push(rng.below(4) as usize, at, number);
            expected.push((at, number));
        }
        assert_eq!(timeline.len(), 500);
        expected.sort_unstable();
        let come: Vec<_> = std::iter::from_fn(|| timeline.pop(ms(1000))).collect();
        assert_eq!(come, expected, "seed {seed}");
    }
}

#[test]
fn nothing_comes_before_its_time() {
    let mut timeline = Timeline::new();
    timeline.push(0, ms(5), 'a');
    assert_eq!(timeline.next(), Some(ms(5)));
    assert_eq!(timeline.pop(ms(4)), None);
    assert_eq!(timeline.pop(ms(5)), Some((ms(5), 'a')));
    assert_eq!(timeline.next(), None);
}
