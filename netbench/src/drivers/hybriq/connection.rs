//! Connections of hybriq as scripts use them.

use std::{
    cell::{Cell, OnceCell},
    pin::pin,
    rc::Rc,
    task::{Context, Poll, ready},
};

use bytes::Bytes;
use hybriq::{
    ConnectError, ConnectionError, EarlyConnection, ReadError, RecvStream, SendStream, WriteError,
    error::{EarlyError, SendDatagramError},
    tls::EarlyData,
};
use tokio::sync::watch;

use super::super::{
    Accepting, Answer, Connection, Halves, Handover, Negotiated, Reader, Stats, Traffic, Writer,
    failures, yield_until,
};
use crate::system::outcome::{Failed, Kind};

/// A connection, perhaps still in its handshake.
pub(super) struct Opened {
    /// Connection that carries data before the handshake is complete.
    early: Option<EarlyConnection>,
    connection: OnceCell<hybriq::Connection>,
    /// Server name that the client asked for; on servers only.
    server_name: Option<String>,
    /// Outcome of the handshake, once it has ended.
    outcome: watch::Sender<Option<Result<(), Failed>>>,
    /// Number of datagrams sent when this end closed the connection.
    sent_at_close: Cell<Option<u64>>,
    /// Code with which the connection is closed as soon as possible.
    close_with: Cell<Option<u64>>,
}

impl Opened {
    pub(super) fn begin(
        connecting: hybriq::Connecting,
        server_name: Option<String>,
        handover: Handover,
    ) -> Accepting {
        Box::pin(async move {
            let connecting = if handover == Handover::Early {
                match connecting.early().await {
                    Ok(early) => return Ok(Self::early(early, server_name) as Rc<dyn Connection>),
                    Err(connecting) => connecting,
                }
            } else {
                connecting
            };
            let connection = connecting.await.map_err(failed_to_connect)?;
            let opened = Self::new(None, OnceCell::from(connection), server_name);
            Ok(Rc::new(opened) as Rc<dyn Connection>)
        })
    }

    /// Returns a connection of a client whose handshake is complete.
    pub(super) fn established(connection: hybriq::Connection) -> Self {
        Self::new(None, OnceCell::from(connection), None)
    }

    fn new(
        early: Option<EarlyConnection>,
        connection: OnceCell<hybriq::Connection>,
        server_name: Option<String>,
    ) -> Self {
        Self {
            outcome: watch::Sender::new(connection.get().map(|_| Ok(()))),
            early,
            connection,
            server_name,
            sent_at_close: Cell::default(),
            close_with: Cell::default(),
        }
    }

    fn early(early: EarlyConnection, server_name: Option<String>) -> Rc<Self> {
        let opened = Rc::new(Self::new(Some(early), OnceCell::new(), server_name));
        let completing = Rc::clone(&opened);
        tokio::task::spawn_local(async move {
            let outcome = completing.complete().await;
            completing.outcome.send_replace(Some(outcome));
        });
        opened
    }

    async fn complete(&self) -> Result<(), Failed> {
        let Some(early) = &self.early else {
            return Ok(());
        };
        let (connection, early_data) = early.complete().await.map_err(failed_to_connect)?;
        let _ = self.connection.set(connection);
        if let Some(code) = self.close_with.get() {
            Connection::close(self, code);
        }
        if early_data == EarlyData::Rejected {
            return Err(early_data_rejected());
        }
        Ok(())
    }

    /// Waits until the handshake is complete.
    async fn wait(&self) -> Result<&hybriq::Connection, Failed> {
        let mut outcome = self.outcome.subscribe();
        let ended = outcome.wait_for(Option::is_some).await;
        ended.map_err(Failed::other)?.clone().transpose()?;
        let connection = self.connection.get();
        connection.ok_or_else(|| Failed::other("the handshake did not end"))
    }
}

