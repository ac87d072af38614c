//! Connections of quiche as scripts use them.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;

use bytes::Bytes;

use super::line::{BIDI, Line, UNI};
use super::stream;
use crate::drivers::{Answer, Connection, Halves, Negotiated, Reader, Stats, Writer};
use crate::outcome::{Failed, Kind};

/// Value of BoringSSL's `ssl_early_data_accepted`.
const EARLY_DATA_ACCEPTED: u32 = 2;
/// Maximum number of tickets that a client keeps. Each is used once.
const TICKETS: usize = 1024;

pub(super) type Tickets = Rc<RefCell<VecDeque<Vec<u8>>>>;

/// Connection of a user. Without users it is closed.
pub(super) struct Opened {
    line: Rc<Line>,
    /// Store of a client's tickets.
    tickets: Option<Tickets>,
    /// True if the connection was handed out before the handshake was complete.
    early: Cell<bool>,
}

impl Opened {
    /// Waits until streams can be used.
    pub(super) async fn begin(
        line: Rc<Line>,
        tickets: Option<Tickets>,
    ) -> Result<Rc<dyn Connection>, Failed> {
        let opened = Self {
            line,
            tickets,
            early: Cell::new(false),
        };
        let early = opened.line.wait(|_| {
            if let Some(failed) = opened.line.over() {
                return Some(Err(failed));
            }
            let quic = opened.line.quic.borrow();
            if quic.is_established() {
                return Some(Ok(false));
            }
            quic.is_in_early_data().then_some(Ok(true))
        });
        let early = early.await?;
        opened.early.set(early);
        Ok(Rc::new(opened))
    }

    /// Keeps the latest ticket.
    fn remember(&self) {
        let Some(tickets) = &self.tickets else { return };
        let quic = self.line.quic.borrow();
        let mut tickets = tickets.borrow_mut();
        if let Some(ticket) = quic.session()
            && !tickets.iter().any(|known| known == ticket)
        {
            if tickets.len() == TICKETS {
                tickets.pop_front();
            }
            tickets.push_back(ticket.to_vec());
        }
    }
}

impl Connection for Opened {
    fn established(&self) -> Answer<'_, Negotiated> {
        Box::pin(async {
            let done = self.line.wait(|_| {
                if let Some(failed) = self.line.over() {
                    return Some(Err(failed));
                }
                let quic = self.line.quic.borrow();
                quic.is_established().then_some(Ok(()))
            });
            done.await?;
            let quic = self.line.quic.borrow();
            let accepted = quic.early_data_reason() == EARLY_DATA_ACCEPTED;
            if self.early.get() && !accepted {
                let detail = "the server refused 0-RTT data";
                return Err(Failed::new(Kind::EarlyDataRejected, detail));
            }
            Ok(Negotiated {
                resumed: Some(quic.is_resumed()),
                early_data: Some(self.early.get()),
                ..Negotiated::default()
            })
        })
    }

    fn open_bidi(&self) -> Answer<'_, Halves> {
        Box::pin(async { Ok(stream::both(self.line.open(BIDI).await?, &self.line)) })
    }

    fn open_uni(&self) -> Answer<'_, Box<dyn Writer>> {
        Box::pin(async { Ok(stream::writer(self.line.open(UNI).await?, &self.line)) })
    }

    fn accept_bidi(&self) -> Answer<'_, Option<Halves>> {
        Box::pin(async {
            let id = self.line.accept(BIDI).await?;
            Ok(id.map(|id| stream::both(id, &self.line)))
        })
    }

    fn accept_uni(&self) -> Answer<'_, Option<Box<dyn Reader>>> {
        Box::pin(async {
            let id = self.line.accept(UNI).await?;
            Ok(id.map(|id| stream::reader(id, &self.line)))
        })
    }

    fn send_datagram(&self, data: Bytes) -> Answer<'_, ()> {
        Box::pin(async move {
            let sent = self.line.wait(|_| {
                if let Some(failed) = self.line.over() {
                    return Some(Err(failed));
                }
                match self.line.quic.borrow_mut().dgram_send(&data) {
                    Ok(()) => Some(Ok(())),
                    Err(quiche::Error::Done) => None,
                    Err(error) => Some(Err(Failed::other(error))),
                }
            });
            sent.await?;
            self.line.touch();
            Ok(())
        })
    }

    fn receive_datagram(&self) -> Answer<'_, Option<Bytes>> {
        Box::pin(self.line.wait(|_| {
            if let Ok(datagram) = self.line.quic.borrow_mut().dgram_recv_buf() {
                return Some(Ok(Some(Bytes::copy_from_slice(datagram.as_ref()))));
            }
            self.line.ended().map(|ended| ended.map(|()| None))
        }))
    }

    fn stats(&self) -> Stats {
        let quic = self.line.quic.borrow();
        let stats = quic.stats();
        let timeouts = quic.path_stats().map(|path| path.total_pto_count as u64);
        Stats {
            traffic: Some(self.line.traffic.get()),
            packets_sent: stats.sent as u64,
            packets_lost: stats.lost as u64,
            timeouts: timeouts.sum(),
        }
    }

    fn server_name(&self) -> Option<String> {
        self.line.quic.borrow().server_name().map(str::to_owned)
    }

    fn has_ticket(&self) -> bool {
        self.remember();
        let tickets = self.tickets.as_ref();
        tickets.is_none_or(|tickets| !tickets.borrow().is_empty())
    }

    fn close(&self, code: u64) {
        self.remember();
        self.line.close(code);
    }

    fn closed(&self) -> Answer<'_, ()> {
        Box::pin(self.line.wait(|_| self.line.ended()))
    }
}

impl Drop for Opened {
    fn drop(&mut self) {
        self.close(0);
    }
}
