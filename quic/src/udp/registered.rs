//! A system socket that a runtime watches.

use std::{
    io,
    net::UdpSocket as StdSocket,
    task::{Context, Poll},
};

use quinn_udp::UdpSockRef;
use tokio::io::Interest;

/// A socket that a runtime watches.
pub(super) enum Registered {
    /// For waiting datagrams, and for room to send.
    Both(Both),
    /// For room to send only: another process receives the datagrams, each of which would wake this
    /// process for nothing.
    #[cfg(any(target_os = "linux", target_os = "android"))]
    Sending(unix::AsyncSocket),
}

/// A future that is ready when the system has something to report.
#[cfg(any(target_os = "linux", target_os = "android"))]
pub(super) type Awaited = std::pin::Pin<Box<dyn Future<Output = ()> + Send + Sync>>;

#[cfg(unix)]
use unix::Both;

/// A socket that a runtime watches for everything.
#[cfg(not(unix))]
type Both = tokio::net::UdpSocket;

impl Registered {
    /// Registers a socket with the current runtime.
    pub(super) fn both(socket: StdSocket) -> io::Result<Self> {
        Both::from_std(socket).map(Self::Both)
    }

    /// Registers a socket from which another process receives with the current runtime.
    #[cfg(any(target_os = "linux", target_os = "android"))]
    pub(super) fn sending(socket: StdSocket) -> io::Result<Self> {
        unix::register(socket, Interest::WRITABLE).map(Self::Sending)
    }

    /// Returns the socket.
    pub(super) fn reference(&self) -> UdpSockRef<'_> {
        match self {
            Self::Both(socket) => UdpSockRef::from(socket),
            #[cfg(any(target_os = "linux", target_os = "android"))]
            Self::Sending(socket) => UdpSockRef::from(socket.get_ref()),
        }
    }

    /// Returns a future that is ready when the system has a report about a datagram that was sent.
    #[cfg(any(target_os = "linux", target_os = "android"))]
    pub(super) fn next_report(&self) -> Awaited {
        match self {
            Self::Both(socket) => Box::pin(socket.next_error()),
            Self::Sending(_) => Box::pin(std::future::pending()),
        }
    }

    /// Calls `act` with the socket.
    #[cfg(any(target_os = "linux", target_os = "android"))]
    pub(super) fn with_reference<R>(&self, act: impl FnOnce(&socket2::SockRef<'_>) -> R) -> R {
        match self {
            Self::Both(socket) => act(&socket2::SockRef::from(socket)),
            Self::Sending(socket) => act(&socket2::SockRef::from(socket.get_ref())),
        }
    }

    /// Returns another handle of the socket.
    #[cfg(any(target_os = "linux", target_os = "android"))]
    pub(super) fn handle(&self) -> io::Result<std::os::fd::OwnedFd> {
        use std::os::fd::AsFd as _;

        match self {
            Self::Both(socket) => socket.as_fd().try_clone_to_owned(),
            Self::Sending(socket) => socket.as_fd().try_clone_to_owned(),
        }
    }

    /// Returns ready when datagrams may be waiting.
    pub(super) fn poll_readable(&self, cx: &mut Context<'_>) -> Poll<()> {
        match self {
            Self::Both(socket) => socket.poll_recv_ready(cx).map(|_| ()),
            #[cfg(any(target_os = "linux", target_os = "android"))]
            Self::Sending(_) => Poll::Pending,
        }
    }

    /// Returns ready when there may be room to send; never, if the socket was not full or [cannot
    /// be watched](Registered::is_watched_for_room).
    pub(super) fn poll_writable(&self, cx: &mut Context<'_>) -> Poll<()> {
        match self {
            Self::Both(socket) => socket.poll_send_ready(cx).map(|_| ()),
            #[cfg(any(target_os = "linux", target_os = "android"))]
            Self::Sending(socket) => socket.poll_write_ready(cx).map(|_| ()),
        }
    }

    /// Returns true if [`Registered::poll_writable`] can tell that there is room again.
    pub(super) fn is_watched_for_room(&self) -> bool {
        match self {
            #[cfg(unix)]
            Self::Both(socket) => socket.is_watched_for_room(),
            #[cfg(not(unix))]
            Self::Both(_) => true,
            #[cfg(any(target_os = "linux", target_os = "android"))]
            Self::Sending(_) => true,
        }
    }

    /// Calls the system, unless it is known to refuse; remembers a refusal.
    pub(super) fn try_io<R>(
        &self,
        interest: Interest,
        call: impl FnOnce() -> io::Result<R>,
    ) -> io::Result<R> {
        match self {
            Self::Both(socket) => socket.try_io(interest, call),
            #[cfg(any(target_os = "linux", target_os = "android"))]
            Self::Sending(socket) => socket.try_io(interest, |_| call()),
        }
    }
}

