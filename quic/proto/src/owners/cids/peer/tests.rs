use proptest::prelude::*;

use super::*;
use crate::{
    testing::write_frames,
    wire::{ResetToken, error::Code, packet::Space},
};

fn cid(sequence: u64) -> Cid {
    Cid::from((sequence ^ 0xc1d0_0000_0000_0000).to_be_bytes())
}

const fn numbered(sequence: u64, cid: Cid) -> NumberedCid {
    NumberedCid { sequence, cid }
}

fn frame(sequence: u64, retire_prior_to: u64) -> NewConnectionId {
    NewConnectionId {
        sequence,
        retire_prior_to,
        cid: cid(sequence),
        reset_token: [sequence as u8; 16].into(),
    }
}

fn peer() -> Peer {
    Peer::new(cid(0))
}

/// Offers an id. Returns the error code if it is refused.
fn offer(peer: &mut Peer, sequence: u64, retire_prior_to: u64) -> Result<(), Code> {
    peer.on_new_connection_id(&frame(sequence, retire_prior_to))
        .map_err(Violation::code)
}

fn write(peer: &mut Peer) -> Vec<u64> {
    let mut buffer = [0; 1200];
    write_frames(peer, &mut FrameWriter::new(&mut buffer))
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
    let mut peer = peer();
    peer.set_first(cid(77));
    assert_eq!(*peer.active(), cid(77));
    assert_eq!(peer.reset_tokens().next(), None);
    peer.set_first_reset_token([3; 16].into());
    assert_eq!(peer.reset_tokens().next(), Some(&[3; 16].into()));
}

/// Proves: rfc9000 5.1.1 more-ids-than-our-limit-close
#[test]
fn as_many_ids_as_we_allow_are_kept_and_one_more_is_an_error() {
    let mut peer = peer();
    for sequence in 1..limits::PEER_CIDS as u64 {
        offer(&mut peer, sequence, 0).unwrap();
    }
    let next = limits::PEER_CIDS as u64;
    assert_eq!(
        offer(&mut peer, next, 0),
        Err(Code::CONNECTION_ID_LIMIT_ERROR)
    );
}

#[test]
fn an_id_that_makes_room_for_itself_is_welcome() {
    let mut peer = peer();
    for sequence in 1..4 {
        offer(&mut peer, sequence, 0).unwrap();
    }
    offer(&mut peer, 4, 1).unwrap();
    assert_eq!(*peer.active(), cid(1));
    assert!(peer.reset_tokens().eq([&ResetToken::new([1; 16])]));
    assert_eq!(write(&mut peer), [0]);
}

