//! TCP sockets whose counters outlive them.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::io::{self, Read, Write};
use std::net::SocketAddr;
use std::os::fd::{AsRawFd, RawFd};
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use socket2::{Domain, Protocol, SockRef, Socket as Plain, Type};
use tokio::net::{TcpListener, TcpStream};

use crate::drivers::{Stats, Traffic, Transport};
use crate::stacks::wakers::Wakers;
use crate::system::failure::Failure;
use crate::system::os;
use crate::system::os::TcpCounts;

/// Maximum number of connections waiting to be accepted.
const BACKLOG: i32 = 4096;

/// Counters of all connections of a listener or a client.
#[derive(Debug, Default)]
pub(super) struct Sockets {
    open: RefCell<BTreeMap<RawFd, Rc<Counters>>>,
    closed: Cell<Traffic>,
}

impl Sockets {
    pub(super) fn traffic(&self) -> Option<Traffic> {
        let open = self.open.borrow();
        let mut open = open.values();
        open.try_fold(self.closed.get(), |sum, counters| {
            Some(plus(sum, traffic(counters.read()?)))
        })
    }
}

fn traffic(counts: TcpCounts) -> Traffic {
    Traffic {
        sent_datagrams: counts.segments_sent,
        sent_bytes: counts.bytes_sent,
        received_datagrams: counts.segments_received,
        received_bytes: counts.bytes_received,
    }
}

fn plus(a: Traffic, b: Traffic) -> Traffic {
    Traffic {
        sent_datagrams: a.sent_datagrams + b.sent_datagrams,
        sent_bytes: a.sent_bytes + b.sent_bytes,
        received_datagrams: a.received_datagrams + b.received_datagrams,
        received_bytes: a.received_bytes + b.received_bytes,
    }
}

/// Counters of one connection.
#[derive(Debug)]
pub(super) struct Counters {
    fd: RawFd,
    /// Counters at the end, if the system reported them.
    #[expect(
        clippy::option_option,
        reason = "not yet, and not told, are different things"
    )]
    last: Cell<Option<Option<TcpCounts>>>,
}

impl Counters {
    fn read(&self) -> Option<TcpCounts> {
        self.last.get().unwrap_or_else(|| os::tcp_counts(&self.fd))
    }

    pub(super) fn stats(&self) -> Stats {
        let counts = self.read();
        let known = counts.unwrap_or_default();
        Stats {
            traffic: counts.map(traffic),
            packets_sent: known.segments_sent,
            packets_lost: known.retransmitted,
            timeouts: known.timeouts,
        }
    }
}

/// Socket on which several tasks may wait.
pub(super) struct Socket {
    stream: TcpStream,
    readers: Arc<Wakers>,
    writers: Arc<Wakers>,
    counters: Rc<Counters>,
    sockets: Rc<Sockets>,
}

impl Socket {
    pub(super) fn new(
        stream: TcpStream,
        settings: &Transport,
        sockets: &Rc<Sockets>,
    ) -> io::Result<Self> {
        stream.set_nodelay(true)?;
        let idle = settings.idle_timeout_ms.map(Duration::from_millis);
        // Only a peer that leaves bytes unacknowledged is given up: TCP has no idle timeout.
        #[cfg(target_os = "linux")]
        SockRef::from(&stream).set_tcp_user_timeout(idle)?;
        let fd = stream.as_raw_fd();
        let counters = Rc::new(Counters {
            fd,
            last: Cell::new(None),
        });
        let mut open = sockets.open.borrow_mut();
        open.insert(fd, Rc::clone(&counters));
        Ok(Self {
            stream,
            readers: Arc::default(),
            writers: Arc::default(),
            counters,
            sockets: Rc::clone(sockets),
        })
    }

