//! Local sockets between the workers of the latest process and those of earlier ones.

use std::{
    io::{self, IoSlice},
    os::fd::AsFd as _,
    task::{Context, Poll},
};

use hybriq_proto::endpoint::{Generations, Place};
use rustix::{
    io::Errno,
    net::{
        AddressFamily, RecvFlags, SendAncillaryBuffer, SendFlags, SocketFlags, SocketType, sockopt,
    },
};
use tokio::{io::Interest, net::UnixDatagram};

use super::{Letter, Unsent};
use crate::udp::Handle;

/// Bytes that the system is asked to queue for a worker of an earlier process. It has its own limit
/// (`net.core.wmem_max`).
const QUEUE: usize = 4 << 20;

/// Largest size of a message: a batch of datagrams that the system joined, and its description.
const MESSAGE: usize = (64 << 10) + Letter::LEN;

/// Opens the two ends of a relay: that of the latest process, and that of the worker.
///
/// They preserve message boundaries, and the worker's end reports when all other ends are closed.
pub(crate) fn pair() -> io::Result<(Handle, Handle)> {
    let (to, from) = rustix::net::socketpair(
        AddressFamily::UNIX,
        SocketType::SEQPACKET,
        SocketFlags::CLOEXEC | SocketFlags::NONBLOCK,
        None,
    )?;
    // A smaller queue works too.
    let _ = sockopt::set_socket_send_buffer_size(&to, QUEUE);
    Ok((to, from))
}

/// Sending ends of the relays to the workers of earlier processes.
#[derive(Debug, Default)]
pub(crate) struct Relays(Vec<(u8, Vec<Handle>)>);

impl Relays {
    /// Adds the relays to the workers of a process.
    pub(crate) fn add(&mut self, generation: u8, workers: Vec<Handle>) {
        self.0.push((generation, workers));
    }

    /// Returns the generations of processes that have not ended.
    pub(crate) fn generations(&self) -> Generations {
        let mut generations = Generations::default();
        for (generation, _) in self.living() {
            generations.insert(generation);
        }
        generations
    }

    /// Returns the relays to processes that have not ended.
    pub(crate) fn living(&self) -> impl Iterator<Item = (u8, &[Handle])> {
        let all = self.0.iter().map(|(it, ends)| (*it, ends.as_slice()));
        all.filter(|(_, ends)| ends.iter().any(is_open))
    }

    /// Returns all places that datagrams can be forwarded to.
    pub(crate) fn places(&self) -> impl Iterator<Item = Place> + '_ {
        self.0.iter().flat_map(|&(generation, ref workers)| {
            let workers = 0..workers.len() as u8;
            workers.map(move |worker| Place { generation, worker })
        })
    }

    /// Forwards datagrams to a worker of an earlier process.
    pub(crate) fn send(&self, to: Place, letter: Letter, datagrams: &[u8]) -> Result<(), Unsent> {
        let mut processes = self.0.iter();
        let process = processes.find(|(generation, _)| *generation == to.generation);
        let worker = process.and_then(|(_, workers)| workers.get(usize::from(to.worker)));
        let Some(worker) = worker else {
            return Err(Unsent::Gone);
        };
        let head = letter.to_bytes();
        let parts = [IoSlice::new(&head), IoSlice::new(datagrams)];
        let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
        loop {
            let sent =
                rustix::net::sendmsg(worker, &parts, &mut SendAncillaryBuffer::default(), flags);
            return match sent {
                Ok(_) => Ok(()),
                Err(Errno::INTR) => continue,
                Err(Errno::PIPE | Errno::CONNRESET | Errno::CONNREFUSED | Errno::NOTCONN) => {
                    Err(Unsent::Gone)
                }
                Err(_) => Err(Unsent::Full),
            };
        }
    }
}

/// Returns true if the other end of a relay is open.
fn is_open(end: &Handle) -> bool {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};

    let mut ends = [PollFd::from_borrowed_fd(end.as_fd(), PollFlags::empty())];
    let at_once = Timespec::default();
    let polled = poll(&mut ends, Some(&at_once));
    polled.is_err() || !ends[0].revents().contains(PollFlags::HUP)
}

/// Receiving end of a worker whose process has a successor.
pub(crate) struct Inlet {
    /// Socket that preserves message boundaries, as with datagrams.
    io: UnixDatagram,
    memory: Box<[u8]>,
}

impl Inlet {
    /// Registers the end with the current runtime.
    pub(crate) fn register(handle: Handle) -> io::Result<Self> {
        let io = UnixDatagram::from_std(handle.into())?;
        Ok(Self {
            io,
            memory: Box::default(),
        })
    }

    /// Returns ready when datagrams may be waiting, or the other ends may be closed.
    pub(crate) fn poll_readable(&self, cx: &mut Context<'_>) -> Poll<()> {
        self.io.poll_recv_ready(cx).map(|_| ())
    }

    /// Takes the memory out, so that it can be filled and read while the inlet is in use.
    pub(crate) fn take_memory(&mut self) -> Box<[u8]> {
        let memory = std::mem::take(&mut self.memory);
        if memory.is_empty() {
            return vec![0; MESSAGE].into_boxed_slice();
        }
        memory
    }

    /// Gives the memory back.
    pub(crate) fn give_back(&mut self, memory: Box<[u8]>) {
        self.memory = memory;
    }

    /// Receives datagrams into this memory. Returns an error of kind `WouldBlock` if none wait, and
    /// `UnexpectedEof` if none will ever come: the successor and all of its successors have ended.
    pub(crate) fn receive<'a>(
        &self,
        memory: &'a mut [u8],
    ) -> io::Result<Option<(Letter, &'a mut [u8])>> {
        let len = self.io.try_io(Interest::READABLE, || {
            let (_, len) = rustix::net::recv(&self.io, &mut *memory, RecvFlags::DONTWAIT)?;
            Ok(len)
        })?;
        if len == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        Ok(memory.get_mut(..len).and_then(Letter::read))
    }
}
