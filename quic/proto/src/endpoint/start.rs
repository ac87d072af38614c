//! Starting connections: our own, and those that clients ask for.

use std::{net::SocketAddr, time::Instant};

use hybriq_tls::{ClientHello, GroupMismatch, KeyExchange};

use super::{
    AcceptError, Endpoint, Entry, Incoming, Setup, Slot, StartError, hello::table::Hello,
    route::routing::Target,
};
use crate::{
    connection::{Attempt, ClientStart, Connection, Exchanged, ServerStart},
    owners::{handshake::refusal, path::Address},
    wire::{
        error::{By, Code, ConnectionError, TransportError},
        frame::FrameType,
        limits,
        packet::{Cid, quoted_ids},
    },
};

impl Endpoint {
    /// Draws a seed for the secrets of a connection.
    pub(super) fn new_seed(&mut self) -> u64 {
        let mut seed = [0; 8];
        self.random.fill(&mut seed);
        u64::from_be_bytes(seed)
    }

    /// Starts a connection.
    pub fn connect(
        &mut self,
        now: Instant,
        setup: &Setup,
        peer: SocketAddr,
        server_name: &str,
    ) -> Result<(Slot, Connection), StartError> {
        let address = self.ids.is_zero_length().then_some(peer);
        if address.is_some() && self.routing.find_address(peer).is_some() {
            return Err(StartError::AddressInUse(peer));
        }
        let local_cid = self.new_cid();
        let mut dcid = [0; limits::INITIAL_DCID_LEN];
        self.random.fill(&mut dcid);
        let connection = Connection::client(&ClientStart {
            now,
            setup,
            peer,
            server_name,
            attempt: Attempt::first(now, setup, server_name),
            local_cid,
            initial_dcid: Cid::from(dcid),
            seed: self.new_seed(),
        })?;
        let slot = self.insert(Entry {
            initial: None,
            handshaking: false,
            address,
        });
        match address {
            Some(peer) => self.routing.insert_address(peer, slot),
            None => self.routing.insert(local_cid, Target::Connection(slot)),
        }
        Ok((slot, connection))
    }

    /// Returns the connection that sent a client's first datagram to this peer, given the beginning
    /// of the datagram as quoted in reports by routers and hosts ([`Connection::on_reported`]).
    pub fn find_quoted(&self, peer: SocketAddr, beginning: &[u8]) -> Option<Slot> {
        let [_, scid] = quoted_ids(beginning)?;
        if self.ids.is_zero_length() {
            return self.routing.find_address(peer);
        }
        match self.routing.find(&Cid::new(scid)?) {
            Some(Target::Connection(slot)) => Some(slot),
            _ => None,
        }
    }

    fn insert(&mut self, entry: Entry) -> Slot {
        Slot(self.connections.insert(entry) as u32)
    }