#[cfg(unix)]
mod unix {
    use std::{
        io,
        net::UdpSocket as StdSocket,
        os::fd::{AsFd, BorrowedFd},
        sync::{
            Arc, OnceLock,
            atomic::{AtomicBool, Ordering},
        },
        task::{Context, Poll},
    };

    use tokio::io::{Interest, unix::AsyncFd};

    /// A socket that a runtime watches for one thing.
    pub(in crate::udp) type AsyncSocket = AsyncFd<StdSocket>;

    /// Registers a socket with the current runtime.
    #[expect(unsafe_code, reason = "the runtime has no safe function for it")]
    pub(super) fn register(socket: StdSocket, interest: Interest) -> io::Result<AsyncSocket> {
        // SAFETY: the socket owns its file descriptor, which stays the same until it is dropped with
        // the registration; nothing takes the socket out of it.
        let registered = unsafe { AsyncFd::register_with_interest(socket, interest) };
        registered.map_err(|error| error.into_parts().1)
    }

    /// A socket that is watched for room to send only once it is full. Each datagram that leaves a
    /// socket makes room, and would otherwise wake a thread that waits for the answer.
    pub(in crate::udp) struct Both {
        receiving: Arc<AsyncSocket>,
        /// Another handle of the socket, created once it was full.
        sending: OnceLock<AsyncSocket>,
        /// True once the runtime mistook a report of the system for the end of `sending`; from then
        /// on it always claims that there is room.
        is_spoilt: AtomicBool,
    }

    impl Both {
        pub(super) fn from_std(socket: StdSocket) -> io::Result<Self> {
            Ok(Self {
                receiving: Arc::new(register(socket, Interest::READABLE)?),
                sending: OnceLock::new(),
                is_spoilt: AtomicBool::new(false),
            })
        }

        pub(super) fn poll_recv_ready(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
            self.receiving.poll_read_ready(cx).map_ok(|_| ())
        }

        pub(super) fn poll_send_ready(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
            let Some(sending) = self.sending.get().filter(|_| self.is_watched_for_room()) else {
                return Poll::Pending;
            };
            sending.poll_write_ready(cx).map_ok(|guard| {
                if guard.ready().is_write_closed() {
                    self.is_spoilt.store(true, Ordering::Relaxed);
                }
            })
        }

        /// Waits for a report about a datagram that was sent.
        #[cfg(any(target_os = "linux", target_os = "android"))]
        pub(super) fn next_error(&self) -> impl Future<Output = ()> + Send + Sync + use<> {
            let socket = self.receiving.clone();
            async move {
                match socket.ready(Interest::ERROR).await {
                    Ok(mut guard) => guard.clear_ready(),
                    // The runtime is ending.
                    Err(_) => std::future::pending().await,
                }
            }
        }

        pub(super) fn is_watched_for_room(&self) -> bool {
            self.sending.get().is_some() && !self.is_spoilt.load(Ordering::Relaxed)
        }

        pub(super) fn try_io<R>(
            &self,
            interest: Interest,
            call: impl FnOnce() -> io::Result<R>,
        ) -> io::Result<R> {
            if interest.is_readable() {
                return self.receiving.try_io(interest, |_| call());
            }
            match self.sending.get() {
                Some(sending) => sending.try_io(interest, |_| call()),
                None => call().inspect_err(|error| {
                    if error.kind() == io::ErrorKind::WouldBlock {
                        self.watch_for_room();
                    }
                }),
            }
        }

        /// Watches for room from now on. If the system has no file descriptors left, the next
        /// attempt to send tries again; the caller must pause before each retry.
        fn watch_for_room(&self) {
            let other = self.receiving.get_ref().try_clone();
            if let Ok(sending) = other.and_then(|it| register(it, Interest::WRITABLE)) {
                let _ = self.sending.set(sending);
            }
        }
    }

    impl AsFd for Both {
        fn as_fd(&self) -> BorrowedFd<'_> {
            self.receiving.get_ref().as_fd()
        }
    }
}

#[cfg(all(test, unix))]
mod tests {
    use std::future::poll_fn;

    use super::*;

    #[tokio::test]
    async fn a_socket_is_asked_until_it_is_full_and_again_when_it_has_room() {
        let socket = Registered::both(StdSocket::bind("127.0.0.1:0").unwrap()).unwrap();
        let send = |answer: io::Result<()>| {
            let mut calls = 0;
            let sent = socket.try_io(Interest::WRITABLE, || {
                calls += 1;
                answer
            });
            (calls, sent.map_err(|error| error.kind()))
        };
        let full = || Err(io::ErrorKind::WouldBlock);
        assert_eq!(send(Ok(())), (1, Ok(())));
        assert_eq!(send(full().map_err(Into::into)), (1, full()));
        // The runtime has not checked since.
        assert_eq!(send(Ok(())), (0, full()));
        poll_fn(|cx| socket.poll_writable(cx)).await;
        assert_eq!(send(Ok(())), (1, Ok(())));
    }
}
