//! Memory that datagrams are received into.

use std::io::{self, IoSliceMut};

use arrayvec::ArrayVec;
use hybriq_proto::endpoint::{Arrival, Local, SocketId};
use quinn_udp::{BATCH_SIZE, RecvMeta};

/// Largest size of a message in bytes: a UDP datagram, or several that the system joined (GRO).
const MESSAGE: usize = 64 * 1024;

/// Memory for one batch of received messages, allocated once.
///
/// The default has no room. It is a placeholder while the real one is lent out.
#[derive(Default)]
pub(crate) struct Buffers {
    memory: Box<[u8]>,
    meta: Box<[RecvMeta]>,
}

/// A received message: consecutive datagrams of one size from one address.
pub(crate) struct Message<'a> {
    /// Addresses and ECN codepoint of all of them.
    pub(crate) arrival: Arrival,
    /// Bytes of the datagrams.
    pub(crate) bytes: &'a mut [u8],
    /// Size of each datagram in bytes, not 0. The last one may be shorter.
    pub(crate) stride: usize,
}

impl Buffers {
    /// Largest number of messages in a batch.
    pub(crate) const MESSAGES: usize = BATCH_SIZE;

    pub(crate) fn new() -> Self {
        Self {
            memory: vec![0; BATCH_SIZE * MESSAGE].into_boxed_slice(),
            meta: vec![RecvMeta::default(); BATCH_SIZE].into_boxed_slice(),
        }
    }

    /// Calls `receive` with room for one batch.
    pub(in crate::udp) fn fill(
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

    /// Returns the `count` messages of the last batch.
    pub(crate) fn messages(&mut self, count: usize) -> impl Iterator<Item = Message<'_>> {
        let received = self.meta.iter().take(count);
        self.memory
            .chunks_exact_mut(MESSAGE)
            .zip(received)
            .map(|(memory, meta)| Message {
                arrival: Arrival {
                    peer: hybriq_proto::wire::udp::canonical(meta.addr),
                    local: Local {
                        socket: SocketId::default(),
                        ip: meta.dst_ip.map(|ip| ip.to_canonical()),
                    },
                    ecn: meta.ecn.map(crate::udp::ecn),
                },
                bytes: memory.split_at_mut(meta.len.min(MESSAGE)).0,
                stride: meta.stride.max(1),
            })
    }
}
