use std::collections::BTreeSet;

use proptest::prelude::*;

use crate::buffer::range_set::RangeSet;

fn ranges(set: &RangeSet) -> Vec<(u64, u64)> {
    set.overlapping(0..u64::MAX)
        .map(|range| (range.start, range.end))
        .collect()
}

#[test]
fn ranges_that_touch_become_one() {
    let mut set = RangeSet::default();
    set.insert(10..20);
    set.insert(30..40);
    set.insert(0..5);
    assert_eq!(ranges(&set), [(0, 5), (10, 20), (30, 40)]);
    set.insert(20..30);
    assert_eq!(ranges(&set), [(0, 5), (10, 40)]);
    set.insert(3..50);
    assert_eq!(ranges(&set), [(0, 50)]);
}

#[test]
fn a_removed_middle_leaves_both_ends() {
    let mut set = RangeSet::default();
    set.insert(0..100);
    set.remove(40..60);
    assert_eq!(ranges(&set), [(0, 40), (60, 100)]);
    set.remove(30..70);
    assert_eq!(ranges(&set), [(0, 30), (70, 100)]);
    set.remove(0..100);
    assert!(set.is_empty());
}

proptest! {
    #[test]
    fn a_range_set_is_a_set(
        steps in prop::collection::vec((any::<bool>(), 0u64..60, 0u64..20), 0..60),
        window in (0u64..60, 0u64..20),
    ) {
        let mut set = RangeSet::default();
        let mut model = BTreeSet::new();
        for (insert, start, len) in steps {
            let range = start..start + len;
            if insert {
                model.extend(range.clone());
                set.insert(range);
            } else {
                model.retain(|value| !range.contains(value));
                set.remove(range);
            }
            let held = ranges(&set);
            prop_assert!(held.iter().all(|(start, end)| start < end));
            prop_assert!(held.windows(2).all(|pair| pair[0].1 < pair[1].0), "{held:?}");
            let values: BTreeSet<u64> = held.iter().flat_map(|&(start, end)| start..end).collect();
            prop_assert_eq!(&values, &model);
            prop_assert_eq!(set.first(), set.overlapping(0..u64::MAX).next());
        }
        let window = window.0..window.0 + window.1;
        let found: Vec<_> = set.overlapping(window.clone()).collect();
        let expected: Vec<_> = set
            .overlapping(0..u64::MAX)
            .filter(|held| held.start < window.end && window.start < held.end)
            .collect();
        prop_assert_eq!(found, expected);
    }
}
