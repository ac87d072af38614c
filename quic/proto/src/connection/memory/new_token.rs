//! Tokens for the next connection: a server's NEW_TOKEN frames, and their use by clients (RFC 9000
//! §8.1.3, §19.7).

use std::{net::IpAddr, time::Instant};

use bytes::Bytes;

use crate::{
    connection::{Connection, Memory},
    remembered::token::Token,
    stats::census::Census,
    wire::{
        frame::{FrameWriter, NewToken, Owner, Timing},
        packet::{Space, Version},
    },
};

/// Tokens of one connection.
#[derive(Default)]
pub(in crate::connection) struct NewTokens {
    /// Token in a client's Initial packets, unless a Retry supplies another.
    spent: Bytes,
    /// Address of the client that the last token was issued for.
    issued_for: Option<IpAddr>,
    /// Token that was issued and not yet acknowledged.
    issued: Option<Box<[u8]>>,
    /// True if the token must be sent.
    pending: bool,
    /// Number of the token, to distinguish its fate from that of an earlier one.
    generation: u8,
}

/// Number of the NEW_TOKEN in a packet; 0 for none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::connection) struct Sent(u8);

impl Sent {
    pub(in crate::connection) const fn is_empty(self) -> bool {
        self.0 == 0
    }
}

impl NewTokens {
    /// Makes the tokens of a client with the token of its attempt in the first Initial packets.
    pub(in crate::connection) fn of_client(spent: Bytes) -> Self {
        Self {
            spent,
            ..Self::default()
        }
    }

    /// Returns the token in the Initial packets of a client that followed no Retry.
    pub(in crate::connection) fn spent(&self) -> &[u8] {
        &self.spent
    }

    /// Counts every table. A new field does not compile until somebody says what it holds.
    pub(in crate::connection) fn census(&self, census: &mut Census) {
        let Self {
            spent,
            issued_for: _,
            issued,
            pending: _,
            generation: _,
        } = self;
        census.add(
            "token that was spent",
            usize::from(!spent.is_empty()),
            spent.len(),
        );
        let bytes = issued.as_ref().map_or(0, |token| token.len());
        census.add(
            "token that may be sent again",
            usize::from(issued.is_some()),
            bytes,
        );
    }

    /// Returns true if no token has been issued yet for a client at this address.
    pub(in crate::connection) fn is_due(&self, ip: IpAddr) -> bool {
        self.issued_for != Some(ip)
    }

    fn issue(&mut self, ip: IpAddr, token: Option<Token>) {
        self.issued_for = Some(ip);
        if let Some(token) = token {
            self.generation = self.generation.checked_add(1).unwrap_or(1);
            self.issued = Some(token.as_slice().into());
            self.pending = true;
        }
    }
}

impl Owner for NewTokens {
    type Sent = Sent;

    #[inline]
    fn wants_to_send(&self, _: Space) -> bool {
        self.pending
    }

    fn write_frames(&mut self, _: Timing, out: &mut FrameWriter<'_>, sent: &mut Sent) {
        if let Some(token) = self.issued.as_deref().filter(|_| self.pending) {
            if out.write(&NewToken { token }) {
                self.pending = false;
                *sent = Sent(self.generation);
            }
        }
    }

    fn on_acked(&mut self, sent: &Sent) {
        if sent.0 == self.generation {
            self.issued = None;
            self.pending = false;
        }
    }

    fn on_lost(&mut self, sent: &Sent) {
        self.pending |= sent.0 == self.generation && self.issued.is_some();
    }
}

impl Memory {
    /// Stores a token from the server, which is for the version in use (RFC 9369 §5).
    pub(in crate::connection) fn keep_token(
        &self,
        now: Instant,
        version: Version,
        frame: &NewToken<'_>,
    ) {
        if let Some(known) = &self.server {
            let token = Bytes::copy_from_slice(frame.token);
            known
                .server
                .change(now, |record| record.put_token(version, token.clone()));
        }
    }
}

impl Connection {
    /// Returns the address for which the peer should get a token.
    pub(in crate::connection) fn needs_token(&self) -> Option<IpAddr> {
        let ip = self.paths.active().peer().ip();
        let due = self.side.is_server()
            && self.state.is_confirmed()
            && self.paths.active().is_validated()
            && self.memory.tokens.is_due(ip);
        due.then_some(ip)
    }

    /// Sends the peer a token for its next connection from this address; `None` sends nothing.
    pub(crate) fn issue_token(&mut self, ip: IpAddr, token: Option<Token>) {
        self.memory.tokens.issue(ip, token);
    }
}
