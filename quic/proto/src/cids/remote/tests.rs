use proptest::prelude::*;

use super::*;

fn cid(sequence: u64) -> Cid {
    Cid::from((sequence ^ 0xc1d0_0000_0000_0000).to_be_bytes())
}

fn frame(sequence: u64, retire_prior_to: u64) -> NewConnectionId {
    NewConnectionId {
        sequence,
        retire_prior_to,
        cid: cid(sequence),
        reset_token: [sequence as u8; 16],
    }
}

fn remote() -> Remote {
    Remote::new(cid(0))
}

/// What came out: the code, or fine.
fn offer(remote: &mut Remote, sequence: u64, retire_prior_to: u64) -> Result<(), Code> {
    remote
        .on_new_connection_id(&frame(sequence, retire_prior_to))
        .map_err(|error| {
            assert_eq!(error.frame, 0x18);
            error.code
        })
}

fn write(remote: &mut Remote) -> Vec<u64> {
    let mut buffer = [0; 1200];
    remote
        .write_frames(&mut FrameWriter::new(&mut buffer))
        .iter()
        .collect()
}

fn sent(sequences: impl IntoIterator<Item = u64>) -> Sent {
    let mut sent = Sent::default();
    sequences
        .into_iter()
        .for_each(|sequence| sent.insert(sequence));
    sent
}

#[test]
fn the_first_id_is_replaced_by_the_servers() {
    let mut remote = remote();
    remote.set_first(cid(77));
    assert_eq!(*remote.active(), cid(77));
    assert_eq!(remote.reset_tokens().next(), None);
    remote.set_first_reset_token([3; 16]);
    assert_eq!(remote.reset_tokens().next(), Some(&[3; 16]));
}

/// Proves: rfc9000 5.1.1 more-ids-than-our-limit-close
#[test]
fn as_many_ids_as_we_allow_are_kept_and_one_more_is_an_error() {
    let mut remote = remote();
    for sequence in 1..limits::PEER_CIDS as u64 {
        offer(&mut remote, sequence, 0).unwrap();
    }
    let next = limits::PEER_CIDS as u64;
    assert_eq!(
        offer(&mut remote, next, 0),
        Err(Code::CONNECTION_ID_LIMIT_ERROR)
    );
}

#[test]
fn an_id_that_makes_room_for_itself_is_welcome() {
    let mut remote = remote();
    for sequence in 1..4 {
        offer(&mut remote, sequence, 0).unwrap();
    }
    offer(&mut remote, 4, 1).unwrap();
    assert_eq!(*remote.active(), cid(1));
    assert!(remote.reset_tokens().eq([&[1; 16]]));
    assert_eq!(write(&mut remote), [0]);
}

/// Proves: rfc9000 19.15 repeated-new-cid-is-fine
#[test]
fn the_same_id_may_come_twice_but_not_with_other_content() {
    let mut remote = remote();
    offer(&mut remote, 1, 0).unwrap();
    offer(&mut remote, 1, 0).unwrap();
    assert_eq!(remote.spare.len(), 1);
    let contradictions = [
        NewConnectionId {
            cid: cid(9),
            ..frame(1, 0)
        },
        NewConnectionId {
            reset_token: [9; 16],
            ..frame(1, 0)
        },
        NewConnectionId {
            sequence: 2,
            ..frame(1, 0)
        },
        NewConnectionId {
            cid: cid(0),
            ..frame(3, 0)
        },
        frame(0, 0),
    ];
    for contradiction in contradictions {
        let error = remote.on_new_connection_id(&contradiction).unwrap_err();
        assert_eq!(error.code, Code::PROTOCOL_VIOLATION, "{contradiction:?}");
    }
}

/// Proves: rfc9000 19.15 retire-prior-to-is-checked
#[test]
fn an_id_that_retires_itself_is_malformed() {
    assert_eq!(offer(&mut remote(), 1, 2), Err(Code::FRAME_ENCODING_ERROR));
}

/// Proves: rfc9000 19.15 no-new-cid-for-empty-ids
#[test]
fn a_peer_without_ids_may_not_issue_any() {
    let mut remote = Remote::new(Cid::EMPTY);
    assert_eq!(offer(&mut remote, 1, 0), Err(Code::PROTOCOL_VIOLATION));
}

/// Proves: rfc9000 5.1.2 retire-prior-to-is-obeyed
#[test]
fn retire_prior_to_retires_everything_below() {
    let mut remote = remote();
    for sequence in 1..4 {
        offer(&mut remote, sequence, 0).unwrap();
    }
    offer(&mut remote, 4, 3).unwrap();
    assert_eq!(*remote.active(), cid(3));
    assert_eq!(write(&mut remote), [0, 1, 2]);
    assert!(!remote.has_pending());
}

