//! The start of a connection: for a client from nothing, for a server from a complete ClientHello.

pub(super) mod opening;

use std::{collections::VecDeque, sync::Arc, time::Instant};

use hybriq_tls::{ClientHello, ConfigError, KeyExchange, Session, Side};

use self::opening::Opening;
use super::{
    Acks, Agreed, Cids, Connection, Event, Memory,
    close::Close,
    life::{state::State, timers::Timers},
    memory::{new_token::NewTokens, resume::PathKeys, server},
    receive::{retry::Retried, zero_rtt},
    start::{
        ClientStart, ServerStart, Setup, announced, forecast, local_params,
        versions::{self, InitialKeys, Negotiation},
    },
    watch::observer::Observer,
};
use crate::{
    config,
    events::{
        self, Meta,
        agreement::{Circumstances, Handshake as Agreement},
    },
    owners::{
        acks::{Received, frequency::AckFrequency},
        cids,
        datagrams::Datagrams,
        handshake::{Handshake, Terms},
        path::{Address, Path, Paths},
        recovery::{self, Outcome, PathState, Recovery},
        streams::Streams,
    },
    random::prf::Prf,
    wire::{
        error::{By, Code, ConnectionError, TransportError, Violation},
        frame::Crypto,
        limits,
        packet::{
            self, Cid, KeyPair, PacketNumber, Space, Spaces, Version,
            header_bits::{Grease, HeaderBits},
        },
        params::{ACK_DELAY_EXPONENT, Params},
        udp::Local,
    },
};

impl Connection {
    /// Starts a handshake as a client; the ClientHello waits to be transmitted.
    ///
    /// # Errors
    /// The TLS configuration cannot be used, or the server name is invalid.
    pub fn client(start: &ClientStart<'_>) -> Result<Self, ConfigError> {
        let &ClientStart {
            now,
            setup,
            peer,
            server_name,
            ref attempt,
            local_cid,
            initial_dcid,
            seed,
        } = start;
        let mut params = Vec::with_capacity(128);
        let version = attempt.version();
        let told = local_params(&setup.transport, version, local_cid, None);
        told.encode(Side::Client, &mut params);
        let remembered = server::recall(start);
        let (hint, lineage) = server::wishes(remembered.as_ref());
        let session = setup.provider.session(
            hybriq_tls::ClientStart {
                params: &params,
                server_name,
                resume: true,
                early_data: zero_rtt::offer(start),
                resumption_context: &server::context(version, remembered.as_ref()),
                group_hint: hint,
                lineage,
            }
            .into(),
        )?;
        let mut connection = Self::new(Parts {
            now,
            side: Side::Client,
            setup,
            policy: setup.provider.key_exchange(),
            session,
            path: Path::validated(
                Address {
                    peer,
                    local: Local::default(),
                },
                limits::MIN_DATAGRAM as u16,
            ),
            version,
            initial: packet::initial_keys(version, &initial_dcid, Side::Client),
            negotiation: Negotiation::client(start),
            received: Received::immediate(),
            local_cid,
            peer_cid: initial_dcid,
            original_dcid: initial_dcid,
            seed,
        });
        connection.observer.on_params(By::Local, &told);
        connection.memory.server = remembered;
        connection.memory.tokens = NewTokens::of_client(start.attempt.token());
        connection.advance_handshake(now);
        connection.offer_early_data();
        Ok(connection)
    }

    /// Starts a connection as a server from a complete ClientHello; the answer waits to be
    /// transmitted.
    ///
    /// # Errors
    /// The TLS configuration cannot be used.
    pub fn server(start: ServerStart<'_>) -> Result<Self, ConfigError> {
        let path_keys = PathKeys::of_server(&start);
        let ServerStart {
            now,
            setup,
            client_hello,
            ..
        } = start;
        let [initial_dcid, peer_cid, local_cid] = start.cids;
        let original_dcid = start.original_dcid.unwrap_or(initial_dcid);
        let retry_scid = start.original_dcid.map(|_| initial_dcid);
        let mut params = Vec::with_capacity(192);
        let original = start.version;
        let chosen = versions::chosen_by_server(setup, original, client_hello.transport_params());
        let version = chosen.unwrap_or(original);
        let told = Params {
            retry_scid,
            stateless_reset_token: start.reset_token,
            preferred_address: announced(&setup.transport, start.preferred),
            post_quantum_commitment: setup.transport.server_terms.commitment,
            ..local_params(&setup.transport, version, local_cid, Some(original_dcid))
        };
        told.encode(Side::Server, &mut params);
        let identity = forecast::choose_identity(&start);
        let session = setup.provider.session(
            hybriq_tls::ServerStart {
                params: &params,
                client_hello: Some(client_hello),
                early_data: zero_rtt::takes(original, version),
                early_context: &zero_rtt::early_context(version, &told, setup),
                resumption_context: &version.resumption_context(),
                identity,
            }
            .into(),
        )?;
        let path = path_of_server(&start);
        let keys = InitialKeys::of_server(version, original, &initial_dcid, start.client_keys);
        let mut connection = Self::new(Parts {
            now,
            side: Side::Server,
            setup,
            policy: setup.provider.key_exchange_for(client_hello.server_name()),
            session,
            path,
            version,
            initial: keys.in_use,
            negotiation: Negotiation::server(original),
            received: start.received,
            local_cid,
            peer_cid,
            original_dcid,
            seed: start.seed,
        });
        connection.observer.on_params(By::Local, &told);
        connection.memory.path_keys = path_keys;
        if let Some(issued) = start.preferred {
            connection.cids.local.issue_preferred(issued);
        }
        connection
            .handshake
            .keys_mut()
            .set_original(original, keys.original);
        connection.cids.initial = initial_dcid;
        if let Some(scid) = retry_scid {
            connection.opening.set_retried(Retried::by_us(scid));
        }
        for pn in (0..start.packets_sent).map(PacketNumber::saturating) {
            connection
                .recovery
                .on_number_used(packet::Space::Initial, pn);
        }
        if chosen.is_none() {
            connection.close_by_transport(now, Violation::NoCommonVersion.into());
            return Ok(connection);
        }
        connection.take_client_hello(now, client_hello, start.behind);
        Ok(connection)
    }

