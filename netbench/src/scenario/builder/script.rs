//! What either end does on a connection, or on one of its streams.

use std::cell::Cell;
use std::marker::PhantomData;
use std::rc::Rc;
use std::time::Duration;

use super::turns::Turns;
use crate::scenario::{Bytes, Datagrams, Op, Open, Rate, Request, Reset, Stream};

/// The number of a script's stream: each closure has but the one.
const STREAM: u64 = 0;

/// An end of a connection.
pub trait Side {
    /// The other one.
    type Peer: Side<Peer = Self>;
}

/// The client's end.
pub enum AtClient {}

/// The server's end.
pub enum AtServer {}

impl Side for AtClient {
    type Peer = AtServer;
}

impl Side for AtServer {
    type Peer = AtClient;
}

/// Scripts of a whole connection.
pub enum Connection {}

/// Scripts of a bidirectional stream.
pub enum Both {}

/// Scripts of a sending half.
pub enum Sending {}

/// Scripts of a receiving half.
pub enum Receiving {}

/// What can be sent on.
pub trait CanSend {}
impl CanSend for Both {}
impl CanSend for Sending {}

/// What can be received on.
pub trait CanReceive {}
impl CanReceive for Both {}
impl CanReceive for Receiving {}

/// What an end does, one after the other, on a [`Connection`] or on one of its streams.
pub struct Script<End, On> {
    ops: Vec<Op>,
    checkpoints: Numbers,
    of: PhantomData<(End, On)>,
}

/// What an end does at the same time.
pub struct Threads<End, On> {
    scripts: Vec<Vec<Op>>,
    checkpoints: Numbers,
    of: PhantomData<(End, On)>,
}

/// Where one waits; it is used once.
#[must_use]
pub struct Park<End> {
    number: u64,
    of: PhantomData<End>,
}

/// What lets those go on that wait; it is used once.
#[must_use]
pub struct Unpark<End> {
    number: u64,
    of: PhantomData<End>,
}

impl<End> Park<End> {
    pub(super) fn number(self) -> u64 {
        self.number
    }
}

impl<End> Unpark<End> {
    pub(super) fn number(self) -> u64 {
        self.number
    }
}

/// Numbers that are each given once.
#[derive(Clone, Default)]
pub(super) struct Numbers(Rc<Cell<u64>>);

impl Numbers {
    pub(super) fn checkpoint<End>(&self) -> (Park<End>, Unpark<End>) {
        let number = self.0.replace(self.0.get() + 1);
        let of = PhantomData;
        (Park { number, of }, Unpark { number, of })
    }
}

impl<End: Side, On> Script<End, On> {
    pub(super) fn new() -> Self {
        Self::with(Numbers::default())
    }

    fn with(checkpoints: Numbers) -> Self {
        Self {
            ops: Vec::new(),
            checkpoints,
            of: PhantomData,
        }
    }

    pub(super) fn into_ops(self) -> Vec<Op> {
        self.ops
    }

    fn push(&mut self, op: Op) -> &mut Self {
        self.ops.push(op);
        self
    }

    /// What a further script of the same connection does.
    fn written<E: Side, O>(&self, write: impl FnOnce(&mut Script<E, O>)) -> Vec<Op> {
        let mut script = Script::with(self.checkpoints.clone());
        write(&mut script);
        script.ops
    }

    /// Does nothing for a while.
    pub fn sleep(&mut self, time: Duration) -> &mut Self {
        self.push(Op::Sleep(time))
    }

    /// A checkpoint: where one of this end's threads or streams waits for another.
    pub fn checkpoint(&mut self) -> (Park<End>, Unpark<End>) {
        self.checkpoints.checkpoint()
    }

    /// A checkpoint of the other end.
    pub fn peer_checkpoint(&mut self) -> (Park<End::Peer>, Unpark<End::Peer>) {
        self.checkpoints.checkpoint()
    }

    /// Waits at a checkpoint.
    pub fn park(&mut self, at: Park<End>) -> &mut Self {
        self.push(Op::Park(at.number()))
    }

    /// Lets those go on that wait, or will wait, at a checkpoint.
    pub fn unpark(&mut self, at: Unpark<End>) -> &mut Self {
        self.push(Op::Unpark(at.number()))
    }

