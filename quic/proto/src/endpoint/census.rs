//! What an endpoint holds besides its connections, table by table.

use std::collections::VecDeque;

use super::{
    Cid, Endpoint, Entry, Slot, SocketAddr,
    answer::{answers::Answers, resets::Resets},
    hello::{
        early_packets::EarlyPackets,
        table::{Hello, HelloTable},
    },
    route::{
        claims::{Claim, Claims},
        routing::{Routing, Target},
    },
};
use crate::stats::census::Census;

impl Endpoint {
    /// Returns what the endpoint holds besides its connections, table by table.
    ///
    /// For tests and diagnosis. Once all connections are drained and nobody connects, the census
    /// equals that of a new endpoint, except for what [may grow](crate::stats::census::MAY_GROW).
    pub fn census(&self) -> Census {
        // A new field does not compile until somebody decides what it holds.
        let Self {
            ids: _,
            random: _,
            server: _,
            routing,
            resets,
            reset_limit: _,
            stray_limit: _,
            connections,
            hellos,
            early,
            waiting,
            waiting_unproven: _,
            crowded: _,
            backlog: _,
            handshaking,
            admission: _,
            answers,
            stats: _,
            unfinished_elsewhere: _,
            claims,
            newcomers: _,
        } = self;
        let mut census = Census::default();
        census.add_of::<Entry>("slots of connections", connections.len());
        routing.census(&mut census);
        resets.census(&mut census);
        hellos.census(&mut census);
        early.census(&mut census);
        answers.census(&mut census);
        claims.census(&mut census);
        census.add("clients that wait for a decision", *waiting, 0);
        census.add("unfinished handshakes", *handshaking, 0);
        census
    }
}

impl Routing {
    fn census(&self, census: &mut Census) {
        let Self {
            issued,
            initial,
            addresses,
        } = self;
        census.add_of::<(Cid, Target)>("routes by connection id", issued.len());
        census.add_of::<((Cid, SocketAddr), Target)>("routes of first packets", initial.len());
        census.add_of::<(SocketAddr, Slot)>("routes by address", addresses.len());
    }
}

impl Resets {
    fn census(&self, census: &mut Census) {
        let Self {
            key: _,
            slots,
            tokens,
        } = self;
        census.add_of::<([u8; 16], Slot)>("tokens of stateless resets", slots.len());
        census.add("connections that can be reset", tokens.len(), 0);
    }
}

impl HelloTable {
    fn census(&self, census: &mut Census) {
        let Self {
            hellos,
            bytes,
            order,
            acks,
        } = self;
        census.add_of::<Hello>("partial ClientHellos", hellos.len());
        census.add("data of partial ClientHellos", 0, *bytes);
        let aging: usize = order.iter().map(VecDeque::len).sum();
        let timers = aging + acks.len();
        census.add("timers of partial ClientHellos", timers, 0);
    }
}

impl EarlyPackets {
    fn census(&self, census: &mut Census) {
        let Self {
            clients,
            order,
            bytes,
        } = self;
        census.add("clients with early packets", clients.len(), *bytes);
        census.add("timers of early packets", order.len(), 0);
    }
}

impl Answers {
    fn census(&self, census: &mut Census) {
        let Self { waiting } = self;
        let bytes = waiting.iter().map(|answer| answer.bytes.len()).sum();
        census.add("answers to strangers", waiting.len(), bytes);
    }
}

impl Claims {
    fn census(&self, census: &mut Census) {
        let Self { places, until: _ } = self;
        census.add_of::<Claim>("clients of earlier processes", places.len());
    }
}