    /// Takes the ClientHello, and the CRYPTO data after it.
    fn take_client_hello(&mut self, now: Instant, client_hello: &ClientHello, behind: &[u8]) {
        let message = client_hello.message();
        let hello = Crypto {
            offset: 0,
            data: message,
        };
        let behind = Crypto {
            offset: message.len() as u64,
            data: behind,
        };
        for data in [hello, behind] {
            if let Err(error) = self.handshake.on_frame(hybriq_tls::Level::Initial, &data) {
                self.close_by_transport(now, error);
                return;
            }
        }
        self.advance_handshake(now);
    }

    fn new(parts: Parts<'_>) -> Self {
        let Parts {
            now,
            side,
            setup,
            path,
            ..
        } = parts;
        let config = setup.transport.clone();
        let mut recovery = Recovery::new(
            now,
            recovery::Config {
                skip_seed: Some(derived(parts.seed, b"skip")),
                ..config.flight.start(
                    now,
                    side,
                    path.datagram_size(),
                    derived(parts.seed, b"congestion"),
                )
            },
        );
        if let Some(resume) = &config.flight.careful_resume {
            recovery.enable_resume(resume.max_jump());
        }
        let meta = Meta::new(now, side, parts.original_dcid);
        let observer = Observer::new(&config, meta, parts.peer_cid, path.address());
        let mut received = Spaces::new(Received::delayed(config.acks.max_ack_delay));
        *received.at(Space::Initial) = parts.received;
        Self {
            side,
            state: State::new(),
            paths: Paths::new(side, path, derived(parts.seed, b"paths")),
            acks: Acks {
                received,
                frequency: AckFrequency::new(config.acks.max_ack_delay),
                settled: Outcome::default(),
            },
            recovery,
            handshake: Handshake::new(
                side,
                parts.session,
                Terms {
                    policy: parts.policy.clone(),
                    profile: parts.setup.provider.profile(),
                    library: parts.setup.provider.name(),
                },
                parts.version,
                parts.initial,
            ),
            agreed: Agreed {
                original_version: parts.negotiation.original(),
                early_data_refused: false,
                params: None,
                ack_delay_exponent: ACK_DELAY_EXPONENT,
                disable_active_migration: false,
                outcome: None,
            },
            cids: Cids {
                local: cids::Local::new(parts.local_cid),
                peer: cids::Peer::new(parts.peer_cid),
                initial: parts.original_dcid,
                original: parts.original_dcid,
            },
            opening: Opening::new(parts.negotiation),
            memory: Memory::default(),
            streams: Streams::new(side, config.streams),
            datagrams: Datagrams::new(config.datagrams),
            close: Close::default(),
            timers: Timers::new(now, &config),
            header_bits: HeaderBits::new(
                side,
                derived(parts.seed, b"header"),
                config.free_bits.spin_bit,
            ),
            events: VecDeque::new(),
            observer,
            config,
        }
    }

    /// Feeds received handshake bytes to TLS and applies the results.
    pub(super) fn advance_handshake(&mut self, now: Instant) {
        let progress = match self.handshake.drive() {
            Ok(progress) => progress,
            Err(failure) => return self.fail(now, failure),
        };
        if progress.params {
            if let Err(error) = self.learn_params() {
                return self.close_by_transport(now, error);
            }
        }
        self.follow_early_data();
        if progress.completed {
            self.on_complete(now);
        }
        if !self.handshake.has_session() {
            self.timers.await_ticket(None);
        }
    }

