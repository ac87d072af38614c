//! Challenges and their answers (RFC 9000 §8.2), each sent on its own path.

use std::time::Instant;

use super::{Address, Expanded, Facts, Paths, PeerCids, owner::Which};
use crate::wire::{
    frame::{FrameWriter, PathChallenge},
    limits,
    packet::Cid,
};

/// A datagram that is due on a path.
#[derive(Clone, Copy, Debug)]
pub struct Probe {
    which: Which,
    /// True if it carries one of our challenges; otherwise it carries only an answer.
    asks: bool,
    /// Addresses of the path.
    pub at: Address,
    /// The peer's id for the path.
    pub dcid: Cid,
    /// Bytes available to the datagram.
    pub room: usize,
}

impl Probe {
    /// Returns true if it is sent on the path in use.
    #[must_use]
    pub fn is_on_active(&self) -> bool {
        self.which == Which::Active
    }

    /// Returns the size of its datagram.
    #[must_use]
    pub const fn expanded(&self) -> Expanded {
        if self.room == limits::MIN_DATAGRAM {
            Expanded::Full
        } else {
            Expanded::Short
        }
    }
}

/// State of the congestion window of the path in use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Window {
    /// The window has room for a probe.
    Open,
    /// The window is full.
    Full,
}

/// Frames written into a probe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Wrote {
    /// Answers, and perhaps a challenge.
    Answers,
    /// At most a challenge.
    NoAnswer,
}

impl<S> Paths<S> {
    /// Queues the answer to a challenge on the path on which the challenge arrived (RFC 9000
    /// §8.2.2).
    pub fn on_challenge(&mut self, challenge: PathChallenge, dcid: &Cid, facts: &mut Facts<'_>) {
        // The packet may have contained the id that the path needs.
        self.on_packet_elsewhere(dcid, facts);
        let path = self.came_on().and_then(|which| self.path_mut(which));
        if let Some(path) = path {
            path.on_challenge(&challenge);
        }
    }

    /// Returns true if a probe may be due.
    #[inline]
    pub fn may_want_probe(&self) -> bool {
        !self.others.is_empty() || self.active.wants_probe()
    }

    /// Returns the next probe after `failed`, which could not be written, that is due and may be
    /// sent now; paths not in use come first. A path without credit or id does not hold up others.
    pub fn next_probe(
        &mut self,
        failed: Option<&Probe>,
        window: Window,
        cids: &mut dyn PeerCids,
    ) -> Option<Probe> {
        let mut place = match failed.map(|probe| probe.which) {
            None => 0,
            Some(Which::Other(place)) => place + 1,
            Some(Which::Active) => return None,
        };
        while let Some(path) = self.others.get_mut(place) {
            if path.wants_probe() && path.credit() > 0 {
                let probe = self.probe_on(Which::Other(place), cids);
                if let Some(probe) = probe.filter(|probe| self.may_probe(probe, window)) {
                    return Some(probe);
                }
            }
            place += 1;
        }
        if !self.active.wants_probe() {
            return None;
        }
        self.probe_on(Which::Active, cids)
            .filter(|probe| self.may_probe(probe, window))
    }

    fn probe_on(&mut self, which: Which, cids: &mut dyn PeerCids) -> Option<Probe> {
        let path = self.path_mut(which)?;
        let dcid = match which {
            Which::Active => cids.active().cid,
            Which::Other(_) => {
                if let Some(cid) = cids.find(path.peer_cid) {
                    cid
                } else {
                    // The peer retired it, but there may be another.
                    let spare = cids.take_spare()?;
                    path.peer_cid = spare.sequence;
                    spare.cid
                }
            }
        };
        let credit = usize::try_from(path.credit()).unwrap_or(usize::MAX);
        Some(Probe {
            which,
            asks: path.validation.is_due(),
            at: path.address(),
            dcid,
            room: limits::MIN_DATAGRAM.min(credit),
        })
    }

    /// Returns true if a probe may be sent now.
    ///
    /// On the path in use an answer waits for the congestion window (RFC 9000 §8.2.2). Probes
    /// outside of it are limited by [`limits::PROBE_BYTES`] until the peer acknowledges something
    /// or answers; otherwise a peer that keeps challenging and moving would get more than any
    /// window allows. Challenges of a client are exempt: it moves only at its own application's
    /// request.
    fn may_probe(&self, probe: &Probe, window: Window) -> bool {
        match window {
            Window::Open if probe.is_on_active() => true,
            Window::Full if probe.is_on_active() && !probe.asks => false,
            _ if probe.asks && self.side.is_client() => true,
            _ => self.outside_window + probe.room as u64 <= limits::PROBE_BYTES,
        }
    }

    /// Notes that the peer newly acknowledged something.
    #[inline]
    pub const fn on_progress(&mut self) {
        self.outside_window = 0;
    }

    /// Notes that the peer answered a challenge of 1200 bytes: the challenge arrived, and the
    /// answer to one of the peer's own may follow. It does not renew the whole allowance; otherwise
    /// a peer that answers one probe in ten and acknowledges nothing would get the others for free.
    pub(super) const fn on_full_answer(&mut self) {
        let paid = 2 * limits::MIN_DATAGRAM as u64;
        self.outside_window = self.outside_window.saturating_sub(paid);
    }

    /// Writes the answers of a path, and then its challenge.
    pub fn write_probe(&mut self, now: Instant, probe: &Probe, out: &mut FrameWriter<'_>) -> Wrote {
        let data = self.draw().to_be_bytes();
        let Some(path) = self.path_mut(probe.which) else {
            return Wrote::NoAnswer;
        };
        let before = out.len();
        path.write_frames(out);
        let answers = out.len() > before;
        if path.validation.is_due() && out.write(&PathChallenge(data)) {
            path.validation.on_sent(now, data, probe.expanded());
        }
        if answers {
            Wrote::Answers
        } else {
            Wrote::NoAnswer
        }
    }

    /// Debits the path for a probe that was sent.
    pub fn on_probe_sent(&mut self, probe: &Probe, bytes: usize, window: Window) {
        if !probe.is_on_active() || window == Window::Full {
            self.outside_window += bytes as u64;
        }
        if let Some(path) = self.path_mut(probe.which) {
            path.on_sent(bytes as u64);
        }
    }
}
