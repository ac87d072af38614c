use arrayvec::ArrayVec;

use super::Sent;
use crate::proto::{
    error::{Code, TransportError},
    frame::{FrameWriter, NewConnectionId, RetireConnectionId},
    limits,
    packet::Cid,
};

#[cfg(test)]
mod tests;

/// The type of RETIRE_CONNECTION_ID (RFC 9000 §19.16).
const RETIRE_CONNECTION_ID: u64 = 0x19;

/// A change of the routing table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CidEvent {
    /// Packets with this id belong to the connection.
    Issued(Cid),
    /// They do no longer.
    Retired(Cid),
}

/// What the peer knows of an id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Told {
    /// The frame has to be sent, perhaps again.
    Pending,
    /// It is under way.
    Sent,
    /// It arrived.
    Known,
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    sequence: u64,
    cid: Cid,
    reset_token: [u8; 16],
    told: Told,
}

/// The connection ids we issue, each [`limits::LOCAL_CID_LEN`] bytes with our worker's index in
/// front, so that any worker can tell whose packet it is.
#[derive(Debug)]
pub struct Local {
    worker: u8,
    /// In the order of sequence numbers.
    active: ArrayVec<Entry, { limits::LOCAL_CIDS }>,
    next_sequence: u64,
    /// How many may be active: 1 until the peer's limit is known.
    limit: usize,
    /// Room for every active id to come and go between two polls.
    events: ArrayVec<CidEvent, { 2 * limits::LOCAL_CIDS }>,
}

impl Local {
    /// Starts with the id of our first packet, sequence number 0, made by [`Local::generate`]. The
    /// caller routes that one already.
    pub fn new(worker: u8, first: Cid) -> Self {
        let mut active = ArrayVec::new();
        active.push(Entry {
            sequence: 0,
            cid: first,
            reset_token: [0; 16],
            told: Told::Known,
        });
        Self {
            worker,
            active,
            next_sequence: 1,
            limit: 1,
            events: ArrayVec::new(),
        }
    }

    /// Makes an id: the worker's index, then seven random bytes.
    pub fn generate(worker: u8, fill_random: impl FnOnce(&mut [u8])) -> Cid {
        let mut bytes = [0; limits::LOCAL_CID_LEN];
        let [first, random @ ..] = &mut bytes;
        *first = worker;
        fill_random(random);
        Cid::from(bytes)
    }

    /// Learns the peer's `active_connection_id_limit`. It may keep fewer than it is ready to.
    pub fn set_peer_limit(&mut self, limit: u64) {
        self.limit = usize::try_from(limit)
            .unwrap_or(usize::MAX)
            .clamp(1, limits::LOCAL_CIDS);
    }

    /// How many ids are to be issued.
    pub fn missing(&self) -> usize {
        // Each needs room for two events, and each active one keeps room for its end.
        let room = self
            .events
            .remaining_capacity()
            .saturating_sub(self.active.len())
            / 2;
        self.limit.saturating_sub(self.active.len()).min(room)
    }

    /// Issues what is missing: random bytes and the stateless reset token of an id come from the
    /// caller, who should route each ([`Local::poll_event`]) before the frame leaves.
    pub fn issue(
        &mut self,
        mut fill_random: impl FnMut(&mut [u8]),
        mut reset_token: impl FnMut(&Cid) -> [u8; 16],
    ) {
        for _ in 0..self.missing() {
            let cid = Self::generate(self.worker, &mut fill_random);
            self.active.push(Entry {
                sequence: self.next_sequence,
                cid,
                reset_token: reset_token(&cid),
                told: Told::Pending,
            });
            self.next_sequence += 1;
            self.events.push(CidEvent::Issued(cid));
        }
    }

    /// Takes a RETIRE_CONNECTION_ID from a packet that was sent to `packet_dcid`.
    ///
    /// # Errors
    /// PROTOCOL_VIOLATION if the id was never issued, or is the packet's own (RFC 9000 §19.16).
    pub fn on_retire_connection_id(
        &mut self,
        frame: &RetireConnectionId,
        packet_dcid: &Cid,
    ) -> Result<(), TransportError> {
        let violation = |reason| {
            TransportError::new(Code::PROTOCOL_VIOLATION, reason).in_frame(RETIRE_CONNECTION_ID)
        };
        if frame.sequence >= self.next_sequence {
            return Err(violation(
                "RETIRE_CONNECTION_ID for a sequence number that was never issued",
            ));
        }
        let Some(index) = self
            .active
            .iter()
            .position(|entry| entry.sequence == frame.sequence)
        else {
            return Ok(());
        };
        if self
            .active
            .get(index)
            .is_some_and(|entry| entry.cid == *packet_dcid)
        {
            return Err(violation(
                "RETIRE_CONNECTION_ID for the connection id of its own packet",
            ));
        }
        let retired = CidEvent::Retired(self.active.remove(index).cid);
        // `missing` left room for it when the id was issued.
        let queued = self.events.try_push(retired);
        debug_assert!(queued.is_ok(), "an event for every id that comes or goes");
        Ok(())
    }

    /// What changed for the routing table, oldest first.
    pub fn poll_event(&mut self) -> Option<CidEvent> {
        self.events.pop_at(0)
    }

    /// Every id that routes to the connection, to clear the table when it ends.
    pub fn active(&self) -> impl Iterator<Item = Cid> {
        self.active.iter().map(|entry| entry.cid)
    }

    /// Whether a NEW_CONNECTION_ID waits.
    pub fn has_pending(&self) -> bool {
        self.active.iter().any(|entry| entry.told == Told::Pending)
    }

    /// Writes the NEW_CONNECTION_ID frames that wait.
    pub fn write_frames(&mut self, out: &mut FrameWriter<'_>) -> Sent {
        let mut sent = Sent::default();
        for entry in self
            .active
            .iter_mut()
            .filter(|entry| entry.told == Told::Pending)
        {
            let frame = NewConnectionId {
                sequence: entry.sequence,
                retire_prior_to: 0,
                cid: entry.cid,
                reset_token: entry.reset_token,
            };
            if !sent.has_room_for(entry.sequence) || !out.write(&frame) {
                break;
            }
            entry.told = Told::Sent;
            sent.insert(entry.sequence);
        }
        sent
    }

    /// A packet with these frames was acknowledged.
    pub fn on_acked(&mut self, sent: &Sent) {
        for sequence in sent.iter() {
            if let Some(entry) = self.find(sequence) {
                entry.told = Told::Known;
            }
        }
    }

    /// A packet with these frames was lost: those still of use are written again.
    pub fn on_lost(&mut self, sent: &Sent) {
        for sequence in sent.iter() {
            if let Some(entry) = self.find(sequence).filter(|entry| entry.told == Told::Sent) {
                entry.told = Told::Pending;
            }
        }
    }

    fn find(&mut self, sequence: u64) -> Option<&mut Entry> {
        self.active
            .iter_mut()
            .find(|entry| entry.sequence == sequence)
    }
}
