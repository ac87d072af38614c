//! Our own key updates (RFC 9001 §6).

use std::time::Instant;

use crate::{
    connection::Connection,
    owners::handshake::OneRtt,
    wire::{
        error::Violation,
        packet::{PacketNumber, Space},
    },
};

impl Connection {
    /// Starts a key update (RFC 9001 §6) if the last one is over.
    ///
    /// Returns true if it was started.
    pub fn update_keys(&mut self) -> bool {
        let confirmed = self.state.is_confirmed();
        let largest_acked = self.recovery.largest_acked(Space::Data);
        match self.handshake.keys_mut().one_rtt_mut() {
            Some(keys) if confirmed && keys.may_update(largest_acked) => {
                keys.update();
                true
            }
            _ => false,
        }
    }

    /// Requests a key update as soon as one is allowed. The caller transmits afterwards.
    pub fn request_key_update(&mut self) {
        if let Some(keys) = self.handshake.keys_mut().one_rtt_mut() {
            keys.want_update();
        }
    }

    /// Returns the number of updates of the 1-RTT keys, by either end.
    pub fn key_updates(&self) -> u64 {
        self.handshake.keys().one_rtt().map_or(0, OneRtt::updates)
    }

    /// Starts a requested update if one is allowed now.
    pub(in crate::connection) fn start_wanted_update(&mut self, now: Instant) {
        let keys = self.handshake.keys_mut().one_rtt_mut();
        if let Some(keys) = keys.filter(|keys| keys.wants_update()) {
            keys.expire(now);
            self.update_keys();
        }
    }

    /// Counts a sealed 1-RTT packet. Starts an update when one is due, and ends the connection when
    /// the keys are used up.
    pub(in crate::connection) fn count_sealed(&mut self, now: Instant, pn: PacketNumber) {
        let most = self.config.key_update_after;
        let Some(keys) = self.handshake.keys_mut().one_rtt_mut() else {
            return;
        };
        if !keys.on_sealed(pn, most) {
            return;
        }
        keys.expire(now);
        let spent = keys.is_spent();
        if !self.update_keys() && spent {
            self.close_by_transport(now, Violation::NoKeyUpdate.into());
        }
    }
}
