use std::time::Duration;

use super::*;

/// Tests every state with every event.
#[test]
fn every_event_in_every_state() {
    let now = Instant::now();
    let at = |seconds| now + Duration::from_secs(seconds);
    let (early, late) = (at(1), at(9));
    let left = State::Left { until: at(5) };
    let gone = |until| Some(State::Left { until });
    let stays = |state| Some(state);
    let states = [
        State::Heard,
        left,
        State::Candidate,
        State::Active,
        State::Fallback,
    ];
    let [heard, was_left, candidate, active, fallback] = states.map(stays);
    let table = [
        (
            Event::Answered(Expanded::Full, late),
            [gone(late), was_left, active, active, fallback],
        ),
        (
            Event::Answered(Expanded::Short, late),
            [gone(late), was_left, candidate, active, fallback],
        ),
        (Event::Unanswered, [None, was_left, None, active, fallback]),
        (
            Event::Wanted,
            [candidate, candidate, candidate, active, candidate],
        ),
        (Event::Superseded, [heard, was_left, None, active, fallback]),
        (Event::Taken, [active; 5]),
        (
            Event::LeftForValidated { until: late },
            [heard, was_left, candidate, gone(late), fallback],
        ),
        (
            Event::LeftForUnvalidated,
            [heard, was_left, candidate, fallback, fallback],
        ),
        (
            Event::ActiveValidated { until: late },
            [heard, was_left, candidate, active, gone(late)],
        ),
        (
            Event::Tick(early),
            [heard, was_left, candidate, active, fallback],
        ),
        (
            Event::Tick(late),
            [heard, None, candidate, active, fallback],
        ),
    ];
    for (event, after) in table {
        for (state, after) in states.into_iter().zip(after) {
            assert_eq!(state.after(event), after, "{state:?} {event:?}");
        }
    }
}
