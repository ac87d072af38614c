//! Refuses scripts that use streams that do not exist or have ended.

use std::collections::{BTreeMap, BTreeSet};

use super::shared::{End, check_iterate, refuse_no_time, refuse_zero};
use crate::scenario::{Op, Open};

/// Maximum payload of a datagram: the limit of UDP's length field, less the headers of UDP and
/// IPv4.
const MAX_DATAGRAM: u64 = 65_507;

/// Refuses scripts that use streams in an impossible way.
pub(crate) fn check(path: &str, client: &[Op], server: &[Op], end: End) -> Result<(), String> {
    let check = |is_client| Check {
        is_client,
        end,
        is_again: false,
    };
    check(true).ops(&format!("{path}.ops"), client, &mut Streams::new())?;
    check(false).ops(&format!("{path}.server_ops"), server, &mut Streams::new())
}

/// Open streams, by number.
type Streams = BTreeMap<u64, Halves>;

#[derive(Clone, Copy)]
struct Halves {
    send: Half,
    receive: Half,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Half {
    Open,
    /// The stream is unidirectional in the other direction.
    Missing,
    /// The named operation ended it.
    Ended(&'static str),
}

#[derive(Clone, Copy)]
struct Check {
    /// True for the client's script.
    is_client: bool,
    end: End,
    /// True while a loop is checked for the second time.
    is_again: bool,
}

impl Check {
    fn ops(self, path: &str, ops: &[Op], streams: &mut Streams) -> Result<(), String> {
        for (index, op) in ops.iter().enumerate() {
            self.op(&format!("{path}[{index}]"), op, streams)?;
        }
        Ok(())
    }

    fn op(self, path: &str, op: &Op, streams: &mut Streams) -> Result<(), String> {
        match op {
            Op::OpenBidi(open) => {
                self.open(&format!("{path}.open_bidi"), open, Half::Open, streams)
            }
            Op::OpenUni(open) => {
                self.open(&format!("{path}.open_uni"), open, Half::Missing, streams)
            }
            Op::Send(bytes) => sending(path, "send", bytes.stream, None, streams),
            Op::SendRate(rate) | Op::ReceiveRate(rate) => {
                let name = match op {
                    Op::SendRate(_) => "send_rate",
                    _ => "receive_rate",
                };
                let place = format!("{path}.{name}");
                refuse_zero(&place, "bytes", Some(rate.bytes))?;
                refuse_no_time(&place, "period", rate.period)?;
                match op {
                    Op::SendRate(_) => sending(path, name, rate.stream, None, streams),
                    _ => receiving(path, name, rate.stream, None, streams),
                }
            }
            Op::Receive(bytes) => receiving(path, "receive", bytes.stream, None, streams),
            Op::ReceiveAll(stream) => {
                let name = "receive_all";
                receiving(path, name, stream.stream, Some(Half::Ended(name)), streams)
            }
            Op::Finish(stream) => {
                let name = "finish";
                sending(path, name, stream.stream, Some(Half::Ended(name)), streams)
            }
            Op::Reset(reset) => {
                let name = "reset";
                sending(path, name, reset.stream, Some(Half::Ended(name)), streams)
            }
            Op::Datagrams(datagrams) => {
                let path = format!("{path}.datagrams");
                refuse_zero(&path, "count", Some(datagrams.count))?;
                if datagrams.bytes > MAX_DATAGRAM {
                    return Err(format!(
                        "{path}.bytes: a datagram has at most {MAX_DATAGRAM}"
                    ));
                }
                Ok(())
            }
            Op::Fetch(_) if !self.is_client => Err(format!(
                "{path}.fetch: only clients make requests; put it into the client's script"
            )),
            Op::Fetch(_) | Op::Sleep(_) | Op::Park(_) | Op::Unpark(_) => Ok(()),
            Op::Scope(threads) => self.scope(&format!("{path}.scope"), threads, streams),
            Op::Iterate(iterate) => {
                let path = format!("{path}.iterate");
                check_iterate(&path, iterate, self.end)?;
                let path = format!("{path}.ops");
                self.ops(&path, &iterate.ops, streams)?;
                // A half ended by the first turn is missing in the second. Nested loops are checked
                // twice only at one level, or it would take for ever.
                if self.is_again || iterate.times.is_some_and(|times| times <= 1) {
                    return Ok(());
                }
                let again = Self {
                    is_again: true,
                    ..self
                };
                again
                    .ops(&path, &iterate.ops, streams)
                    .map_err(|problem| format!("{problem} in the turn before"))
            }
            Op::Request(_) if !self.is_client => Err(format!(
                "{path}.request: only clients time requests; put it into the client's script"
            )),
            Op::Request(request) => self.ops(&format!("{path}.request.ops"), &request.ops, streams),
        }
    }

    /// Opens a stream; `answers` is the half on which the peer sends.
    fn open(
        self,
        path: &str,
        open: &Open,
        answers: Half,
        streams: &mut Streams,
    ) -> Result<(), String> {
        let peer = Self {
            is_client: !self.is_client,
            is_again: self.is_again,
            ..self
        };
        let mut its = Streams::from([(
            0,
            Halves {
                send: answers,
                receive: Half::Open,
            },
        )]);
        peer.ops(&format!("{path}.peer"), &open.peer, &mut its)?;
        let halves = Halves {
            send: Half::Open,
            receive: answers,
        };
        streams.insert(open.stream, halves);
        Ok(())
    }

    /// Checks concurrent scripts. Each has its own streams, because their order is random.
    fn scope(self, path: &str, threads: &[Vec<Op>], streams: &mut Streams) -> Result<(), String> {
        let before = streams.clone();
        for (index, ops) in threads.iter().enumerate() {
            let mut its = before.clone();
            self.ops(&format!("{path}[{index}]"), ops, &mut its)?;
            let opened = own_numbers(ops);
            for (number, halves) in streams
                .iter_mut()
                .filter(|(number, _)| !opened.contains(number))
            {
                if let Some(then) = its.get(number) {
                    halves.send = ended(halves.send, then.send);
                    halves.receive = ended(halves.receive, then.receive);
                }
            }
        }
        Ok(())
    }
}

/// Returns the numbers under which a script opens its own streams.
fn own_numbers(ops: &[Op]) -> BTreeSet<u64> {
    let mut numbers = BTreeSet::new();
    for op in ops {
        match op {
            Op::OpenBidi(open) | Op::OpenUni(open) => {
                numbers.insert(open.stream);
            }
            Op::Iterate(iterate) => numbers.extend(own_numbers(&iterate.ops)),
            Op::Request(request) => numbers.extend(own_numbers(&request.ops)),
            _ => {}
        }
    }
    numbers
}

fn ended(one: Half, other: Half) -> Half {
    if one == Half::Open { other } else { one }
}

fn sending(
    path: &str,
    name: &str,
    number: u64,
    then: Option<Half>,
    streams: &mut Streams,
) -> Result<(), String> {
    let path = format!("{path}.{name}");
    let halves = streams
        .get_mut(&number)
        .ok_or_else(|| not_open(&path, number))?;
    match halves.send {
        Half::Open => {
            halves.send = then.unwrap_or(Half::Open);
            Ok(())
        }
        Half::Missing => Err(format!(
            "{path}: stream {number} is the peer's unidirectional one and can only be received on"
        )),
        Half::Ended(by) => Err(format!("{path}: stream {number} was ended by `{by}`")),
    }
}

fn receiving(
    path: &str,
    name: &str,
    number: u64,
    then: Option<Half>,
    streams: &mut Streams,
) -> Result<(), String> {
    let path = format!("{path}.{name}");
    let halves = streams
        .get_mut(&number)
        .ok_or_else(|| not_open(&path, number))?;
    match halves.receive {
        Half::Open => {
            halves.receive = then.unwrap_or(Half::Open);
            Ok(())
        }
        Half::Missing => Err(format!(
            "{path}: stream {number} is a unidirectional one and can only be sent on"
        )),
        Half::Ended(by) => Err(format!(
            "{path}: stream {number} was read to its end by `{by}`"
        )),
    }
}

fn not_open(path: &str, number: u64) -> String {
    format!("{path}: stream {number} is not open here; open it before, in this script")
}
