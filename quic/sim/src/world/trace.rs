//! The record of the traffic.

use std::{fmt, net::SocketAddr, time::Duration};

use hybriq_tls::Side;

use crate::{Datagram, Header, Initial, PacketKind, open_initials};

/// Point at which a datagram was seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Stage {
    /// The datagram left its sender.
    Sent,
    /// The datagram reached the other end.
    Arrived,
}

/// A datagram that was seen.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Record {
    /// Time since the start of the world.
    pub at: Duration,
    /// Point at which it was seen.
    pub stage: Stage,
    /// Side to which it travels.
    pub toward: Side,
    /// Client's address on the path.
    pub client: SocketAddr,
    /// Server's address on the path.
    pub server: SocketAddr,
    /// Number of UDP payload bytes.
    pub size: usize,
    /// Packets in it.
    pub packets: Vec<Header>,
    /// Bytes of the datagram if it begins with a long header; otherwise empty, to save memory.
    pub payload: Vec<u8>,
}

impl Record {
    /// Returns true if the datagram carries a packet of this type.
    pub fn has(&self, kind: PacketKind) -> bool {
        self.packets.iter().any(|packet| packet.kind == kind)
    }
}

impl fmt::Display for Record {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let millis = self.at.as_secs_f64() * 1e3;
        let arrow = if self.toward.is_server() { "->" } else { "<-" };
        let stage = if self.stage == Stage::Sent {
            "sent"
        } else {
            "arrived"
        };
        write!(
            f,
            "{millis:12.3} ms  {} {arrow} {stage:<7} {:>5} B ",
            self.client, self.size
        )?;
        for packet in &self.packets {
            write!(f, " {}({})", packet.kind, packet.range.len())?;
        }
        Ok(())
    }
}

/// All traffic, or only its beginning and end.
#[derive(Clone, Debug, Default)]
pub struct Trace {
    records: Vec<Record>,
    /// Maximum number of records; `None` keeps all.
    most: Option<usize>,
    /// Records that were dropped from the middle.
    left_out: usize,
}

impl Trace {
    const SHOWN: usize = 60;

    pub(crate) fn push(&mut self, at: Duration, stage: Stage, toward: Side, datagram: &Datagram) {
        let (client, server) = if toward.is_server() {
            (datagram.source, datagram.destination)
        } else {
            (datagram.destination, datagram.source)
        };
        let long = datagram
            .payload
            .first()
            .is_some_and(|first| first & 0x80 != 0);
        if self.most.is_some_and(|most| self.records.len() >= most) {
            // Drops the older half, except for the very beginning, so that not every datagram moves
            // records.
            let dropped = Self::SHOWN..self.records.len() / 2;
            self.left_out += dropped.len();
            self.records.drain(dropped);
        }
        self.records.push(Record {
            at,
            stage,
            toward,
            client,
            server,
            size: datagram.payload.len(),
            packets: datagram.packets(),
            payload: if long {
                datagram.payload.clone()
            } else {
                Vec::new()
            },
        });
    }

    /// Limits the number of records from now on; those in the middle are dropped.
    pub(crate) const fn keep_at_most(&mut self, records: usize) {
        let least = 4 * Self::SHOWN;
        self.most = Some(if records < least { least } else { records });
    }

    /// Drops all records and frees their memory.
    pub(crate) fn clear(&mut self) {
        self.records = Vec::new();
    }

    /// Returns every record that was kept, oldest first.
    pub fn records(&self) -> &[Record] {
        &self.records
    }

    /// Returns the datagrams that were sent towards an end, oldest first.
    pub fn sent(&self, toward: Side) -> impl DoubleEndedIterator<Item = &Record> {
        self.records
            .iter()
            .filter(move |record| record.stage == Stage::Sent && record.toward == toward)
    }

    /// Returns the datagrams that reached an end, oldest first.
    pub fn arrived(&self, at: Side) -> impl DoubleEndedIterator<Item = &Record> {
        self.records
            .iter()
            .filter(move |record| record.stage == Stage::Arrived && record.toward == at)
    }

    /// Returns the decrypted Initial packets that an end sent to or from a client.
    pub fn initials(&self, writer: Side, client: SocketAddr) -> Vec<(Duration, Initial)> {
        let of_client = || self.records.iter().filter(|record| record.client == client);
        let first = of_client().find(|record| record.has(PacketKind::Initial));
        let Some(dcid) = first
            .and_then(|record| record.packets.first())
            .map(|first| first.dcid)
        else {
            return Vec::new();
        };
        of_client()
            .filter(|record| record.stage == Stage::Sent && record.toward == writer.peer())
            .flat_map(|record| {
                let initials = open_initials(&record.payload, &dcid, writer);
                initials.into_iter().map(|initial| (record.at, initial))
            })
            .collect()
    }

    /// Returns the number of datagrams sent in both directions that are still recorded.
    pub fn datagrams(&self) -> usize {
        self.records
            .iter()
            .filter(|record| record.stage == Stage::Sent)
            .count()
    }
}

impl fmt::Display for Trace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (head, rest) = self.records.split_at(self.records.len().min(Self::SHOWN));
        let (left_out, tail) = rest.split_at(rest.len().saturating_sub(Self::SHOWN));
        for record in head {
            writeln!(f, "{record}")?;
        }
        let left_out = left_out.len() + self.left_out;
        if left_out > 0 {
            writeln!(f, "             … {left_out} more …")?;
        }
        for record in tail {
            writeln!(f, "{record}")?;
        }
        Ok(())
    }
}
