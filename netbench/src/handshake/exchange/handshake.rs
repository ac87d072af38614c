//! One handshake in this process, fed to both sessions message by message.
//!
//! ```text
//!   client session ──ClientHello──────────────► server session
//!         ▲                                          │ one drive, cut where rustls
//!         └─ServerHello┊EncryptedExtensions┊…┊Finished┘ hashes each message
//!            each fed by itself
//! ```

use std::{
    collections::VecDeque,
    time::{Duration, Instant},
};

use bytes::BytesMut;
use hybriq::tls::Side;
use hybriq_tls::{
    ClientStart, Flight, Level, Negotiated, PerLevel, Provider, ServerStart, Session, Start, Status,
};

use super::messages::{Direction, Kind, Message, split};
use crate::handshake::Mode;
use crate::handshake::timed::recorder;
use crate::handshake::timed::recorder::{Event, Notes, Tallies, Watch};
use crate::system::failure::Failure;

/// Server name that clients ask for and certificates contain.
pub(crate) const SERVER_NAME: &str = "localhost";

/// Transport parameters of usual length: nine of eight bytes, with their names and lengths.
const PARAMS: &[u8] = &[
    0x01, 0x04, 0x80, 0x00, 0x75, 0x30, 0x03, 0x02, 0x45, 0xc0, 0x04, 0x04, 0x80, 0xc0, 0x00, 0x00,
    0x05, 0x04, 0x80, 0x10, 0x00, 0x00, 0x06, 0x04, 0x80, 0x10, 0x00, 0x00, 0x07, 0x04, 0x80, 0x10,
    0x00, 0x00, 0x08, 0x02, 0x40, 0x64, 0x09, 0x02, 0x40, 0x64, 0x0f, 0x08, 0x01, 0x02, 0x03, 0x04,
    0x05, 0x06, 0x07, 0x08,
];

/// Upper limit for the number of calls in a handshake.
const MAX_STEPS: usize = 64;

const LEVELS: [Level; 3] = [Level::Initial, Level::Handshake, Level::OneRtt];

/// Record of one side of a handshake.
#[derive(Clone, Debug, Default)]
pub(crate) struct Record {
    /// Parts, in the order in which they happened.
    pub(crate) parts: Vec<Timed>,
    pub(crate) operations: Tallies,
    pub(crate) negotiated: Negotiated,
}

/// One message that was made or handled, or several that cannot be separated.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Timed {
    pub(crate) name: String,
    pub(crate) bytes: usize,
    pub(crate) time: Duration,
}

impl Record {
    pub(crate) fn time(&self) -> Duration {
        self.parts.iter().map(|part| part.time).sum()
    }
}

/// Performs one handshake.
pub(crate) fn run(
    client: &dyn Provider,
    server: &dyn Provider,
    mode: Mode,
    watch: Watch,
) -> Result<(Record, Record), Failure> {
    let start = ClientStart {
        params: PARAMS,
        server_name: SERVER_NAME,
        resume: mode.psk,
        ..ClientStart::default()
    };
    let mut client = End::open(client, start.into(), watch)?;
    let start = ServerStart {
        params: PARAMS,
        ..ServerStart::default()
    };
    let mut server = End::open(server, start.into(), watch)?;
    for _ in 0..MAX_STEPS {
        while let Some(message) = client.outbox.pop_front() {
            server.feed(&message)?;
        }
        match server.outbox.pop_front() {
            Some(message) => client.feed(&message)?,
            None if client.outbox.is_empty() => break,
            None => {}
        }
    }
    for end in [&client, &server] {
        if end.status != Status::Complete {
            return Err(format!("the handshake of the {:?} did not end", end.side).into());
        }
    }
    Ok((client.close(), server.close()))
}

struct End {
    side: Side,
    watch: Watch,
    session: Box<dyn Session>,
    status: Status,
    inbox: PerLevel<BytesMut>,
    flight: Flight,
    outbox: VecDeque<Message>,
    record: Record,
}

impl End {
    /// Starts a session. A client's makes its ClientHello, a server's waits for one.
    fn open(provider: &dyn Provider, start: Start<'_>, watch: Watch) -> Result<Self, Failure> {
        recorder::start(watch);
        let started = Instant::now();
        let side = start.side();
        let session = provider.session(start)?;
        let opened = started.elapsed();
        let mut end = Self {
            side,
            watch,
            session,
            status: Status::NeedsPeer,
            inbox: PerLevel::default(),
            flight: Flight::default(),
            outbox: VecDeque::new(),
            record: Record::default(),
        };
        end.add_operations(&recorder::take());
        if side.is_client() {
            end.drive(None)?;
        }
        match end.record.parts.first_mut() {
            Some(hello) => hello.time += opened,
            // A server's session is made for the ClientHello that follows.
            None => end.record.parts.push(Timed {
                name: String::new(),
                bytes: 0,
                time: opened,
            }),
        }
        Ok(end)
    }

