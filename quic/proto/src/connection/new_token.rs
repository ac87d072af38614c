//! Tokens for the next connection: a server's NEW_TOKEN frames, and what clients do with them
//! (RFC 9000 §8.1.3, §19.7).

use std::{net::IpAddr, sync::Arc};

use bytes::Bytes;

use super::{ClientStart, Connection, Setup};
use crate::{
    config::TokenStore,
    frame::{FrameWriter, NewToken, Owner, Timing},
    limits,
    packet::{Space, Version},
    token::Token,
};

/// The tokens of one connection.
#[derive(Default)]
pub(super) struct NewTokens {
    /// Where a client keeps those it is given, and under which name.
    store: Option<(Arc<dyn TokenStore>, Box<str>)>,
    /// What a client's Initial packets carry until a Retry brings something better.
    spent: Bytes,
    /// The address that the client was given a token for last.
    issued_for: Option<IpAddr>,
    /// What was issued and not acknowledged yet.
    issued: Option<Box<[u8]>>,
    /// Whether it waits to be sent.
    pending: bool,
    /// Which one it is, so that the fate of an earlier one is not taken for its own.
    generation: u8,
}

/// Which NEW_TOKEN a packet carried; 0 is none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Sent(u8);

impl Sent {
    pub(super) const fn is_empty(self) -> bool {
        self.0 == 0
    }
}

impl NewTokens {
    /// Those of a client whose first Initial packets carry what its attempt has.
    pub(super) fn of_client(start: &ClientStart<'_>) -> Self {
        let Some(store) = &start.setup.transport.memory.tokens else {
            return Self::default();
        };
        Self {
            spent: start.attempt.token(),
            store: Some((store.clone(), start.server_name.into())),
            ..Self::default()
        }
    }

    /// Takes a token out of an earlier connection of this version to the same server, if there is
    /// one.
    pub(super) fn take(setup: &Setup, server_name: &str, version: Version) -> Option<Bytes> {
        let store = setup.transport.memory.tokens.as_ref()?;
        let token = store.take(server_name, version.number())?;
        (token.len() <= limits::TOKEN_LEN).then_some(token)
    }

    /// The token in the Initial packets of a client that followed no Retry.
    pub(super) fn spent(&self) -> &[u8] {
        &self.spent
    }

    /// A server gave us a token, which is of the version in use (RFC 9369 §5). One so large that it
    /// would crowd out the ClientHello is not kept.
    pub(super) fn on_frame(&self, version: Version, frame: &NewToken<'_>) {
        if let Some((store, name)) = &self.store {
            if frame.token.len() <= limits::TOKEN_LEN {
                let token = Bytes::copy_from_slice(frame.token);
                store.put(name, version.number(), token);
            }
        }
    }

    /// Whether a client at this address may have a token that it was not given yet.
    pub(super) fn is_due(&self, ip: IpAddr) -> bool {
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

impl Connection {
    /// The address that the peer is to be given a token for.
    pub(super) fn needs_token(&self) -> Option<IpAddr> {
        let ip = self.paths.active().peer().ip();
        let due = self.side.is_server()
            && self.state.is_confirmed()
            && self.paths.active().is_validated()
            && self.memory.tokens.is_due(ip);
        due.then_some(ip)
    }

    /// Gives the peer a token for its next connection from this address; `None`: it gets none.
    pub(crate) fn issue_token(&mut self, ip: IpAddr, token: Option<Token>) {
        self.memory.tokens.issue(ip, token);
    }
}
