//! The two sides of a connection.

use std::collections::BTreeSet;
use std::time::Duration;

use super::format;
use crate::scenario::{Bytes, Iterate, Op, Open, Rate, Request, Stream};

/// One side of a connection, or its script for one stream opened by the other side.
#[derive(Clone, Copy)]
pub(super) struct Side<'a> {
    pub(super) end: &'a End<'a>,
    /// Scripts of the other side for the streams opened by this one.
    pub(super) other: &'a End<'a>,
    pub(super) traces: &'a [String],
    /// Number of the stream of this script, which is 0 in our format.
    pub(super) stream: Option<u64>,
}

/// Role of an end in its connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    /// The end that opens the connection.
    Client,
    /// The end that accepts it.
    Server,
}

/// One end of a connection.
pub(super) struct End<'a> {
    role: Role,
    connection: &'a format::Connection,
    /// Checkpoints at which it waits. An `unpark` of any other has no effect.
    parked: BTreeSet<u64>,
}

impl<'a> End<'a> {
    pub(super) fn new(role: Role, connection: &'a format::Connection) -> Self {
        let mut parked = BTreeSet::new();
        parks(&connection.ops, &mut parked);
        for ops in &connection.peer_streams {
            parks(ops, &mut parked);
        }
        Self {
            role,
            connection,
            parked,
        }
    }
}

impl Side<'_> {
    /// Returns the script of this side.
    pub(super) fn script(self) -> Result<Vec<Op>, String> {
        self.ops(&self.end.connection.ops)
    }

    fn open(self, stream: u64) -> Result<Open, String> {
        if let Some(own) = self.stream {
            return Err(format!(
                "the script of stream {own} opens another, which it cannot"
            ));
        }
        let script = usize::try_from(stream)
            .ok()
            .and_then(|index| self.other.connection.peer_streams.get(index))
            .ok_or_else(|| format!("stream {stream}: the peer has no script for it"))?;
        let peer = Self {
            end: self.other,
            other: self.end,
            stream: Some(stream),
            ..self
        };
        Ok(Open {
            stream,
            peer: peer.ops(script)?,
        })
    }

    fn ops(self, ops: &[format::Op]) -> Result<Vec<Op>, String> {
        let mut read = Vec::new();
        for op in ops {
            self.op(op, &mut read)?;
        }
        Ok(read)
    }

    fn op(self, op: &format::Op, read: &mut Vec<Op>) -> Result<(), String> {
        read.push(match *op {
            format::Op::Sleep { amount_ms } => Op::Sleep(Duration::from_millis(amount_ms)),
            format::Op::OpenBidirectionalStream { stream_id } => {
                Op::OpenBidi(self.open(stream_id)?)
            }
            format::Op::OpenSendStream { stream_id } => Op::OpenUni(self.open(stream_id)?),
            format::Op::Send { stream_id, bytes } => Op::Send(self.bytes(stream_id, bytes)?),
            format::Op::SendFinish { stream_id } => Op::Finish(self.stream(stream_id)?),
            format::Op::SendRate {
                stream_id,
                bytes,
                period_ms,
            } => Op::SendRate(self.rate(stream_id, bytes, period_ms)?),
            format::Op::Receive { stream_id, bytes } => Op::Receive(self.bytes(stream_id, bytes)?),
            format::Op::ReceiveAll { stream_id } => Op::ReceiveAll(self.stream(stream_id)?),
            format::Op::ReceiveFinish { stream_id } => {
                let all = self.stream(stream_id)?;
                if is_read_to_its_end(read, all.stream) {
                    return Ok(());
                }
                Op::ReceiveAll(all)
            }
            format::Op::ReceiveRate {
                stream_id,
                bytes,
                period_ms,
            } => Op::ReceiveRate(self.rate(stream_id, bytes, period_ms)?),
            format::Op::Park { checkpoint } => Op::Park(checkpoint),
            format::Op::Unpark { checkpoint } if self.end.parked.contains(&checkpoint) => {
                Op::Unpark(checkpoint)
            }
            format::Op::Unpark { .. } | format::Op::Trace { .. } => return Ok(()),
            format::Op::Profile {
                trace_id,
                ref operations,
            } => return self.timed(Some(trace_id), self.ops(operations)?, read),
            format::Op::Iterate {
                ref value,
                ref operations,
                trace_id,
            } => {
                let mut turn = Vec::new();
                self.timed(trace_id, self.ops(operations)?, &mut turn)?;
                if turn.is_empty() {
                    return Ok(());
                }
                iterate(value, turn)
            }
            format::Op::Scope { ref threads } => {
                let threads = threads.iter().map(|ops| self.ops(ops));
                Op::Scope(threads.collect::<Result<_, _>>()?)
            }
        });
        Ok(())
    }

    /// Converts a profile to a request with its label; only clients time them here.
    fn timed(self, trace: Option<usize>, ops: Vec<Op>, read: &mut Vec<Op>) -> Result<(), String> {
        match trace {
            Some(trace) if self.end.role == Role::Client => {
                let label = (self.traces.get(trace).cloned())
                    .ok_or_else(|| format!("trace_id: there is no trace {trace}"))?;
                read.push(Op::Request(Request { label, ops }));
            }
            _ => read.extend(ops),
        }
        Ok(())
    }

    fn number(self, stream: u64) -> Result<u64, String> {
        match self.stream {
            Some(own) if own == stream => Ok(0),
            Some(own) => Err(format!("the script of stream {own} uses stream {stream}")),
            None => Ok(stream),
        }
    }

    fn stream(self, stream: u64) -> Result<Stream, String> {
        let stream = self.number(stream)?;
        Ok(Stream { stream })
    }

    fn bytes(self, stream: u64, bytes: u64) -> Result<Bytes, String> {
        let stream = self.number(stream)?;
        Ok(Bytes { stream, bytes })
    }

    fn rate(self, stream: u64, bytes: u64, period_ms: u64) -> Result<Rate, String> {
        Ok(Rate {
            stream: self.number(stream)?,
            bytes,
            period: Duration::from_millis(period_ms),
        })
    }
}

