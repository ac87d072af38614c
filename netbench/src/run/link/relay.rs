//! The sockets of a link, and the thread that serves them.

use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use hybriq_sim::link::{self, Offer, Settings, flip};
use quinn_udp::EcnCodepoint;

use super::clients::Clients;
use super::direction::Direction;
use super::schedule::{Held, Schedule, Way};
use super::socket::train::{Destination, Train};
use super::socket::{Buffers, Message, Socket};
use super::tally::Summary;
use crate::system::os;

/// Maximum time for which a request to stop may go unnoticed.
const ATTENTION: Duration = Duration::from_millis(50);

/// Maximum number of batches read from one socket before datagrams that are due may leave.
const BATCHES: usize = 4;

/// Maximum number of rounds in which sockets are still read when the relay stops.
const LAST_ROUNDS: usize = 100;

/// Maximum number of bytes held: a second of 4 Gbit/s.
const MOST_HELD: usize = 512 << 20;

/// Settings of a relay.
pub(crate) struct Plan {
    pub(crate) listen: SocketAddr,
    pub(crate) to: SocketAddr,
    pub(crate) up: Settings,
    pub(crate) down: Settings,
    pub(crate) rebind: Option<Duration>,
    pub(crate) clients: usize,
    pub(crate) seed: u64,
}

pub(crate) struct Relay {
    plan: Plan,
    listen: Socket,
    clients: Clients,
    up: Direction,
    down: Direction,
    schedule: Schedule,
    train: Train,
    clock: Clock,
    next_rebind: Option<Duration>,
    summary: Summary,
}

/// Clock that counts from the first datagram.
#[derive(Default)]
struct Clock(Option<Instant>);

impl Clock {
    fn now(&self) -> Duration {
        self.0.map(|start| start.elapsed()).unwrap_or_default()
    }

    /// Returns the time of an event of this age. The first call starts the clock.
    fn before(&mut self, age: Duration) -> Duration {
        let now = Instant::now();
        let at = now.checked_sub(age).unwrap_or(now);
        at.saturating_duration_since(*self.0.get_or_insert(at))
    }
}

impl Relay {
    pub(crate) fn bind(plan: Plan) -> io::Result<Self> {
        let models = link::Direction::pair(plan.up.clone(), plan.down.clone(), plan.seed);
        let [up, down] = models.map(Direction::new);
        Ok(Self {
            listen: Socket::bind(plan.listen)?,
            clients: Clients::new(plan.to, plan.clients),
            up,
            down,
            schedule: Schedule::default(),
            train: Train::default(),
            clock: Clock::default(),
            next_rebind: plan.rebind,
            summary: Summary {
                seed: plan.seed,
                ..Summary::default()
            },
            plan,
        })
    }

    pub(crate) fn address(&self) -> io::Result<SocketAddr> {
        self.listen.address()
    }

    /// Relays until it is told to stop, and returns a summary.
    pub(crate) fn run(mut self, stop: &AtomicBool) -> io::Result<Summary> {
        os::wake_punctually()?;
        let mut buffers = Buffers::new();
        while !stop.load(Ordering::Relaxed) {
            self.release();
            self.rebind()?;
            self.receive(self.patience(), &mut buffers)?;
        }
        // Datagrams that arrived before are still counted.
        for _ in 0..LAST_ROUNDS {
            if !self.receive(Duration::ZERO, &mut buffers)? {
                break;
            }
        }
        self.release();
        Ok(self.sum_up())
    }

    /// Waits until there is something to read, and reads. Returns true if there was.
    fn receive(&mut self, patience: Duration, buffers: &mut Buffers) -> io::Result<bool> {
        let (mut numbers, mut sockets) = (vec![None], vec![self.listen.fd()]);
        for (number, client) in self.clients.iter() {
            numbers.push(Some(number));
            sockets.push(client.socket.fd());
        }
        let ready = os::wait_readable(&sockets, patience)?;
        for place in &ready {
            match numbers.get(*place).copied().flatten() {
                Some(number) => self.receive_from_server(number, buffers)?,
                None => self.receive_from_clients(buffers)?,
            }
        }
        Ok(!ready.is_empty())
    }

    /// Returns the time until which there is only reading to do.
    fn patience(&self) -> Duration {
        let now = self.clock.now();
        [
            self.schedule.next_due(),
            self.next_rebind.filter(|_| self.clock.0.is_some()),
        ]
        .into_iter()
        .flatten()
        .map(|at| at.saturating_sub(now))
        .fold(ATTENTION, Duration::min)
    }