/// Proves: rfc9000 19.15 late-new-cid-is-retired
#[test]
fn an_id_that_comes_after_its_retirement_is_retired_once() {
    let mut remote = remote();
    offer(&mut remote, 5, 5).unwrap();
    assert_eq!(write(&mut remote), [0]);
    offer(&mut remote, 2, 0).unwrap();
    assert_eq!(*remote.active(), cid(5));
    assert_eq!(write(&mut remote), [2]);
    remote.on_acked(&sent([0, 2]));
    offer(&mut remote, 2, 0).unwrap();
    assert!(!remote.has_pending(), "a late copy");
}

#[test]
fn a_late_copy_of_an_id_we_left_is_not_taken_for_a_new_one() {
    let mut remote = remote();
    offer(&mut remote, 1, 0).unwrap();
    offer(&mut remote, 2, 0).unwrap();
    assert!(remote.advance());
    assert!(remote.advance());
    assert_eq!(*remote.active(), cid(2));
    offer(&mut remote, 1, 0).unwrap();
    assert!(!remote.advance(), "there is nothing to move to");
}

#[test]
fn a_copy_older_than_memory_is_not_taken_for_a_new_one() {
    let mut remote = remote();
    for sequence in 1..100 {
        offer(&mut remote, sequence, 0).unwrap();
        assert!(remote.advance());
        let frames = sent(write(&mut remote));
        remote.on_acked(&frames);
    }
    offer(&mut remote, 1, 0).unwrap();
    assert!(!remote.advance() && !remote.has_pending());
}

/// Proves: rfc9000 5.1.2 retired-ids-are-not-forgotten
#[test]
fn a_lost_retirement_is_sent_again_until_it_is_acknowledged() {
    let mut remote = remote();
    offer(&mut remote, 1, 1).unwrap();
    assert_eq!(write(&mut remote), [0]);
    assert_eq!(write(&mut remote), []);
    remote.on_lost(&sent([0]));
    assert!(remote.has_pending());
    assert_eq!(write(&mut remote), [0]);
    remote.on_acked(&sent([0]));
    remote.on_lost(&sent([0]));
    assert!(!remote.has_pending());
}

#[test]
fn retirements_that_are_never_acknowledged_end_the_connection() {
    let mut remote = remote();
    for sequence in 1..=limits::PENDING_RETIREMENTS as u64 {
        offer(&mut remote, sequence, sequence).unwrap();
        write(&mut remote);
    }
    let next = limits::PENDING_RETIREMENTS as u64 + 1;
    assert_eq!(
        offer(&mut remote, next, next),
        Err(Code::CONNECTION_ID_LIMIT_ERROR)
    );
    assert!(!remote.advance());
}

#[test]
fn retirements_that_are_acknowledged_may_go_on_forever() {
    let mut remote = remote();
    for sequence in 1..10_000 {
        offer(&mut remote, sequence, sequence).unwrap();
        let frames = sent(write(&mut remote));
        remote.on_acked(&frames);
    }
    assert_eq!(*remote.active(), cid(9_999));
}

#[test]
fn a_peer_that_takes_back_the_last_id_is_in_error() {
    let mut remote = remote();
    offer(&mut remote, 1, 0).unwrap();
    offer(&mut remote, 2, 0).unwrap();
    remote.advance();
    remote.advance();
    // A copy of 2 cannot retire below 2 and leave nothing; one of a retired id could.
    offer(&mut remote, 2, 2).unwrap();
    assert_eq!(*remote.active(), cid(2));
    let mut remote = self::remote();
    offer(&mut remote, 2, 0).unwrap();
    remote.advance();
    offer(&mut remote, 3, 0).unwrap();
    remote.advance();
    offer(&mut remote, 1, 0).unwrap();
    remote.advance();
    assert_eq!(*remote.active(), cid(1));
    assert_eq!(offer(&mut remote, 3, 3), Err(Code::PROTOCOL_VIOLATION));
}

#[test]
fn far_apart_numbers_go_in_several_packets() {
    let mut remote = remote();
    offer(&mut remote, 1 << 40, 1 << 40).unwrap();
    offer(&mut remote, (1 << 40) + 1, (1 << 40) + 1).unwrap();
    assert_eq!(write(&mut remote), [0]);
    assert_eq!(write(&mut remote), [1 << 40]);
}

