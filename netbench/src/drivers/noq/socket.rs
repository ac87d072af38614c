//! Socket of noq that counts datagrams and bytes.

use std::io::{self, IoSliceMut};
use std::net::{SocketAddr, UdpSocket};
use std::num::NonZeroUsize;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use noq::udp::{RecvMeta, Transmit};
use noq::{AsyncUdpSocket, Runtime, UdpSender};

use super::counters::Counters;

/// Returns a socket that counts.
pub(super) fn counted(
    runtime: &dyn Runtime,
    socket: UdpSocket,
    counters: &Arc<Counters>,
) -> io::Result<Box<dyn AsyncUdpSocket>> {
    Ok(Box::new(Counting {
        inner: runtime.wrap_udp_socket(socket)?,
        counters: Arc::clone(counters),
    }))
}

/// Socket, or one of its senders, that counts datagrams and bytes.
#[derive(Debug)]
struct Counting<T> {
    inner: T,
    counters: Arc<Counters>,
}

impl AsyncUdpSocket for Counting<Box<dyn AsyncUdpSocket>> {
    fn create_sender(&self) -> Pin<Box<dyn UdpSender>> {
        Box::pin(Counting {
            inner: self.inner.create_sender(),
            counters: Arc::clone(&self.counters),
        })
    }

    fn poll_recv(
        &mut self,
        cx: &mut Context<'_>,
        buffers: &mut [IoSliceMut<'_>],
        meta: &mut [RecvMeta],
    ) -> Poll<io::Result<usize>> {
        let count = ready!(self.inner.poll_recv(cx, buffers, meta))?;
        self.counters.received(&meta[..count]);
        Poll::Ready(Ok(count))
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.inner.local_addr()
    }

    fn max_receive_segments(&self) -> NonZeroUsize {
        self.inner.max_receive_segments()
    }

    fn may_fragment(&self) -> bool {
        self.inner.may_fragment()
    }
}

impl UdpSender for Counting<Pin<Box<dyn UdpSender>>> {
    fn poll_send(
        mut self: Pin<&mut Self>,
        transmit: &Transmit<'_>,
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<()>> {
        ready!(self.inner.as_mut().poll_send(transmit, cx))?;
        self.counters.sent(transmit);
        Poll::Ready(Ok(()))
    }

    fn max_transmit_segments(&self) -> NonZeroUsize {
        self.inner.max_transmit_segments()
    }
}
