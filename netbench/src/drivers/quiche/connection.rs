//! Connections of quiche as scripts use them.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;

use bytes::Bytes;

use super::stream::{given_up, over, unless_clean};
use crate::drivers::{Answer, Connection, Halves, Negotiated, Reader, Stats, Writer};
use crate::stacks::quiche::{Kind, Line, Receiver, Sender};
use crate::system::outcome;
use crate::system::outcome::Failed;

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
        let early = opened.line.wait(|| {
            if let Some(ended) = opened.line.ended() {
                return Some(Err(over(ended)));
            }
            let quic = opened.line.quic().borrow();
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
        let quic = self.line.quic().borrow();
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
            let done = self.line.wait(|| {
                if let Some(ended) = self.line.ended() {
                    return Some(Err(over(ended)));
                }
                let quic = self.line.quic().borrow();
                quic.is_established().then_some(Ok(()))
            });
            done.await?;
            let quic = self.line.quic().borrow();
            let accepted = quic.early_data_reason() == EARLY_DATA_ACCEPTED;
            if self.early.get() && !accepted {
                let detail = "the server refused 0-RTT data";
                return Err(Failed::new(outcome::Kind::EarlyDataRejected, detail));
            }
            Ok(Negotiated {
                resumed: Some(quic.is_resumed()),
                early_data: Some(self.early.get()),
                ..Negotiated::default()
            })
        })
    }

    fn open_bidi(&self) -> Answer<'_, Halves> {
        Box::pin(async {
            let id = self.line.open(Kind::Bidi).await.map_err(over)?;
            Ok(both(id, &self.line))
        })
    }

    fn open_uni(&self) -> Answer<'_, Box<dyn Writer>> {
        Box::pin(async {
            let id = self.line.open(Kind::Uni).await.map_err(over)?;
            Ok(Box::new(Sender::new(id, Rc::clone(&self.line))) as Box<dyn Writer>)
        })
    }

    fn accept_bidi(&self) -> Answer<'_, Option<Halves>> {
        Box::pin(async {
            match self.line.accept(Kind::Bidi).await {
                Ok(id) => Ok(Some(both(id, &self.line))),
                Err(ended) => unless_clean(ended).map(|()| None),
            }
        })
    }

    fn accept_uni(&self) -> Answer<'_, Option<Box<dyn Reader>>> {
        Box::pin(async {
            match self.line.accept(Kind::Uni).await {
                Ok(id) => Ok(Some(
                    Box::new(Receiver::new(id, Rc::clone(&self.line))) as Box<dyn Reader>
                )),
                Err(ended) => unless_clean(ended).map(|()| None),
            }
        })
    }

    fn send_datagram(&self, data: Bytes) -> Answer<'_, ()> {
        Box::pin(async move { self.line.send_datagram(data).await.map_err(given_up) })
    }

    fn receive_datagram(&self) -> Answer<'_, Option<Bytes>> {
        Box::pin(async {
            match self.line.receive_datagram().await {
                Ok(datagram) => Ok(Some(datagram)),
                Err(ended) => unless_clean(ended).map(|()| None),
            }
        })
    }

    fn stats(&self) -> Stats {
        let quic = self.line.quic().borrow();
        let stats = quic.stats();
        let timeouts = quic.path_stats().map(|path| path.total_pto_count as u64);
        Stats {
            traffic: Some(self.line.traffic()),
            packets_sent: stats.sent as u64,
            packets_lost: stats.lost as u64,
            timeouts: timeouts.sum(),
        }
    }

    fn server_name(&self) -> Option<String> {
        self.line.quic().borrow().server_name().map(str::to_owned)
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
        Box::pin(async { unless_clean(self.line.wait(|| self.line.ended()).await) })
    }
}

fn both(id: u64, line: &Rc<Line>) -> Halves {
    (
        Box::new(Sender::new(id, Rc::clone(line))),
        Box::new(Receiver::new(id, Rc::clone(line))),
    )
}

impl Drop for Opened {
    fn drop(&mut self) {
        self.close(0);
    }
}