/// Proves: rfc9000 9.5 each-path-has-its-id
/// Proves: rfc9000 10.3.1 reset-is-looked-for
#[test]
fn a_further_path_takes_an_id_of_its_own_and_both_tokens_count() {
    let mut remote = remote();
    remote.set_first_reset_token([7; 16]);
    assert_eq!(remote.take_for_path(), None, "nothing is spare");
    offer(&mut remote, 1, 0).unwrap();
    offer(&mut remote, 2, 0).unwrap();
    assert_eq!(remote.take_for_path(), Some((1, cid(1))));
    assert_eq!(*remote.active(), cid(0));
    assert_eq!(remote.find(1), Some(&cid(1)));
    assert_eq!(remote.find(2), None, "spare, not in use");
    assert!(remote.reset_tokens().eq([&[7; 16], &[1; 16]]));
    assert!(remote.activate(1) && !remote.activate(2));
    assert_eq!(*remote.active(), cid(1));
    assert!(!remote.has_pending(), "the old path keeps its id");
    remote.retire(0);
    remote.retire(1);
    assert_eq!(*remote.active(), cid(1), "the id in use stays");
    assert_eq!(write(&mut remote), [0]);
    assert!(remote.reset_tokens().eq([&[1; 16]]));
}

#[test]
fn the_peer_may_retire_the_id_of_a_further_path() {
    let mut remote = remote();
    offer(&mut remote, 1, 0).unwrap();
    assert_eq!(remote.take_for_path(), Some((1, cid(1))));
    offer(&mut remote, 2, 2).unwrap();
    assert_eq!(*remote.active(), cid(2));
    assert_eq!(remote.find(1), None);
    assert!(!remote.activate(1));
    assert_eq!(write(&mut remote), [0, 1]);
}

#[test]
fn ids_of_further_paths_count_against_the_limit() {
    let mut remote = remote();
    for sequence in 1..limits::PEER_CIDS as u64 {
        offer(&mut remote, sequence, 0).unwrap();
        assert!(remote.take_for_path().is_some());
    }
    let next = limits::PEER_CIDS as u64;
    assert_eq!(
        offer(&mut remote, next, 0),
        Err(Code::CONNECTION_ID_LIMIT_ERROR)
    );
}

#[test]
fn the_only_id_left_may_be_that_of_a_further_path() {
    let mut remote = remote();
    offer(&mut remote, 1, 0).unwrap();
    assert!(remote.take_for_path().is_some());
    offer(&mut remote, 1, 1).unwrap();
    assert_eq!(*remote.active(), cid(1));
    assert_eq!(write(&mut remote), [0]);
}

/// Proves: rfc9000 18.2 preferred-address-has-an-id
#[test]
fn the_id_of_a_preferred_address_is_the_next_one() {
    let mut remote = remote();
    remote.set_preferred(cid(1), [1; 16]).unwrap();
    offer(&mut remote, 1, 0).unwrap();
    offer(&mut remote, 2, 0).unwrap();
    assert_eq!(remote.take_for_path(), Some((1, cid(1))));
    let wrong = |remote: &mut Remote, id| remote.set_preferred(id, [1; 16]).unwrap_err().code;
    let code = Code::TRANSPORT_PARAMETER_ERROR;
    assert_eq!(wrong(&mut Remote::new(Cid::EMPTY), cid(1)), code);
    assert_eq!(wrong(&mut self::remote(), cid(0)), code);
}

#[test]
fn every_path_to_a_peer_without_ids_shares_the_empty_one() {
    let mut remote = Remote::new(Cid::EMPTY);
    assert_eq!(remote.take_for_path(), Some((0, Cid::EMPTY)));
    assert!(remote.activate(0));
    remote.retire(0);
    assert!(!remote.has_pending() && remote.active().is_empty());
}

proptest! {
    /// Whatever is offered: bounded, an id to send to, none both in use and retired, no panic.
    ///
    /// Proves: security 3 retire-prior-to-stuffing-closes
    #[test]
    fn hostile_offers_stay_within_bounds(
        offers in prop::collection::vec(
            (prop_oneof![0..20u64, 0..1u64 << 62], 0..20u64, any::<bool>()), 0..60),
    ) {
        let mut remote = remote();
        for (sequence, below, is_acked) in offers {
            if below == 0 {
                remote.take_for_path();
            }
            let failed = offer(&mut remote, sequence, sequence.saturating_sub(below)).is_err();
            prop_assert!(remote.spare.len() <= limits::PEER_CIDS);
            prop_assert!(remote.retirements.len() <= limits::PENDING_RETIREMENTS);
            if failed {
                return Ok(());
            }
            prop_assert!(remote.lent.len() + remote.spare.len() < limits::PEER_CIDS);
            for entry in remote.spare.iter().chain(remote.in_use()) {
                prop_assert!(entry.sequence >= remote.retire_prior_to);
                prop_assert!(remote.retirements.iter().all(|old| old.sequence != entry.sequence));
            }
            let frames = sent(write(&mut remote));
            if is_acked {
                remote.on_acked(&frames);
            } else {
                remote.on_lost(&frames);
            }
        }
    }
}
