use super::*;

#[test]
fn a_cycle_maximum_lasts_this_cycle_and_the_next() {
    let mut filter = CycleMax::default();
    filter.update(10);
    filter.update(7);
    assert_eq!(filter.get(), 10);
    filter.advance();
    filter.update(5);
    assert_eq!(filter.get(), 10);
    filter.advance();
    assert_eq!(filter.get(), 5);
}

#[test]
fn a_cycle_without_values_forgets_nothing() {
    let mut filter = CycleMax::default();
    filter.update(10);
    for _ in 0..5 {
        filter.advance();
    }
    assert_eq!(filter.get(), 10);
}

#[test]
fn a_windowed_maximum_is_one_of_the_window() {
    let values = [
        3_u64, 9, 4, 8, 1, 7, 2, 6, 0, 5, 5, 4, 3, 2, 1, 0, 0, 0, 0, 0, 0, 0,
    ];
    let mut filter = WindowedMax::default();
    for (time, &value) in values.iter().enumerate() {
        filter.update(value, time as u64, 10);
        let recent = values.iter().take(time + 1).rev().take(11).max().copied();
        // Only three are remembered, so the result may be less than the true value.
        assert!(Some(filter.get()) <= recent, "at {time}");
        assert!(filter.get() >= value, "at {time}");
    }
    assert_eq!(filter.get(), 3, "of time 12");
}

#[test]
fn a_windowed_maximum_is_followed_by_the_next_best() {
    let mut filter = WindowedMax::default();
    filter.update(10, 0, 10);
    filter.update(8, 4, 10);
    filter.update(6, 8, 10);
    assert_eq!(filter.get(), 10);
    filter.update(1, 11, 10);
    assert_eq!(filter.get(), 8);
    filter.update(1, 15, 10);
    assert_eq!(filter.get(), 6);
}

#[test]
fn a_window_of_one_round_forgets_after_it() {
    let mut filter = WindowedMax::default();
    filter.update(10, 0, 1);
    filter.update(5, 1, 1);
    assert_eq!(filter.get(), 10);
    filter.update(4, 2, 1);
    assert!(filter.get() < 10);
}