impl Connection for Opened {
    fn established(&self) -> Answer<'_, Negotiated> {
        Box::pin(async {
            let handshake = self.wait().await?.handshake();
            Ok(Negotiated {
                group: handshake.key_exchange.group.to_string(),
                hello_retry: Some(handshake.key_exchange.hello_retry),
                suite: handshake.suite.to_string(),
                signature: handshake
                    .signature_scheme
                    .map_or_else(String::new, |scheme| scheme.to_string()),
                resumed: Some(handshake.resumed),
                early_data: Some(handshake.early_data == EarlyData::Accepted),
            })
        })
    }

    fn open_bidi(&self) -> Answer<'_, Halves> {
        Box::pin(async {
            Ok(both(match &self.early {
                Some(early) => early.open_bidi().await.map_err(early_ended)?,
                None => self.wait().await?.open_bidi().await.map_err(ended)?,
            }))
        })
    }

    fn open_uni(&self) -> Answer<'_, Box<dyn Writer>> {
        Box::pin(async {
            let stream = match &self.early {
                Some(early) => early.open_uni().await.map_err(early_ended)?,
                None => self.wait().await?.open_uni().await.map_err(ended)?,
            };
            Ok(Box::new(stream) as Box<dyn Writer>)
        })
    }

    fn accept_bidi(&self) -> Answer<'_, Option<Halves>> {
        Box::pin(async {
            let streams = match &self.early {
                Some(early) => early.accept_bidi().await.map_err(early_ended)?,
                None => self.wait().await?.accept_bidi().await.map_err(ended)?,
            };
            Ok(streams.map(both))
        })
    }

    fn accept_uni(&self) -> Answer<'_, Option<Box<dyn Reader>>> {
        Box::pin(async {
            let stream = match &self.early {
                Some(early) => early.accept_uni().await.map_err(early_ended)?,
                None => self.wait().await?.accept_uni().await.map_err(ended)?,
            };
            Ok(stream.map(|stream| Box::new(stream) as Box<dyn Reader>))
        })
    }

    fn send_datagram(&self, data: Bytes) -> Answer<'_, ()> {
        Box::pin(async move {
            let sent = match (&self.early, self.connection.get()) {
                // There is room until then.
                (Some(early), None) => early.send_datagram(data),
                _ => self.wait().await?.send_datagram_wait(data).await,
            };
            sent.map_err(|error| match error {
                SendDatagramError::Connection(error) => ended(error),
                SendDatagramError::ZeroRttRejected => early_data_rejected(),
                error => Failed::other(error),
            })
        })
    }

    fn receive_datagram(&self) -> Answer<'_, Option<Bytes>> {
        Box::pin(async {
            match &self.early {
                Some(early) => early.recv_datagram().await.map_err(early_ended),
                None => self.wait().await?.recv_datagram().await.map_err(ended),
            }
        })
    }

    fn stats(&self) -> Stats {
        let Some(connection) = self.connection.get() else {
            return Stats::default();
        };
        let stats = connection.stats();
        Stats {
            traffic: Some(Traffic {
                sent_datagrams: stats.datagrams_sent,
                sent_bytes: stats.bytes_sent,
                received_datagrams: stats.datagrams_received,
                received_bytes: stats.bytes_received,
            }),
            packets_sent: stats.packets_sent,
            packets_lost: stats.packets_lost,
            timeouts: stats.ptos,
        }
    }

    fn server_name(&self) -> Option<String> {
        self.server_name.clone()
    }

    fn has_ticket(&self) -> bool {
        true
    }

    fn close(&self, code: u64) {
        let Some(connection) = self.connection.get() else {
            self.close_with.set(Some(code));
            return;
        };
        let sent = connection.stats().datagrams_sent;
        self.sent_at_close.set(Some(sent));
        connection.close(code, b"");
    }

    fn closed(&self) -> Answer<'_, ()> {
        Box::pin(async {
            let connection = match self.wait().await {
                Err(failed) if failed.kind != Kind::EarlyDataRejected => return Err(failed),
                Ok(connection) => connection,
                Err(failed) => self.connection.get().ok_or(failed)?,
            };
            let reason = connection.closed().await;
            if let Some(sent) = self.sent_at_close.get() {
                yield_until(|| connection.stats().datagrams_sent > sent).await;
            }
            if reason.is_clean() {
                Ok(())
            } else {
                Err(ended(reason))
            }
        })
    }
}

fn both((send, receive): (SendStream, RecvStream)) -> (Box<dyn Writer>, Box<dyn Reader>) {
    (Box::new(send), Box::new(receive))
}

impl Writer for SendStream {
    fn poll_send(&mut self, cx: &mut Context<'_>, data: &mut Bytes) -> Poll<Result<(), Failed>> {
        self.poll_write_chunk(cx, data)
            .map_ok(|_| ())
            .map_err(not_written)
    }

    fn poll_finish(&mut self, _cx: &mut Context<'_>) -> Poll<Result<(), Failed>> {
        self.finish();
        Poll::Ready(Ok(()))
    }

    fn poll_acknowledged(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Failed>> {
        // The stream itself remembers its waker, so that the future need not be kept.
        pin!(self.acknowledged()).poll(cx).map_err(not_written)
    }

    fn reset(&mut self, code: u64) {
        SendStream::reset(self, code);
    }
}

impl Reader for RecvStream {
    fn poll_receive(
        &mut self,
        cx: &mut Context<'_>,
        max: usize,
    ) -> Poll<Result<Option<Bytes>, Failed>> {
        Poll::Ready(ready!(self.poll_read_chunk(cx, max)).map_err(not_read))
    }
}

fn not_written(error: WriteError) -> Failed {
    match error {
        WriteError::Connection(error) => ended(error),
        WriteError::Stopped(_) => Failed::new(Kind::Reset, error),
        WriteError::ZeroRttRejected => early_data_rejected(),
        error => Failed::other(error),
    }
}

fn not_read(error: ReadError) -> Failed {
    match error {
        ReadError::Connection(error) => ended(error),
        ReadError::Reset(_) => Failed::new(Kind::Reset, error),
        ReadError::ZeroRttRejected => early_data_rejected(),
        error => Failed::other(error),
    }
}

fn early_data_rejected() -> Failed {
    Failed::new(Kind::EarlyDataRejected, "the server refused 0-RTT data")
}

pub(super) fn failed_to_connect(error: ConnectError) -> Failed {
    match error {
        ConnectError::Connection(error) => ended(error),
        error => Failed::other(error),
    }
}

fn early_ended(error: EarlyError) -> Failed {
    match error {
        EarlyError::Connection(error) => ended(error),
        EarlyError::ZeroRttRejected => early_data_rejected(),
        error => Failed::other(error),
    }
}

/// Returns the reason for the end of a connection.
pub(super) fn ended(error: ConnectionError) -> Failed {
    match &error {
        ConnectionError::Application { code, .. } => Failed::new(Kind::Application(*code), error),
        ConnectionError::Transport { code, .. } => failures::transport(code.0, error),
        ConnectionError::KeyExchangeRefused { .. } => failures::alert(40, error),
        ConnectionError::Reset => Failed::new(Kind::Reset, error),
        ConnectionError::Unreachable { .. } => Failed::new(Kind::Refused, error),
        ConnectionError::TimedOut
        | ConnectionError::HandshakeTimedOut
        | ConnectionError::NoAnswer => Failed::new(Kind::Timeout, error),
        _ => Failed::other(error),
    }
}
