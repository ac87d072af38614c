//! The memory that datagrams are received into.

use std::io::{self, IoSliceMut};

use arrayvec::ArrayVec;
use quinn_udp::{BATCH_SIZE, RecvMeta};

use hybriq_proto::endpoint::{Arrival, Local, SocketId};

/// The longest message: a UDP datagram, or several that the system joined (GRO).
const MESSAGE: usize = 64 * 1024;

/// Where a batch of messages is received; allocated once.
///
/// The default has no room: a stand-in while the real one is lent out.
#[derive(Default)]
pub(crate) struct Buffers {
    memory: Box<[u8]>,
    meta: Box<[RecvMeta]>,
}

/// A received message: datagrams of one size and one origin, one after another.
pub(crate) struct Message<'a> {
    /// How all of them came.
    pub(crate) arrival: Arrival,
    /// Their bytes.
    pub(crate) bytes: &'a mut [u8],
    /// The size of each but the last, which may be shorter. Not 0.
    pub(crate) stride: usize,
}

impl Buffers {
    /// Messages of one batch at most.
    pub(crate) const MESSAGES: usize = BATCH_SIZE;

    pub(crate) fn new() -> Self {
        Self {
            memory: vec![0; BATCH_SIZE * MESSAGE].into_boxed_slice(),
            meta: vec![RecvMeta::default(); BATCH_SIZE].into_boxed_slice(),
        }
    }

    /// Lends the buffers to the call that receives.
    pub(super) fn fill(
        &mut self,
        receive: impl FnOnce(&mut [IoSliceMut<'_>], &mut [RecvMeta]) -> io::Result<usize>,
    ) -> io::Result<usize> {
        let mut messages: ArrayVec<_, BATCH_SIZE> = self
            .memory
            .chunks_exact_mut(MESSAGE)
            .map(IoSliceMut::new)
            .collect();
        receive(&mut messages, &mut self.meta)
    }

    /// The messages of the last batch, of which there were `count`.
    pub(crate) fn messages(&mut self, count: usize) -> impl Iterator<Item = Message<'_>> {
        let received = self.meta.iter().take(count);
        self.memory
            .chunks_exact_mut(MESSAGE)
            .zip(received)
            .map(|(memory, meta)| Message {
                arrival: Arrival {
                    peer: super::canonical(meta.addr),
                    local: Local {
                        socket: SocketId::default(),
                        ip: meta.dst_ip.map(|ip| ip.to_canonical()),
                    },
                    ecn: meta.ecn.map(super::ecn),
                },
                bytes: memory.split_at_mut(meta.len.min(MESSAGE)).0,
                stride: meta.stride.max(1),
            })
    }
}