/// Proves: rfc9000 19.15 repeated-new-cid-is-fine
#[test]
fn the_same_id_may_come_twice_but_not_with_other_content() {
    let mut peer = peer();
    offer(&mut peer, 1, 0).unwrap();
    offer(&mut peer, 1, 0).unwrap();
    assert_eq!(peer.spare.len(), 1);
    let contradictions = [
        NewConnectionId {
            cid: cid(9),
            ..frame(1, 0)
        },
        NewConnectionId {
            reset_token: [9; 16].into(),
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
        let error = peer.on_new_connection_id(&contradiction).unwrap_err();
        assert_eq!(error.code(), Code::PROTOCOL_VIOLATION, "{contradiction:?}");
    }
}

/// Proves: rfc9000 19.15 retire-prior-to-is-checked
#[test]
fn an_id_that_retires_itself_is_malformed() {
    assert_eq!(offer(&mut peer(), 1, 2), Err(Code::FRAME_ENCODING_ERROR));
}

/// Proves: rfc9000 19.15 no-new-cid-for-empty-ids
#[test]
fn a_peer_without_ids_may_not_issue_any() {
    let mut peer = Peer::new(Cid::EMPTY);
    assert_eq!(offer(&mut peer, 1, 0), Err(Code::PROTOCOL_VIOLATION));
}

/// Proves: rfc9000 5.1.2 retire-prior-to-is-obeyed
#[test]
fn retire_prior_to_retires_everything_below() {
    let mut peer = peer();
    for sequence in 1..4 {
        offer(&mut peer, sequence, 0).unwrap();
    }
    offer(&mut peer, 4, 3).unwrap();
    assert_eq!(*peer.active(), cid(3));
    assert_eq!(write(&mut peer), [0, 1, 2]);
    assert!(!peer.wants_to_send(Space::Data));
}

/// Proves: rfc9000 19.15 late-new-cid-is-retired
#[test]
fn an_id_that_comes_after_its_retirement_is_retired_once() {
    let mut peer = peer();
    offer(&mut peer, 5, 5).unwrap();
    assert_eq!(write(&mut peer), [0]);
    offer(&mut peer, 2, 0).unwrap();
    assert_eq!(*peer.active(), cid(5));
    assert_eq!(write(&mut peer), [2]);
    peer.on_acked(&sent([0, 2]));
    offer(&mut peer, 2, 0).unwrap();
    assert!(!peer.wants_to_send(Space::Data), "a late copy");
}

#[test]
fn a_late_copy_of_an_id_we_left_is_not_taken_for_a_new_one() {
    let mut peer = peer();
    offer(&mut peer, 1, 0).unwrap();
    offer(&mut peer, 2, 0).unwrap();
    assert!(peer.advance());
    assert!(peer.advance());
    assert_eq!(*peer.active(), cid(2));
    offer(&mut peer, 1, 0).unwrap();
    assert!(!peer.advance(), "there is nothing to move to");
}

#[test]
fn a_copy_older_than_memory_is_not_taken_for_a_new_one() {
    let mut peer = peer();
    for sequence in 1..100 {
        offer(&mut peer, sequence, 0).unwrap();
        assert!(peer.advance());
        let frames = sent(write(&mut peer));
        peer.on_acked(&frames);
    }
    offer(&mut peer, 1, 0).unwrap();
    assert!(!peer.advance());
    assert_eq!(write(&mut peer), [1], "retired again, should it be new");
}

/// Proves: rfc9000 19.15 late-new-cid-is-retired
#[test]
fn an_id_far_behind_that_never_came_is_retired() {
    let mut peer = peer();
    offer(&mut peer, 100, 100).unwrap();
    assert_eq!(write(&mut peer), [0]);
    offer(&mut peer, 7, 0).unwrap();
    assert_eq!(write(&mut peer), [7]);
    assert_eq!(*peer.active(), cid(100));
}

/// Proves: rfc9000 5.1.2 retired-ids-are-not-forgotten
#[test]
fn a_lost_retirement_is_sent_again_until_it_is_acknowledged() {
    let mut peer = peer();
    offer(&mut peer, 1, 1).unwrap();
    assert_eq!(write(&mut peer), [0]);
    assert_eq!(write(&mut peer), []);
    peer.on_lost(&sent([0]));
    assert!(peer.wants_to_send(Space::Data));
    assert_eq!(write(&mut peer), [0]);
    peer.on_acked(&sent([0]));
    peer.on_lost(&sent([0]));
    assert!(!peer.wants_to_send(Space::Data));
}

#[test]
fn retirements_that_are_never_acknowledged_end_the_connection() {
    let mut peer = peer();
    for sequence in 1..=limits::PENDING_RETIREMENTS as u64 {
        offer(&mut peer, sequence, sequence).unwrap();
        write(&mut peer);
    }
    let next = limits::PENDING_RETIREMENTS as u64 + 1;
    assert_eq!(
        offer(&mut peer, next, next),
        Err(Code::CONNECTION_ID_LIMIT_ERROR)
    );
    assert!(!peer.advance());
}

#[test]
fn retirements_that_are_acknowledged_may_go_on_forever() {
    let mut peer = peer();
    for sequence in 1..10_000 {
        offer(&mut peer, sequence, sequence).unwrap();
        let frames = sent(write(&mut peer));
        peer.on_acked(&frames);
    }
    assert_eq!(*peer.active(), cid(9_999));
}

#[test]
fn a_peer_that_takes_back_the_last_id_is_in_error() {
    let mut peer = peer();
    offer(&mut peer, 1, 0).unwrap();
    offer(&mut peer, 2, 0).unwrap();
    peer.advance();
    peer.advance();
    // A copy of 2 cannot retire below 2 and leave nothing; one of a retired id could.
    offer(&mut peer, 2, 2).unwrap();
    assert_eq!(*peer.active(), cid(2));
    let mut peer = self::peer();
    offer(&mut peer, 2, 0).unwrap();
    peer.advance();
    offer(&mut peer, 3, 0).unwrap();
    peer.advance();
    offer(&mut peer, 1, 0).unwrap();
    peer.advance();
    assert_eq!(*peer.active(), cid(1));
    assert_eq!(offer(&mut peer, 3, 3), Err(Code::PROTOCOL_VIOLATION));
}

#[test]
fn far_apart_numbers_go_in_several_packets() {
    let mut peer = peer();
    offer(&mut peer, 1 << 40, 1 << 40).unwrap();
    offer(&mut peer, (1 << 40) + 1, (1 << 40) + 1).unwrap();
    assert_eq!(write(&mut peer), [0]);
    assert_eq!(write(&mut peer), [1 << 40]);
}

/// Proves: rfc9000 9.5 each-path-has-its-id
/// Proves: rfc9000 10.3.1 reset-is-looked-for
#[test]
fn a_further_path_takes_an_id_of_its_own_and_both_tokens_count() {
    let mut peer = peer();
    peer.set_first_reset_token([7; 16].into());
    assert_eq!(peer.take_for_path(), None, "nothing is spare");
    offer(&mut peer, 1, 0).unwrap();
    offer(&mut peer, 2, 0).unwrap();
    assert_eq!(peer.take_for_path(), Some(numbered(1, cid(1))));
    assert_eq!(*peer.active(), cid(0));
    assert_eq!(peer.find(1), Some(&cid(1)));
    assert_eq!(peer.find(2), None, "spare, not in use");
    assert!(
        peer.reset_tokens()
            .eq([&ResetToken::new([7; 16]), &ResetToken::new([1; 16])])
    );
    assert!(peer.activate(1) && !peer.activate(2));
    assert_eq!(*peer.active(), cid(1));
    assert!(
        !peer.wants_to_send(Space::Data),
        "the old path keeps its id"
    );
    peer.retire(0);
    peer.retire(1);
    assert_eq!(*peer.active(), cid(1), "the id in use stays");
    assert_eq!(write(&mut peer), [0]);
    assert!(peer.reset_tokens().eq([&ResetToken::new([1; 16])]));
}

#[test]
fn the_peer_may_retire_the_id_of_a_further_path() {
    let mut peer = peer();
    offer(&mut peer, 1, 0).unwrap();
    assert_eq!(peer.take_for_path(), Some(numbered(1, cid(1))));
    offer(&mut peer, 2, 2).unwrap();
    assert_eq!(*peer.active(), cid(2));
    assert_eq!(peer.find(1), None);
    assert!(!peer.activate(1));
    assert_eq!(write(&mut peer), [0, 1]);
}

#[test]
fn ids_of_further_paths_count_against_the_limit() {
    let mut peer = peer();
    for sequence in 1..limits::PEER_CIDS as u64 {
        offer(&mut peer, sequence, 0).unwrap();
        assert!(peer.take_for_path().is_some());
    }
    let next = limits::PEER_CIDS as u64;
    assert_eq!(
        offer(&mut peer, next, 0),
        Err(Code::CONNECTION_ID_LIMIT_ERROR)
    );
}

#[test]
fn the_only_id_left_may_be_that_of_a_further_path() {
    let mut peer = peer();
    offer(&mut peer, 1, 0).unwrap();
    assert!(peer.take_for_path().is_some());
    offer(&mut peer, 1, 1).unwrap();
    assert_eq!(*peer.active(), cid(1));
    assert_eq!(write(&mut peer), [0]);
}

/// Proves: rfc9000 18.2 preferred-address-has-an-id
#[test]
fn the_id_of_a_preferred_address_is_the_next_one() {
    let mut peer = peer();
    peer.set_preferred(cid(1), [1; 16].into()).unwrap();
    offer(&mut peer, 1, 0).unwrap();
    offer(&mut peer, 2, 0).unwrap();
    assert_eq!(peer.take_for_path(), Some(numbered(1, cid(1))));
    let wrong = |peer: &mut Peer, id| peer.set_preferred(id, [1; 16].into()).unwrap_err().code();
    let code = Code::TRANSPORT_PARAMETER_ERROR;
    assert_eq!(wrong(&mut Peer::new(Cid::EMPTY), cid(1)), code);
    assert_eq!(wrong(&mut self::peer(), cid(0)), code);
}

#[test]
fn every_path_to_a_peer_without_ids_shares_the_empty_one() {
    let mut peer = Peer::new(Cid::EMPTY);
    assert_eq!(peer.take_for_path(), Some(numbered(0, Cid::EMPTY)));
    assert!(peer.activate(0));
    peer.retire(0);
    assert!(!peer.wants_to_send(Space::Data) && peer.active().is_empty());
}

proptest! {
    /// Whatever is offered: a limited number of ids, one to send to, none both in use and retired,
    /// no panic.
    ///
    /// Proves: security 3 retire-prior-to-stuffing-closes
    #[test]
    fn hostile_offers_stay_within_bounds(
        offers in prop::collection::vec(
            (prop_oneof![0..20u64, 0..1u64 << 62], 0..20u64, any::<bool>()), 0..60),
    ) {
        let mut peer = peer();
        for (sequence, below, is_acked) in offers {
            if below == 0 {
                peer.take_for_path();
            }
            let failed = offer(&mut peer, sequence, sequence.saturating_sub(below)).is_err();
            prop_assert!(peer.spare.len() <= limits::PEER_CIDS);
            prop_assert!(peer.retirements.len() <= limits::PENDING_RETIREMENTS);
            if failed {
                return Ok(());
            }
            prop_assert!(peer.lent.len() + peer.spare.len() < limits::PEER_CIDS);
            for entry in peer.spare.iter().chain(peer.in_use()) {
                prop_assert!(entry.sequence >= peer.retire_prior_to);
                prop_assert!(peer.retirements.iter().all(|old| old.sequence != entry.sequence));
            }
            let frames = sent(write(&mut peer));
            if is_acked {
                peer.on_acked(&frames);
            } else {
                peer.on_lost(&frames);
            }
        }
    }
}
