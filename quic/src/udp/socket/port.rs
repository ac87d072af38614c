//! Sockets of unit tests: ports of an in-memory network.

use std::{
    collections::{BTreeMap, VecDeque},
    io::{self, IoSliceMut},
    net::SocketAddr,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Context, Poll, Waker},
};

use hybriq_proto::{endpoint::Transmit, owners::acks::Ecn};
use quinn_udp::RecvMeta;

use super::Socket;
use crate::udp::codepoint;

/// An in-memory network, which delivers at once and in order.
#[derive(Clone, Default)]
pub(crate) struct Network(Arc<Mutex<BTreeMap<SocketAddr, State>>>);

/// A port of a network.
pub(crate) struct Port {
    network: Network,
    pub(super) address: SocketAddr,
}

/// State of a port.
#[derive(Default)]
pub(super) struct State {
    waiting: VecDeque<Datagram>,
    reader: Option<Waker>,
    writer: Option<Waker>,
    /// True while the port refuses to send.
    full: bool,
    /// Number of datagrams that were refused because the port was full.
    refused: usize,
    /// True if no task is told when the port has room again.
    pub(super) is_unwatched: bool,
    /// Errors of receiving and of sending, by their code.
    errors: [Option<i32>; 2],
    /// Number of datagrams that still reach the port, if limited.
    reachable: Option<usize>,
}

struct Datagram {
    from: SocketAddr,
    ecn: Option<Ecn>,
    bytes: Vec<u8>,
}

impl Network {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<SocketAddr, State>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Opens a port.
    pub(crate) fn bind(&self, address: SocketAddr) -> Socket {
        self.lock().insert(address, State::default());
        Socket::Port(Port {
            network: self.clone(),
            address,
        })
    }

    /// Makes a port refuse to send.
    pub(crate) fn fill(&self, address: SocketAddr) {
        if let Some(state) = self.lock().get_mut(&address) {
            state.full = true;
        }
    }

    /// Lets a port send again.
    pub(crate) fn drain(&self, address: SocketAddr) {
        let writer = self.lock().get_mut(&address).and_then(|state| {
            state.full = false;
            state.writer.take()
        });
        wake(writer);
    }

    /// Never reports when a port has room again, as if there were no file descriptors.
    pub(crate) fn set_unwatched(&self, address: SocketAddr) {
        if let Some(state) = self.lock().get_mut(&address) {
            state.is_unwatched = true;
        }
    }

    /// Makes each attempt to receive at a port fail with this error of the system; `None` ends that.
    pub(crate) fn set_receive_error(&self, address: SocketAddr, code: Option<i32>) {
        let reader = self.lock().get_mut(&address).and_then(|state| {
            state.errors[0] = code;
            state.reader.take()
        });
        wake(reader);
    }

    /// Makes each attempt to send from a port fail with this error of the system; `None` ends that.
    pub(crate) fn set_send_error(&self, address: SocketAddr, code: Option<i32>) {
        if let Some(state) = self.lock().get_mut(&address) {
            state.errors[1] = code;
        }
    }

    /// Returns how often a full port refused to send.
    pub(crate) fn refused(&self, address: SocketAddr) -> usize {
        self.lock().get(&address).map_or(0, |state| state.refused)
    }

    /// Lets only this many more datagrams reach a port; `None` lets all of them.
    pub(crate) fn set_reachable(&self, address: SocketAddr, datagrams: Option<usize>) {
        if let Some(state) = self.lock().get_mut(&address) {
            state.reachable = datagrams;
        }
    }

    fn deliver(&self, datagram: Datagram, to: SocketAddr) {
        let reader = self.lock().get_mut(&to).and_then(|state| {
            if let Some(left) = &mut state.reachable {
                *left = left.checked_sub(1)?;
            }
            state.waiting.push_back(datagram);
            state.reader.take()
        });
        wake(reader);
    }
}

fn wake(waker: Option<Waker>) {
    if let Some(waker) = waker {
        waker.wake();
    }
}

impl Port {
    pub(super) fn with<R>(&self, act: impl FnOnce(&mut State) -> R) -> R {
        act(self.network.lock().entry(self.address).or_default())
    }

    pub(super) fn poll_readable(&self, cx: &Context<'_>) -> Poll<()> {
        self.with(|state| {
            if state.waiting.is_empty() && state.errors[0].is_none() {
                state.reader = Some(cx.waker().clone());
                return Poll::Pending;
            }
            Poll::Ready(())
        })
    }

    pub(super) fn poll_writable(&self, cx: &Context<'_>) -> Poll<()> {
        self.with(|state| {
            if state.full {
                state.writer = Some(cx.waker().clone()).filter(|_| !state.is_unwatched);
                return Poll::Pending;
            }
            Poll::Ready(())
        })
    }

    pub(super) fn receive(
        &self,
        messages: &mut [IoSliceMut<'_>],
        meta: &mut [RecvMeta],
    ) -> io::Result<usize> {
        let mut count = 0;
        if let Some(code) = self.with(|state| state.errors[0]) {
            return Err(io::Error::from_raw_os_error(code));
        }
        self.with(|state| {
            for (message, meta) in messages.iter_mut().zip(meta) {
                let Some(datagram) = state.waiting.pop_front() else {
                    break;
                };
                let len = datagram.bytes.len().min(message.len());
                message[..len].copy_from_slice(&datagram.bytes[..len]);
                *meta = RecvMeta::default();
                meta.addr = datagram.from;
                (meta.len, meta.stride) = (len, len);
                meta.ecn = datagram.ecn.map(codepoint);
                count += 1;
            }
        });
        if count == 0 {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        Ok(count)
    }

    pub(super) fn send(&self, transmit: &Transmit, contents: &[u8]) -> io::Result<()> {
        let full = self.with(|state| {
            state.refused += usize::from(state.full);
            state.full
        });
        if full {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        if let Some(code) = self.with(|state| state.errors[1]) {
            return Err(io::Error::from_raw_os_error(code));
        }
        let datagram = Datagram {
            from: self.address,
            ecn: transmit.ecn,
            bytes: contents.to_vec(),
        };
        self.network.deliver(datagram, transmit.peer);
        Ok(())
    }
}

impl Drop for Port {
    fn drop(&mut self) {
        self.network.lock().remove(&self.address);
    }
}
