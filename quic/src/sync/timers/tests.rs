use std::{
    future::poll_fn,
    time::{Duration, Instant},
};

use hybriq_proto::endpoint::Slot;

use super::{Alarm, Deadline, Timers};

const SLOT: Slot = Slot(3);

fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

#[test]
fn an_earlier_deadline_comes_first() {
    let (start, mut timers, mut deadline) =
        (Instant::now(), Timers::default(), Deadline::default());
    timers.set(SLOT, &mut deadline, Some(start + ms(30)));
    timers.set(SLOT, &mut deadline, Some(start + ms(10)));
    assert_eq!(timers.next(), Some(start + ms(10)));
    assert_eq!(timers.pop(start + ms(9)), None);
    assert_eq!(timers.pop(start + ms(10)), Some(SLOT));
    assert!(timers.is_due(SLOT, &mut deadline, start + ms(10)));
    assert_eq!(timers.next(), None);
}

#[test]
fn a_later_deadline_is_found_when_the_old_one_comes_up() {
    let (start, mut timers, mut deadline) =
        (Instant::now(), Timers::default(), Deadline::default());
    timers.set(SLOT, &mut deadline, Some(start + ms(10)));
    timers.set(SLOT, &mut deadline, Some(start + ms(30)));
    assert_eq!(timers.pop(start + ms(10)), Some(SLOT));
    assert!(!timers.is_due(SLOT, &mut deadline, start + ms(10)));
    assert_eq!(timers.next(), Some(start + ms(30)));
    assert_eq!(timers.pop(start + ms(30)), Some(SLOT));
    assert!(timers.is_due(SLOT, &mut deadline, start + ms(30)));
}

#[test]
fn a_deadline_that_went_away_is_not_due() {
    let (start, mut timers, mut deadline) =
        (Instant::now(), Timers::default(), Deadline::default());
    timers.set(SLOT, &mut deadline, Some(start + ms(10)));
    timers.set(SLOT, &mut deadline, None);
    assert_eq!(timers.pop(start + ms(10)), Some(SLOT));
    assert!(!timers.is_due(SLOT, &mut deadline, start + ms(10)));
    assert_eq!(timers.next(), None);
}

#[test]
fn one_entry_is_held_per_connection_however_often_it_changes() {
    let (start, mut timers, mut deadline) =
        (Instant::now(), Timers::default(), Deadline::default());
    for round in 0..1000 {
        timers.set(SLOT, &mut deadline, Some(start + ms(30_000 + round)));
        timers.set(SLOT, &mut deadline, Some(start + ms(2000 - round)));
    }
    assert_eq!(timers.queue.len(), 1);
    timers.remove(SLOT, &deadline);
    assert_eq!(timers.next(), None);
}

#[tokio::test]
async fn the_alarm_rings_for_the_time_it_was_set_to_last() {
    let start = Instant::now();
    let mut alarm = Alarm::default();
    poll_fn(|cx| {
        assert!(alarm.poll(Some(start + ms(3_600_000)), cx).is_pending());
        assert!(alarm.poll(None, cx).is_pending());
        alarm.poll(Some(start), cx)
    })
    .await;
    poll_fn(|cx| alarm.poll(Some(start + ms(5)), cx)).await;
    assert!(start.elapsed() >= ms(5));
}

#[test]
fn a_quiet_connection_is_called_once_more_before_its_deadline() {
    let (start, mut timers, mut deadline) =
        (Instant::now(), Timers::default(), Deadline::default());
    timers.set(SLOT, &mut deadline, Some(start + ms(10)));
    timers.set(SLOT, &mut deadline, Some(start + ms(30_000)));
    assert_eq!(timers.pop(start + ms(10)), Some(SLOT));
    assert!(!timers.is_due(SLOT, &mut deadline, start + ms(10)));
    assert!(deadline.is_quiet(start + ms(10)));
    timers.look_again(SLOT, &mut deadline, Some(start + ms(1000)));
    assert_eq!(timers.pop(start + ms(1000)), Some(SLOT));
    assert!(!timers.is_due(SLOT, &mut deadline, start + ms(1000)));
    timers.look_again(SLOT, &mut deadline, None);
    assert_eq!(timers.next(), Some(start + ms(30_000)));
    assert!(!deadline.is_quiet(start + ms(29_900)), "it is nearly due");
}

#[test]
fn a_connection_whose_last_timer_is_over_is_looked_at_before_its_deadline() {
    let (start, mut timers, mut deadline) =
        (Instant::now(), Timers::default(), Deadline::default());
    let idle = Some(start + ms(30_000));
    timers.set_after(start, SLOT, &mut deadline, idle);
    assert_eq!(timers.pop(start + ms(1100)), Some(SLOT));
    assert!(!timers.is_due(SLOT, &mut deadline, start + ms(1100)));
    assert_eq!(timers.next(), idle, "there is no second look");
    timers.set_after(start + ms(2000), SLOT, &mut deadline, idle);
    assert_eq!(timers.next(), idle, "no timer of it has run since");
    timers.set_after(
        start + ms(2000),
        SLOT,
        &mut deadline,
        Some(start + ms(2500)),
    );
    assert_eq!(timers.next(), Some(start + ms(2500)));
}