    fn receive_from_clients(&mut self, buffers: &mut Buffers) -> io::Result<()> {
        for _ in 0..BATCHES {
            let Some(batch) = self.listen.receive(buffers)? else {
                break;
            };
            for message in batch.messages() {
                let now = self.clock.before(message.age);
                match self.clients.find_or_add(now, message.from, message.to) {
                    Some(number) => self.offer(now, Way::Up(number), &message),
                    None => self.summary.turned_away += message.datagrams().count() as u64,
                }
            }
            if !batch.is_full() {
                break;
            }
        }
        Ok(())
    }

    fn receive_from_server(&mut self, number: u64, buffers: &mut Buffers) -> io::Result<()> {
        let server = self.plan.to;
        for _ in 0..BATCHES {
            let Some(client) = self.clients.get(number) else {
                break;
            };
            let Some(batch) = client.socket.receive(buffers)? else {
                break;
            };
            // Nobody else got the address of this socket from us.
            for message in batch.messages().filter(|message| message.from == server) {
                let now = self.clock.before(message.age);
                self.offer(now, Way::Down(number), &message);
            }
            if !batch.is_full() {
                break;
            }
        }
        Ok(())
    }

    fn offer(&mut self, now: Duration, way: Way, message: &Message<'_>) {
        let direction = match way {
            Way::Up(_) => &mut self.up,
            Way::Down(_) => &mut self.down,
        };
        let ecn_capable = matches!(message.ecn, Some(EcnCodepoint::Ect0 | EcnCodepoint::Ect1));
        for datagram in message.datagrams() {
            let bytes = datagram.len() as u64;
            if self.schedule.bytes() > MOST_HELD {
                direction.refuse(bytes);
                continue;
            }
            let offer = Offer {
                now,
                bytes,
                ecn_capable,
            };
            let Some(passage) = direction.offer(offer) else {
                continue;
            };
            let mut contents = Box::<[u8]>::from(datagram);
            if let Some(bit) = passage.flip {
                flip(&mut contents, bit);
            }
            let ecn = if passage.marked {
                Some(EcnCodepoint::Ce)
            } else {
                message.ecn
            };
            for bytes in std::iter::repeat_n(contents, passage.copies) {
                self.schedule.push(Held {
                    due: passage.due,
                    way,
                    ecn,
                    bytes,
                });
            }
        }
    }

    /// Sends all datagrams that are due.
    fn release(&mut self) {
        let now = self.clock.now();
        let most = self.listen.max_train();
        while let Some(held) = self.schedule.pop_due(now) {
            if !self.train.takes(&held, most) {
                self.depart();
            }
            let direction = match held.way {
                Way::Up(_) => &mut self.up,
                Way::Down(_) => &mut self.down,
            };
            direction.on_released(held.bytes.len() as u64, now.saturating_sub(held.due));
            self.train.push(&held);
        }
        self.depart();
    }

    fn depart(&mut self) {
        let Some(way) = self.train.way() else {
            return;
        };
        let (Way::Up(number) | Way::Down(number)) = way;
        let client = self.clients.get(number);
        let (direction, to) = match way {
            Way::Up(_) => {
                let to = client.map(|client| Destination {
                    socket: &client.socket,
                    address: self.plan.to,
                    from: None,
                });
                (&mut self.up, to)
            }
            Way::Down(_) => {
                let to = client.map(|client| Destination {
                    socket: &self.listen,
                    address: client.address,
                    from: client.reply_from,
                });
                (&mut self.down, to)
            }
        };
        let (datagrams, bytes) = self.train.send(to);
        direction.on_unsent(datagrams, bytes);
    }

    /// Changes the ports if it is time.
    fn rebind(&mut self) -> io::Result<()> {
        let now = self.clock.now();
        let (Some(at), Some(interval)) = (self.next_rebind, self.plan.rebind) else {
            return Ok(());
        };
        if now < at {
            return Ok(());
        }
        for old in self.clients.rebind()? {
            self.down.on_unseen(old.unseen());
            self.summary.rebinds += 1;
        }
        self.next_rebind = Some(now + interval);
        Ok(())
    }

    fn sum_up(mut self) -> Summary {
        self.up.on_unseen(self.listen.unseen());
        for (_, client) in self.clients.iter() {
            self.down.on_unseen(client.socket.unseen());
        }
        Summary {
            clients: self.clients.seen(),
            cpu_s: os::cpu_time().map_or(0.0, |time| time.as_secs_f64()),
            up: self.up.tally(),
            down: self.down.tally(),
            ..self.summary
        }
    }
}