    /// Accepts a connection, with its own setup or with the endpoint's.
    ///
    /// A client that offers no post-quantum group is refused here if the setup requires one, before
    /// any public-key work.
    pub fn accept(
        &mut self,
        now: Instant,
        incoming: Incoming,
        setup: Option<&Setup>,
    ) -> Result<(Slot, Connection), AcceptError> {
        let Some(setup) = setup.or(self.server.as_ref()).cloned() else {
            self.refuse_because(incoming, ACCEPTS_NONE);
            return Err(AcceptError::Refused(refused_locally()));
        };
        self.on_decided(&incoming);
        let Incoming {
            mut hello,
            client_hello,
        } = incoming;
        let policy = setup.provider.key_exchange_for(client_hello.server_name());
        if policy.requires_post_quantum() && !client_hello.offers_post_quantum() {
            return Err(self.refuse_key_exchange(&hello, &client_hello, policy));
        }
        let (dcid, peer, local_cid) = (hello.dcid, hello.peer, hello.local_cid);
        let early = self.early.take_of(&hello);
        let credit = early.iter().map(|kept| kept.credit).sum::<u64>();
        let mut received = hello.received.clone();
        received.on_connection();
        let client_keys = hello.keys.take();
        let start = ServerStart {
            now,
            setup: &setup,
            client_hello: &client_hello,
            behind: hello.crypto.contiguous(),
            received,
            packets_sent: hello.next_pn.get(),
            exchanged: Exchanged {
                received: hello.bytes_received.saturating_add(credit),
                sent: hello.bytes_sent,
            },
            address: Address {
                peer,
                local: hello.local,
            },
            version: hello.version,
            client_keys,
            cids: [dcid, hello.peer_cid, local_cid],
            original_dcid: hello.proof.original_dcid(),
            validated: hello.proof.validated,
            reset_token: self.ids.token(&local_cid),
            preferred: self.issue_preferred(&setup.transport),
            seed: self.new_seed(),
        };
        let connection = match Connection::server(start) {
            Ok(mut connection) => {
                for kept in early {
                    connection.on_kept_packets(now, kept.packets);
                }
                connection
            }
            Err(error) => {
                self.reject(
                    &hello,
                    &TransportError::new(
                        Code::INTERNAL_ERROR,
                        "the server cannot begin a TLS handshake",
                    ),
                );
                return Err(error.into());
            }
        };
        self.admission.on_accepted(&hello.proof);
        self.handshaking += 1;
        let slot = self.insert(Entry {
            initial: Some((dcid, peer)),
            handshaking: true,
            address: None,
        });
        self.routing.insert(local_cid, Target::Connection(slot));
        self.routing
            .insert_initial(dcid, peer, Target::Connection(slot));
        Ok((slot, connection))
    }

    /// Refuses a client that offers no post-quantum group to a server that requires one.
    fn refuse_key_exchange(
        &mut self,
        hello: &Hello,
        client_hello: &ClientHello,
        policy: &KeyExchange,
    ) -> AcceptError {
        self.stats.key_exchange_refused += 1;
        let theirs = client_hello.groups().iter().copied();
        let groups = GroupMismatch::new(policy.groups(), theirs);
        self.reject(hello, &key_exchange_error(&groups));
        AcceptError::Refused(ConnectionError::KeyExchangeRefused {
            by: By::Local,
            reason: "the client offered no post-quantum group".into(),
            groups: Box::new(groups),
        })
    }

    /// Notes that a client no longer waits.
    pub(super) fn on_decided(&mut self, incoming: &Incoming) {
        self.waiting = self.waiting.saturating_sub(1);
        if !incoming.is_validated() {
            self.waiting_unproven = self.waiting_unproven.saturating_sub(1);
        }
    }

    /// Refuses a connection with CONNECTION_REFUSED; [`Endpoint::poll_transmit`] returns the
    /// answer.
    pub fn refuse(&mut self, incoming: Incoming) {
        self.refuse_because(incoming, "");
    }

    /// Refuses a connection with CONNECTION_REFUSED and tells the client the reason.
    #[expect(clippy::needless_pass_by_value, reason = "it is decided on once")]
    pub fn refuse_because(&mut self, incoming: Incoming, reason: &'static str) {
        self.on_decided(&incoming);
        let error = TransportError::new(Code::CONNECTION_REFUSED, reason);
        self.reject(&incoming.hello, &error);
    }

    /// Ignores a connection without an answer.
    #[expect(clippy::needless_pass_by_value, reason = "it is decided on once")]
    pub fn ignore(&mut self, incoming: Incoming) {
        self.on_decided(&incoming);
        self.forget_routes(&incoming.hello);
    }
}

fn key_exchange_error(groups: &GroupMismatch) -> TransportError {
    TransportError::new(
        Code::crypto(hybriq_tls::Alert::HANDSHAKE_FAILURE.0),
        refusal::told(&groups.ours),
    )
    .in_frame(FrameType::CRYPTO)
}

/// Reason sent by an endpoint without a configuration for accepted connections.
const ACCEPTS_NONE: &str = "this endpoint accepts no connections";

fn refused_locally() -> ConnectionError {
    ConnectionError::Transport {
        by: By::Local,
        code: Code::CONNECTION_REFUSED,
        frame: None,
        violation: None,
        reason: bytes::Bytes::from_static(ACCEPTS_NONE.as_bytes()),
    }
}