    fn on_complete(&mut self, now: Instant) {
        if self.agreed.params.is_none() {
            return self.close_by_transport(now, Violation::NoParameters.into());
        }
        let around = Circumstances {
            version: self.version(),
            early_data: self.early_data(),
            peer_certificates: self.handshake.peer_certificates(),
            side: self.side,
            library: self.handshake.terms().library,
            profile: self.handshake.terms().profile,
            policy: self.handshake.policy(),
        };
        let mut outcome = Agreement::new(self.handshake.negotiated(), &around);
        if let Some(outcome) = &mut outcome {
            if let Err(downgrade) = self.check_continuity(now, outcome) {
                return self.close_with(now, ConnectionError::Downgraded(downgrade));
            }
        }
        self.agreed.outcome = outcome.map(Arc::new);
        if self.agreed.outcome.is_none() {
            let error = TransportError::new(
                Code::INTERNAL_ERROR,
                "the TLS provider does not report the key-exchange group",
            );
            return self.close_by_transport(now, error);
        }
        if let Some(outcome) = &self.agreed.outcome {
            self.observer
                .tell(|| events::Event::HandshakeCompleted(outcome));
        }
        if let Err(error) = self.end_early_data() {
            return self.close_by_transport(now, error);
        }
        self.remember_server(now);
        self.resume_path(now);
        self.state.on_complete();
        self.timers.on_complete();
        self.events.push_back(Event::HandshakeComplete);
        if self.side.is_client() {
            let until = now.checked_add(self.config.timeouts.handshake_timeout);
            self.timers.await_ticket(until);
        } else {
            self.handshake.release();
            self.handshake.owe_done();
            self.on_confirmed(now);
        }
    }

    /// Discards what only the handshake needed, once it is confirmed, and moves to the server's
    /// preferred address.
    pub(super) fn on_confirmed(&mut self, now: Instant) {
        if self.state.is_confirmed() {
            return;
        }
        self.state.on_confirmed();
        self.discard(now, packet::Space::Initial);
        self.discard(now, packet::Space::Handshake);
        self.events.push_back(Event::HandshakeConfirmed);
        if let Some(params) = self.agreed.params.take() {
            self.start_mtu(params.max_udp_payload_size);
            if let Some(preferred) = &params.preferred_address {
                self.seek_preferred(now, preferred);
            }
        }
    }

    fn learn_params(&mut self) -> Result<(), TransportError> {
        let Some(bytes) = self.handshake.peer_params() else {
            return Ok(());
        };
        let params = Params::decode(bytes, self.side.peer())?;
        self.observer.on_params(By::Peer, &params);
        let retry_scid = self.opening.retried().map(|retried| retried.scid);
        self.cids.check(self.side, &params, retry_scid)?;
        self.check_versions(&params)?;
        if let Some(preferred) = &params.preferred_address {
            let (cid, token) = (preferred.cid, preferred.reset_token);
            let taken = self.cids.peer.set_preferred(cid, token);
            taken.map_err(|violation| violation.of("preferred_address"))?;
        }
        self.cids
            .local
            .set_peer_limit(params.active_connection_id_limit);
        if let Some(token) = params.stateless_reset_token {
            self.cids.peer.set_first_reset_token(token);
        }
        self.timers.set_peer_idle_timeout(params.max_idle_timeout);
        if params.grease_quic_bit && self.config.free_bits.grease == Grease::On {
            self.header_bits.on_greased_peer();
        }
        let requests = self.config.acks.ack_frequency == config::AckFrequency::Adaptive;
        self.acks.frequency.set_peer_delays(
            params.max_ack_delay,
            params.min_ack_delay.filter(|_| requests),
        );
        self.agreed.ack_delay_exponent = params.ack_delay_exponent;
        self.agreed.disable_active_migration = params.disable_active_migration;
        self.agreed.params = Some(Box::new(params));
        self.take_limits();
        Ok(())
    }
}

struct Parts<'a> {
    now: Instant,
    side: Side,
    setup: &'a Setup,
    policy: &'a KeyExchange,
    session: Box<dyn Session>,
    path: Path<PathState>,
    version: Version,
    initial: KeyPair,
    negotiation: Negotiation,
    received: Received,
    local_cid: Cid,
    peer_cid: Cid,
    original_dcid: Cid,
    seed: u64,
}

/// Derives a secret for one purpose, so that its use reveals nothing about the others.
fn derived(seed: u64, purpose: &[u8]) -> u64 {
    Prf::from_seed(seed).of(purpose)
}

/// Returns a server's path to its client, with what the two exchanged before there was a
/// connection.
fn path_of_server(start: &ServerStart<'_>) -> Path<PathState> {
    let mut path = Path::new(start.address, limits::MIN_DATAGRAM as u16);
    path.on_received(start.exchanged.received);
    path.on_sent(start.exchanged.sent);
    if start.validated {
        path.on_validated();
    }
    path
}
