//! The futures of a connection.

use std::{
    fmt,
    future::Future,
    pin::Pin,
    task::{Context, Poll, ready},
};

use bytes::Bytes;

use super::{
    At, Connection, sent,
    stream::{RecvStream, SendStream},
};
use crate::{ConnectionError, SendDatagramError, errors};

/// A wait for something of a connection, at each of its stages.
struct Wait<'a> {
    connection: &'a Connection,
    /// Handles in whose name the task waits.
    early: Option<hybriq::EarlyConnection>,
    established: Option<hybriq::Connection>,
}

impl<'a> Wait<'a> {
    fn new(connection: &'a Connection) -> Self {
        Self {
            connection,
            early: None,
            established: None,
        }
    }

    /// Returns the error of a connection that gives nothing more.
    fn over(&self) -> ConnectionError {
        let reason = self.connection.close_reason();
        reason.unwrap_or(ConnectionError::LocallyClosed)
    }
}

macro_rules! waits {
    ($($name:ident = $poll:ident -> $output:ty, |$connection:ident, $got:pat_param| $give:expr, $doc:literal;)*) => {$(
        #[doc = $doc]
        #[must_use = "futures do nothing unless they are awaited"]
        pub struct $name<'a>(Wait<'a>);

        impl<'a> $name<'a> {
            pub(super) fn new(connection: &'a Connection) -> Self {
                Self(Wait::new(connection))
            }
        }

        impl fmt::Debug for $name<'_> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(stringify!($name))
            }
        }

        impl Future for $name<'_> {
            type Output = Result<$output, ConnectionError>;

            fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
                let wait = &mut self.0;
                let $connection = wait.connection;
                let got = loop {
                    match $connection.inner().at() {
                        At::Established(connection) => {
                            let handle = wait.established.get_or_insert_with(|| connection.clone());
                            break ready!(handle.$poll(cx))?;
                        }
                        At::Early(connection) => {
                            let handle = wait.early.get_or_insert_with(|| connection.clone());
                            match ready!(handle.$poll(cx)) {
                                Ok(got) => break got,
                                Err(error) => if let Some(error) = errors::of_early(error) {
                                    return Poll::Ready(Err(error));
                                },
                            }
                            // The server refused 0-RTT data: the streams begin afresh.
                            ready!($connection.inner().poll_complete(cx))?;
                        }
                        At::Nowhere(_) => {
                            ready!($connection.inner().poll_next(cx, |it| {
                                !matches!(it.at(), At::Nowhere(_))
                            }))?;
                        }
                    }
                };
                Poll::Ready(match got {
                    $got => Ok($give),
                    #[allow(unreachable_patterns, reason = "opening a stream always gives one")]
                    _ => Err(wait.over()),
                })
            }
        }
    )*};
}

waits! {
    OpenUni = poll_open_uni -> SendStream,
        |connection, send| SendStream::new(connection, send),
        "Future of [`Connection::open_uni`].";
    OpenBi = poll_open_bidi -> (SendStream, RecvStream),
        |connection, (send, recv)| (SendStream::new(connection, send), RecvStream::new(recv)),
        "Future of [`Connection::open_bi`].";
    AcceptUni = poll_accept_uni -> RecvStream,
        |_connection, Some(recv)| RecvStream::new(recv),
        "Future of [`Connection::accept_uni`].";
    AcceptBi = poll_accept_bidi -> (SendStream, RecvStream),
        |connection, Some((send, recv))| (SendStream::new(connection, send), RecvStream::new(recv)),
        "Future of [`Connection::accept_bi`].";
    ReadDatagram = poll_recv_datagram -> Bytes,
        |_connection, Some(data)| data,
        "Future of [`Connection::read_datagram`].";
}

/// Future of [`Connection::send_datagram_wait`].
#[must_use = "futures do nothing unless they are awaited"]
pub struct SendDatagram<'a>(
    Pin<Box<dyn Future<Output = Result<(), SendDatagramError>> + Send + Sync + 'a>>,
);

impl<'a> SendDatagram<'a> {
    pub(super) fn new(connection: &'a Connection, data: Bytes) -> Self {
        Self(Box::pin(async move {
            let inner = connection.inner();
            let complete = std::future::poll_fn(|cx| inner.poll_complete(cx)).await?;
            sent(complete.send_datagram_wait(data).await)
        }))
    }
}

impl fmt::Debug for SendDatagram<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SendDatagram")
    }
}

impl Future for SendDatagram<'_> {
    type Output = Result<(), SendDatagramError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        self.0.as_mut().poll(cx)
    }
}
