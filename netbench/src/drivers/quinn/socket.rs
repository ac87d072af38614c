//! Socket of quinn that counts datagrams and bytes.

use std::fmt;
use std::io::{self, IoSliceMut};
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::task::{Context, Poll, ready};

use quinn::udp::{RecvMeta, Transmit};
use quinn::{AsyncUdpSocket, UdpPoller};

use super::super::Traffic;

/// Socket that counts datagrams and bytes.
pub(super) struct Counting {
    socket: Arc<dyn AsyncUdpSocket>,
    sent_datagrams: AtomicU64,
    sent_bytes: AtomicU64,
    received_datagrams: AtomicU64,
    received_bytes: AtomicU64,
}

impl Counting {
    pub(super) fn new(socket: Arc<dyn AsyncUdpSocket>) -> Self {
        Self {
            socket,
            sent_datagrams: AtomicU64::new(0),
            sent_bytes: AtomicU64::new(0),
            received_datagrams: AtomicU64::new(0),
            received_bytes: AtomicU64::new(0),
        }
    }

    pub(super) fn traffic(&self) -> Traffic {
        Traffic {
            sent_datagrams: self.sent_datagrams.load(Relaxed),
            sent_bytes: self.sent_bytes.load(Relaxed),
            received_datagrams: self.received_datagrams.load(Relaxed),
            received_bytes: self.received_bytes.load(Relaxed),
        }
    }
}

/// Returns the number of datagrams of that size in this number of bytes.
fn datagrams(bytes: usize, size: usize) -> u64 {
    bytes.div_ceil(size.max(1)) as u64
}

impl fmt::Debug for Counting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.socket.fmt(f)
    }
}

impl AsyncUdpSocket for Counting {
    fn create_io_poller(self: Arc<Self>) -> Pin<Box<dyn UdpPoller>> {
        Arc::clone(&self.socket).create_io_poller()
    }

    fn try_send(&self, transmit: &Transmit<'_>) -> io::Result<()> {
        self.socket.try_send(transmit)?;
        let bytes = transmit.contents.len();
        let sent = datagrams(bytes, transmit.segment_size.unwrap_or(bytes));
        self.sent_datagrams.fetch_add(sent, Relaxed);
        self.sent_bytes.fetch_add(bytes as u64, Relaxed);
        Ok(())
    }

    fn poll_recv(
        &self,
        cx: &mut Context<'_>,
        buffers: &mut [IoSliceMut<'_>],
        meta: &mut [RecvMeta],
    ) -> Poll<io::Result<usize>> {
        let count = ready!(self.socket.poll_recv(cx, buffers, meta))?;
        for received in meta.iter().take(count) {
            let came = datagrams(received.len, received.stride);
            self.received_datagrams.fetch_add(came, Relaxed);
            self.received_bytes.fetch_add(received.len as u64, Relaxed);
        }
        Poll::Ready(Ok(count))
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.socket.local_addr()
    }

    fn max_transmit_segments(&self) -> usize {
        self.socket.max_transmit_segments()
    }

    fn max_receive_segments(&self) -> usize {
        self.socket.max_receive_segments()
    }

    fn may_fragment(&self) -> bool {
        self.socket.may_fragment()
    }
}