    /// Does several things at the same time, and goes on when all are done.
    pub fn scope(&mut self, write: impl FnOnce(&mut Threads<End, On>)) -> &mut Self {
        let mut threads = Threads {
            scripts: Vec::new(),
            checkpoints: self.checkpoints.clone(),
            of: PhantomData,
        };
        write(&mut threads);
        self.push(Op::Scope(threads.scripts))
    }

    /// Does it again and again.
    pub fn iterate(&mut self, turns: Turns, write: impl FnOnce(&mut Self)) -> &mut Self {
        let ops = self.written(write);
        self.push(Op::Iterate(turns.of(ops)))
    }
}

impl<End: Side, On> Threads<End, On> {
    /// One of the things that are done at the same time.
    pub fn thread(&mut self, write: impl FnOnce(&mut Script<End, On>)) -> &mut Self {
        let mut script = Script::with(self.checkpoints.clone());
        write(&mut script);
        self.scripts.push(script.ops);
        self
    }
}

impl<On> Script<AtClient, On> {
    /// Times what is done as one request; the label may be empty.
    pub fn request(&mut self, label: &str, write: impl FnOnce(&mut Self)) -> &mut Self {
        let ops = self.written(write);
        self.push(Op::Request(Request {
            label: label.to_owned(),
            ops,
        }))
    }
}

impl<End: Side> Script<End, Connection> {
    /// Opens a bidirectional stream: what this end does on it, and what the peer does.
    pub fn open_bidi(
        &mut self,
        local: impl FnOnce(&mut Script<End, Both>),
        peer: impl FnOnce(&mut Script<End::Peer, Both>),
    ) -> &mut Self {
        let peer = self.written(peer);
        let local = self.written(local);
        self.push(Op::OpenBidi(Open {
            stream: STREAM,
            peer,
        }));
        self.ops.extend(local);
        self
    }

    /// Opens a unidirectional stream: what this end sends on it, and what the peer receives.
    pub fn open_uni(
        &mut self,
        local: impl FnOnce(&mut Script<End, Sending>),
        peer: impl FnOnce(&mut Script<End::Peer, Receiving>),
    ) -> &mut Self {
        let peer = self.written(peer);
        let local = self.written(local);
        self.push(Op::OpenUni(Open {
            stream: STREAM,
            peer,
        }));
        self.ops.extend(local);
        self
    }

    /// Sends datagrams.
    pub fn datagrams(&mut self, datagrams: Datagrams) -> &mut Self {
        self.push(Op::Datagrams(datagrams))
    }
}

impl<End: Side> Script<End, Both> {
    /// Sends and receives at the same time.
    pub fn concurrently(
        &mut self,
        send: impl FnOnce(&mut Script<End, Sending>),
        receive: impl FnOnce(&mut Script<End, Receiving>),
    ) -> &mut Self {
        let threads = vec![self.written(send), self.written(receive)];
        self.push(Op::Scope(threads))
    }
}

impl<End: Side, On: CanSend> Script<End, On> {
    /// Sends so many bytes.
    pub fn send(&mut self, bytes: u64) -> &mut Self {
        let stream = STREAM;
        self.push(Op::Send(Bytes { stream, bytes }))
    }

    /// Has what is sent from now on keep to a rate.
    pub fn send_rate(&mut self, bytes: u64, period: Duration) -> &mut Self {
        self.push(Op::SendRate(Rate {
            stream: STREAM,
            bytes,
            period,
        }))
    }

    /// Ends what is sent.
    pub fn finish(&mut self) -> &mut Self {
        self.push(Op::Finish(Stream { stream: STREAM }))
    }

    /// Gives up what is sent, with an application error code.
    pub fn reset(&mut self, code: u64) -> &mut Self {
        let stream = STREAM;
        self.push(Op::Reset(Reset { stream, code }))
    }
}

impl<End: Side, On: CanReceive> Script<End, On> {
    /// Reads so many bytes.
    pub fn receive(&mut self, bytes: u64) -> &mut Self {
        let stream = STREAM;
        self.push(Op::Receive(Bytes { stream, bytes }))
    }

    /// Reads no faster than that from now on.
    pub fn receive_rate(&mut self, bytes: u64, period: Duration) -> &mut Self {
        self.push(Op::ReceiveRate(Rate {
            stream: STREAM,
            bytes,
            period,
        }))
    }

    /// Reads to the end.
    pub fn receive_all(&mut self) -> &mut Self {
        self.push(Op::ReceiveAll(Stream { stream: STREAM }))
    }
}
