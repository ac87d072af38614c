use std::{
    ops::{Index, IndexMut},
    time::Duration,
};

use hybriq_tls::Level;

use crate::proto::{packet::Space, space::Received};

/// What came in, in each packet-number space. What went out is in the recovery.
#[derive(Debug)]
pub(super) struct Spaces([Received; 3]);

impl Spaces {
    /// `initial` is what was received before the connection existed.
    pub(super) fn new(initial: Received, max_ack_delay: Duration) -> Self {
        Self([
            initial,
            Received::immediate(),
            Received::delayed(max_ack_delay),
        ])
    }
}

impl Index<Space> for Spaces {
    type Output = Received;

    fn index(&self, space: Space) -> &Received {
        let [initial, handshake, data] = &self.0;
        match space {
            Space::Initial => initial,
            Space::Handshake => handshake,
            Space::Data => data,
        }
    }
}

impl IndexMut<Space> for Spaces {
    fn index_mut(&mut self, space: Space) -> &mut Received {
        let [initial, handshake, data] = &mut self.0;
        match space {
            Space::Initial => initial,
            Space::Handshake => handshake,
            Space::Data => data,
        }
    }
}

/// The level whose CRYPTO frames travel in a space.
pub(super) const fn level(space: Space) -> Level {
    match space {
        Space::Initial => Level::Initial,
        Space::Handshake => Level::Handshake,
        Space::Data => Level::OneRtt,
    }
}