fn parks(ops: &[format::Op], found: &mut BTreeSet<u64>) {
    for op in ops {
        match op {
            format::Op::Park { checkpoint } => {
                found.insert(*checkpoint);
            }
            format::Op::Profile { operations, .. } | format::Op::Iterate { operations, .. } => {
                parks(operations, found);
            }
            format::Op::Scope { threads } => threads.iter().for_each(|ops| parks(ops, found)),
            _ => {}
        }
    }
}

/// Returns true if a script has read a stream to its end since it opened it.
fn is_read_to_its_end(ops: &[Op], number: u64) -> bool {
    let opens = |op: &&Op| match op {
        Op::OpenBidi(open) => open.stream == number,
        _ => false,
    };
    let since = ops.iter().rev().take_while(|op| !opens(op));
    reads_all(since, number)
}

fn reads_all<'a>(ops: impl IntoIterator<Item = &'a Op>, number: u64) -> bool {
    ops.into_iter().any(|op| match op {
        Op::ReceiveAll(stream) => stream.stream == number,
        Op::Scope(threads) => threads.iter().any(|ops| reads_all(ops, number)),
        Op::Request(request) => reads_all(&request.ops, number),
        Op::Iterate(iterate) => reads_all(&iterate.ops, number),
        _ => false,
    })
}

fn iterate(turns: &format::Turns, ops: Vec<Op>) -> Op {
    let (times, time) = match *turns {
        format::Turns::Count { amount } => (Some(amount), None),
        format::Turns::Time { amount_ms } => (None, Some(Duration::from_millis(amount_ms))),
    };
    Op::Iterate(Iterate {
        times,
        time,
        rate: None,
        concurrency: 1,
        ops,
    })
}