    fn feed(&mut self, message: &Message) -> Result<(), Failure> {
        self.inbox[message.level].extend_from_slice(&message.bytes);
        self.drive(Some(message))
    }

    fn drive(&mut self, fed: Option<&Message>) -> Result<(), Failure> {
        recorder::start(self.watch);
        let started = Instant::now();
        let driven = self.session.drive(&mut self.inbox, &mut self.flight);
        let ended = Instant::now();
        let notes = recorder::take();
        self.status = driven.map_err(|error| format!("{:?}: {error}", self.side))?;
        self.flight.secrets.clear();
        let sent = self.collect()?;
        let names = fed.map(|message| message.kind.name(self.side, Direction::Received));
        let names = names.into_iter().chain(
            sent.iter()
                .map(|message| message.kind.name(self.side, Direction::Sent)),
        );
        let messages = fed.into_iter().chain(&sent);
        let step = Step {
            messages: messages.zip(names).collect(),
            started,
            ended,
        };
        let parts = step.cut(&notes);
        self.add_operations(&notes);
        self.add_parts(parts);
        self.outbox.extend(sent);
        Ok(())
    }

    /// Collects the messages that the session wants to send.
    fn collect(&mut self) -> Result<Vec<Message>, Failure> {
        let mut sent = Vec::new();
        for level in LEVELS {
            split(level, &mut self.flight.crypto[level], &mut sent)?;
        }
        Ok(sent)
    }

    fn add_operations(&mut self, notes: &Notes) {
        for (sum, tally) in self.record.operations.iter_mut().zip(&notes.operations) {
            sum.count += tally.count;
            sum.time += tally.time;
        }
    }

    fn add_parts(&mut self, mut parts: Vec<Timed>) {
        let parts_so_far = &mut self.record.parts;
        if let (Some(opened), Some(first)) = (
            parts_so_far.pop_if(|part| part.name.is_empty()),
            parts.first_mut(),
        ) {
            first.time += opened.time;
        }
        parts_so_far.extend(parts);
    }

    fn close(self) -> Record {
        Record {
            negotiated: self.session.negotiated(),
            ..self.record
        }
    }
}

/// One call of a session: the message that it got, if any, and those that it made.
struct Step<'a> {
    messages: Vec<(&'a Message, String)>,
    started: Instant,
    ended: Instant,
}

impl Step<'_> {
    /// Returns the time of each message if the notes tell its end, otherwise the total.
    fn cut(&self, notes: &Notes) -> Vec<Timed> {
        let Some(ends) = self.ends(&notes.events) else {
            return self.uncut().into_iter().collect();
        };
        let mut begun = self.started;
        let messages = self.messages.iter().zip(ends);
        messages
            .map(|((message, name), end)| {
                let time = end.saturating_duration_since(begun);
                begun = end;
                Timed {
                    name: name.clone(),
                    bytes: message.bytes.len(),
                    time,
                }
            })
            .collect()
    }

    /// Returns the end of each message. A message is hashed once it is made or read; the keys
    /// derived after a ServerHello count for that message.
    fn ends(&self, events: &[(Instant, Event)]) -> Option<Vec<Instant>> {
        let mut events = events;
        let mut ends = Vec::new();
        let but_last = self.messages.split_last()?.1;
        for (message, _) in but_last {
            let hashed = Event::Hashed(message.kind.code());
            let at = events.iter().position(|(_, event)| *event == hashed)?;
            let (&(mut end, _), rest) = events.get(at..)?.split_first()?;
            events = rest;
            if message.kind == Kind::ServerHello {
                let derived = rest
                    .iter()
                    .take_while(|(_, event)| *event == Event::Derived);
                end = derived.last().map_or(end, |(at, _)| *at);
            }
            ends.push(end);
        }
        ends.push(self.ended);
        Some(ends)
    }

    fn uncut(&self) -> Option<Timed> {
        let ((_, first), (_, last)) = (self.messages.first()?, self.messages.last()?);
        Some(Timed {
            name: format!("{first} to {last}"),
            bytes: self.messages.iter().map(|(it, _)| it.bytes.len()).sum(),
            time: self.ended.duration_since(self.started),
        })
    }
}