    pub(super) async fn connect(
        server: SocketAddr,
        settings: &Transport,
        sockets: &Rc<Sockets>,
    ) -> io::Result<Self> {
        let socket = plain(server, settings)?;
        let socket = tokio::net::TcpSocket::from_std_stream(socket.into());
        Self::new(socket.connect(server).await?, settings, sockets)
    }

    pub(super) fn counters(&self) -> Rc<Counters> {
        Rc::clone(&self.counters)
    }

    /// Reads with `read` once there is something to read.
    pub(super) fn poll_read_with<T>(
        &self,
        cx: &Context<'_>,
        mut read: impl FnMut(&mut Trying<'_>) -> io::Result<T>,
    ) -> Poll<io::Result<T>> {
        loop {
            match read(&mut Trying(&self.stream)) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    let waker = self.readers.join(cx);
                    ready!(
                        self.stream
                            .poll_read_ready(&mut Context::from_waker(&waker))
                    )?;
                }
                done => return Poll::Ready(done),
            }
        }
    }

    /// Writes with `write` once there is room.
    pub(super) fn poll_write_with<T>(
        &self,
        cx: &Context<'_>,
        mut write: impl FnMut(&mut Trying<'_>) -> io::Result<T>,
    ) -> Poll<io::Result<T>> {
        loop {
            match write(&mut Trying(&self.stream)) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    let waker = self.writers.join(cx);
                    ready!(
                        self.stream
                            .poll_write_ready(&mut Context::from_waker(&waker))
                    )?;
                }
                done => return Poll::Ready(done),
            }
        }
    }

    /// Registers this task to be woken by any event.
    pub(super) fn wait(&self, cx: &Context<'_>) {
        let _ = self.readers.join(cx);
    }

    /// Wakes all waiting tasks.
    pub(super) fn wake_all(&self) {
        self.readers.wake_all();
        self.writers.wake_all();
    }

    /// Sends a FIN.
    pub(super) fn finish(&self) {
        // An error means that there is nobody left to tell.
        let _ = SockRef::from(&self.stream).shutdown(std::net::Shutdown::Write);
    }

    /// Makes the socket end with a RST.
    pub(super) fn abort(&self) {
        let _ = SockRef::from(&self.stream).set_linger(Some(Duration::ZERO));
        let _ = SockRef::from(&self.stream).shutdown(std::net::Shutdown::Both);
    }
}

impl Drop for Socket {
    fn drop(&mut self) {
        let last = os::tcp_counts(&self.stream);
        self.counters.last.set(Some(last));
        self.sockets.open.borrow_mut().remove(&self.counters.fd);
        let closed = &self.sockets.closed;
        closed.set(plus(closed.get(), traffic(last.unwrap_or_default())));
    }
}

/// Reads and writes that never wait.
pub(super) struct Trying<'a>(&'a TcpStream);

impl Read for Trying<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.0.try_read(buffer)
    }
}

impl Write for Trying<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.try_write(bytes)
    }

    fn write_vectored(&mut self, bytes: &[io::IoSlice<'_>]) -> io::Result<usize> {
        self.0.try_write_vectored(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Starts to listen.
pub(super) fn listen(address: SocketAddr, settings: &Transport) -> Result<TcpListener, Failure> {
    let listen = || {
        let socket = plain(address, settings)?;
        // Connections of an earlier run may still occupy the port.
        socket.set_reuse_address(true)?;
        socket.bind(&address.into())?;
        socket.listen(BACKLOG)?;
        TcpListener::from_std(socket.into())
    };
    listen().map_err(|error| format!("cannot listen on TCP {address}: {error}").into())
}

fn plain(address: SocketAddr, settings: &Transport) -> io::Result<Plain> {
    let socket = Plain::new(
        Domain::for_address(address),
        Type::STREAM,
        Some(Protocol::TCP),
    )?;
    if let Some(size) = settings.socket_buffer {
        socket.set_recv_buffer_size(size as usize)?;
        socket.set_send_buffer_size(size as usize)?;
    }
    socket.set_nonblocking(true)?;
    Ok(socket)
}
