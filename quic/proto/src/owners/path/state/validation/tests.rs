use super::*;

const PTO: Duration = Duration::from_millis(100);

fn base() -> Instant {
    #[expect(clippy::disallowed_methods, reason = "a base for virtual time")]
    Instant::now()
}

fn started(now: Instant) -> Validation {
    let mut validation = Validation::none();
    validation.start(now, Patience::new(PTO, 10 * PTO));
    validation
}

/// Proves: rfc9000 9.4 challenge-timer-is-conservative
/// Proves: rfc9000 8.2.4 validation-is-abandoned
#[test]
fn a_challenge_is_repeated_ever_more_rarely() {
    let start = base();
    let mut validation = started(start);
    let mut now = start;
    let mut sent = Vec::new();
    loop {
        if validation.is_due() {
            validation.on_sent(now, [sent.len() as u8; 8], Expanded::Full);
            sent.push(now - start);
        }
        now = validation.next_timeout().unwrap();
        if validation.on_timeout(now) {
            break;
        }
    }
    assert_eq!(sent, [0, 1, 3, 7, 15].map(|ptos| ptos * PTO));
    assert_eq!(now - start, 30 * PTO);
    assert!(validation.0.is_none() && validation.next_timeout().is_none());
}

/// Proves: rfc9000 8.2.3 only-its-data-answers-a-challenge
#[test]
fn any_challenge_sent_may_be_answered_and_nothing_else() {
    let now = base();
    let mut validation = started(now);
    assert_eq!(validation.on_response([0; 8]), None, "nothing was sent");
    validation.on_sent(now, [1; 8], Expanded::Short);
    validation.on_sent(now + PTO, [2; 8], Expanded::Full);
    assert_eq!(validation.on_response([3; 8]), None);
    assert!(validation.0.is_some());
    let answered = Answered {
        sent_at: now,
        expanded: Expanded::Short,
    };
    assert_eq!(validation.on_response([1; 8]), Some(answered));
    assert_eq!(validation.on_response([2; 8]), None, "it is over");
}

/// Proves: rfc9000 8.2.4 validation-is-abandoned
#[test]
fn what_may_not_be_sent_fails_in_time_all_the_same() {
    let now = base();
    let mut validation = started(now);
    assert_eq!(validation.next_timeout(), Some(now + 30 * PTO));
    assert!(!validation.on_timeout(now + PTO) && validation.is_due());
    assert!(validation.on_timeout(now + 30 * PTO));
}

#[test]
fn challenges_are_remembered_up_to_a_limit() {
    let now = base();
    let mut validation = started(now);
    let count = limits::PATH_CHALLENGES as u8;
    for number in 0..=count {
        validation.on_sent(now, [number; 8], Expanded::Full);
    }
    assert_eq!(validation.on_response([0; 8]), None);
    assert!(validation.on_response([count; 8]).is_some());
}
