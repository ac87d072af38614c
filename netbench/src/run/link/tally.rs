//! Counters of a link.

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// Reason for the loss of a datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Loss {
    /// `--loss`
    Random,
    /// `--burst-loss`
    Burst,
    /// The queue was full.
    Queue,
    /// `--blackout`
    Blackout,
    /// `--mtu`
    Size,
    /// The relay's memory limit was reached.
    Memory,
}

/// Number of lost datagrams by reason.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Losses {
    pub(crate) random: u64,
    pub(crate) burst: u64,
    pub(crate) queue: u64,
    pub(crate) blackout: u64,
    pub(crate) size: u64,
    pub(crate) memory: u64,
}

impl Losses {
    pub(crate) fn add(&mut self, loss: Loss) {
        *match loss {
            Loss::Random => &mut self.random,
            Loss::Burst => &mut self.burst,
            Loss::Queue => &mut self.queue,
            Loss::Blackout => &mut self.blackout,
            Loss::Size => &mut self.size,
            Loss::Memory => &mut self.memory,
        } += 1;
    }

    pub(crate) const fn sum(&self) -> u64 {
        self.random + self.burst + self.queue + self.blackout + self.size + self.memory
    }
}

/// Counters of one direction. Bytes are UDP payload bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Tally {
    pub(crate) datagrams_in: u64,
    pub(crate) bytes_in: u64,
    /// Includes copies, but not datagrams that the system refused to send.
    pub(crate) datagrams_out: u64,
    pub(crate) bytes_out: u64,
    pub(crate) lost: Losses,
    pub(crate) duplicated: u64,
    pub(crate) corrupted: u64,
    /// Held back for `--reorder`.
    pub(crate) reordered: u64,
    /// Marked with CE.
    pub(crate) marked: u64,
    /// Longest wait for the line, without the datagram's own transmission.
    pub(crate) max_queue_delay_us: f64,
    pub(crate) mean_queue_delay_us: f64,
    /// Rate on the line, including datagrams lost afterwards, from the first datagram in to the
    /// last out.
    pub(crate) rate_mbit: f64,
    /// Time by which datagrams left the relay too late.
    pub(crate) mean_late_us: f64,
    pub(crate) max_late_us: f64,
    /// In flight when the relay stopped.
    pub(crate) held: u64,
    /// Refused by the system on sending.
    pub(crate) unsent: u64,
    /// Dropped by the system before the relay saw them: its socket buffer was full.
    pub(crate) unseen: u64,
}

/// Summary of both directions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Summary {
    pub(crate) seed: u64,
    pub(crate) clients: u64,
    /// Number of times that a client's port was changed.
    pub(crate) rebinds: u64,
    /// Datagrams of clients for which the table had no room.
    pub(crate) turned_away: u64,
    /// CPU time of the relay.
    pub(crate) cpu_s: f64,
    /// From clients to the server.
    pub(crate) up: Tally,
    /// From the server to clients.
    pub(crate) down: Tally,
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let lost = &self.lost;
        writeln!(
            f,
            "{} datagrams, {} bytes in; {}, {} out; {:.3} Mbit/s",
            self.datagrams_in, self.bytes_in, self.datagrams_out, self.bytes_out, self.rate_mbit
        )?;
        writeln!(
            f,
            "      lost {}: random {}, burst {}, queue {}, blackout {}, size {}, memory {}",
            lost.sum(),
            lost.random,
            lost.burst,
            lost.queue,
            lost.blackout,
            lost.size,
            lost.memory
        )?;
        writeln!(
            f,
            "      reordered {}, duplicated {}, corrupted {}, marked {}; held {}, unsent {}, unseen {}",
            self.reordered,
            self.duplicated,
            self.corrupted,
            self.marked,
            self.held,
            self.unsent,
            self.unseen
        )?;
        write!(
            f,
            "      queue {:.1} ms on average, {:.1} ms at most; late by {:.0} µs on average, {:.0} µs at most",
            self.mean_queue_delay_us / 1e3,
            self.max_queue_delay_us / 1e3,
            self.mean_late_us,
            self.max_late_us
        )
    }
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "up:   {}", self.up)?;
        writeln!(f, "down: {}", self.down)?;
        write!(
            f,
            "clients {}, rebound {} times, datagrams turned away {}; {:.2} s of CPU; seed {}",
            self.clients, self.rebinds, self.turned_away, self.cpu_s, self.seed
        )
    }
}

pub(crate) fn micros(time: Duration) -> f64 {
    time.as_secs_f64() * 1e6
}
