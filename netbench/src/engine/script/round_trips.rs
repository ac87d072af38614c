//! Datagrams (RFC 9221), and their round trips.
//!
//! A datagram begins with twice its number on this connection, plus one for an echo, in
//! little-endian order and cut to the datagram's length.

use std::time::Duration;

use bytes::{Bytes, BytesMut};
use tokio::time::Instant;

use super::in_flight::{NUMBER, Sent};
use super::session::Session;
use crate::engine::plan::Arriving;
use crate::engine::time::clock;
use crate::engine::time::turns::Turns;
use crate::scenario;
use crate::scenario::pattern;
use crate::system::outcome::{Failed, Kind};

/// Time after which a datagram that is not back counts as lost.
const LOST_AFTER: Duration = Duration::from_secs(2);

impl Session<'_> {
    pub(crate) async fn send_datagrams(&self, what: &scenario::Datagrams) -> Result<(), Failed> {
        let mut turns = Turns::new(Some(what.count), what.rate, scenario::Arrivals::Constant);
        while let Some(intended) = turns.due() {
            if !self.reaches(intended).await {
                break;
            }
            turns.advance();
            self.send_one(what, intended).await?;
        }
        if what.echo {
            self.await_echoes().await?;
        }
        Ok(())
    }

    async fn send_one(&self, what: &scenario::Datagrams, intended: Instant) -> Result<(), Failed> {
        let flight = &self.in_flight.flight;
        let number = flight.borrow().next();
        if what.echo {
            let sent = Sent {
                intended,
                at: Instant::now(),
            };
            flight.borrow_mut().sent.push_back(Some(sent));
            self.give_up();
        }
        self.connection
            .send_datagram(datagram(number << 1, what.bytes))
            .await
    }

    /// Waits until each datagram sent so far is back or lost.
    async fn await_echoes(&self) -> Result<(), Failed> {
        let end = self.in_flight.flight.borrow().next();
        loop {
            self.give_up();
            let came_back = self.in_flight.came_back.notified();
            let oldest = {
                let flight = self.in_flight.flight.borrow();
                match flight.sent.front() {
                    Some(Some(sent)) if flight.first < end => sent.at,
                    _ => return Ok(()),
                }
            };
            tokio::select! {
                () = came_back => {}
                () = clock::until(oldest + LOST_AFTER) => {}
            }
        }
    }

    fn give_up(&self) {
        let Some(before) = Instant::now().checked_sub(LOST_AFTER) else {
            return;
        };
        let lost = self.in_flight.flight.borrow_mut().give_up(before);
        if lost > 0 {
            self.observer.lost(lost);
        }
    }

    /// Receives datagrams, and returns them if the script says so.
    pub(crate) async fn receive_datagrams(&self) -> Result<(), Failed> {
        while let Some(data) = self.connection.receive_datagram().await? {
            let width = data.len().min(NUMBER);
            let mut number = [0; NUMBER];
            number[..width].copy_from_slice(&data[..width]);
            let number = u64::from_le_bytes(number);
            pattern::compare(0, &data[width..])
                .map_err(|_| Failed::new(Kind::Mismatch, "a datagram that is not what was sent"))?;
            if number & 1 == 1 {
                self.on_echo(number >> 1, width);
            } else if self.own.datagrams == Arriving::Echo {
                let echo = datagram(number | 1, data.len() as u64);
                self.connection.send_datagram(echo).await?;
            }
        }
        Ok(())
    }

    fn on_echo(&self, number: u64, width: usize) {
        let sent = self.in_flight.flight.borrow_mut().take(number, width);
        if let Some(sent) = sent {
            self.observer.echo(sent.intended.elapsed());
        }
        self.in_flight.came_back.notify_waiters();
    }
}

fn datagram(number: u64, bytes: u64) -> Bytes {
    let bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
    let number = number.to_le_bytes();
    let width = bytes.min(NUMBER);
    let mut data = BytesMut::with_capacity(bytes.min(usize::from(u16::MAX)));
    data.extend_from_slice(&number[..width]);
    // The pattern is longer than any datagram.
    if bytes > width {
        data.extend_from_slice(&pattern::bytes_at(0, (bytes - width) as u64));
    }
    data.freeze()
}
