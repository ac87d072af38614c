//! The state that a server, its connections and its handles share.

use std::{
    sync::{Arc, Mutex, PoisonError, Weak},
    time::Duration,
};

use http::HeaderValue;
use hybriq::{
    Endpoint, ServerConfig,
    error::ConfigError,
    fleet::Tickets,
    tls::{ClientAuth, rustls::TcpServer},
};
use tokio::{
    net::TcpListener,
    sync::{Semaphore, watch},
};

use super::connections::{Connections, Misdirected, ProxyProtocol, Watch};
use crate::{Limits, versions::http3::Reserved, webtransport};

/// Application protocols over TCP.
pub(super) const ALPN_TCP: [&str; 2] = ["h2", "http/1.1"];

/// Time that the remaining connections have to end after the deadline of a shutdown has closed them. The sockets have
/// the same time afterwards.
pub(super) const CLOSE_TIME: Duration = Duration::from_millis(500);

/// Time from the first GOAWAY, which tells clients to send no more requests, to the second, which tells them which
/// requests are answered (RFC 9114 §5.2). Requests that were on their way arrive in between.
pub(super) const GOAWAY_PAUSE: Duration = Duration::from_millis(250);

/// State that a server, its connections and its handles share.
pub(super) struct Shared {
    pub(super) endpoint: Endpoint,
    pub(super) limits: Limits,
    pub(super) features: Features,
    pub(super) connections: Connections,
    pub(super) watch: Arc<Watch>,
    /// Places of connections over TCP.
    pub(super) places: Arc<Semaphore>,
    /// Value of `Alt-Svc`, if clients are told about HTTP/3.
    pub(super) alt_svc: Option<HeaderValue>,
    /// Proxies in front of the TCP listeners.
    pub(super) proxies: Vec<ProxyProtocol>,
    /// Settings that a reload replaces.
    pub(super) settings: Mutex<Settings>,
    pub(super) phase: watch::Sender<Phase>,
    /// Has a receiver while the server listens on TCP.
    pub(super) listening: watch::Sender<()>,
    /// TCP listeners, while the server has them.
    pub(super) listeners: Vec<Weak<TcpListener>>,
}

/// Settings that a reload replaces.
#[derive(Clone)]
pub(super) struct Settings {
    pub(super) tls: Arc<TcpServer>,
    /// True if requests may come in 0-RTT packets.
    pub(super) early: bool,
    /// Session tickets of configurations without their own.
    tickets: Tickets,
}

impl Settings {
    /// Returns the configuration with its tickets, and the settings for TCP. Clients can resume sessions of earlier settings
    /// unless they are asked for certificates, which would not be verified again.
    pub(super) fn of(
        config: ServerConfig,
        earlier: Option<Self>,
    ) -> Result<(ServerConfig, Self), ConfigError> {
        if earlier.is_none() {
            tell_other_library(&config);
        }
        let tickets = earlier.map_or_else(Tickets::new, |earlier| earlier.tickets);
        let config = config.tls_options(|mut options| {
            if matches!(options.client_auth, ClientAuth::None) {
                options.tickets.get_or_insert_with(|| tickets.clone());
            }
            options
        });
        let settings = Self {
            tls: Arc::new(config.tcp(ALPN_TCP)?),
            early: config.accepts_early_data(),
            tickets,
        };
        Ok((config, settings))
    }
}

/// Logs that TCP has another TLS library than QUIC.
fn tell_other_library(config: &ServerConfig) {
    let name = config.setup().map(|setup| setup.provider.name());
    // Errors are reported by those who bind.
    if let Some(name) = name.ok().filter(|name| *name != "rustls") {
        tracing::info!(
            "QUIC uses {name} for TLS; HTTP/1.1 and HTTP/2 over TCP use rustls, with the same certificates"
        );
    }
}

/// Phase in the life of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd)]
pub(super) enum Phase {
    /// The server accepts connections.
    Serving,
    /// Another process has taken over. This one finishes with its clients: none loses a request.
    Leaving,
    /// The server finishes the requests in progress.
    Draining,
    /// The server closes the connections that are left.
    Closing,
}

/// Requests that are answered: protocols that may use their streams, and hosts; and how clients are kept meanwhile.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Features {
    pub(super) connect: Connect,
    pub(super) webtransport: Option<webtransport::Limits>,
    pub(super) misdirected: Misdirected,
    pub(super) interim: Hints,
    pub(super) reserved: Reserved,
    /// Longest silence of a connection while a request is in progress.
    pub(super) keep_alive: Option<Duration>,
}

/// Whether services may send interim responses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Hints {
    #[default]
    None,
    Sent,
}

/// Whether extended CONNECT requests are allowed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Connect {
    #[default]
    Refused,
    Extended,
    /// With HTTP Datagrams.
    Udp,
}

impl Shared {
    pub(super) fn new(
        endpoint: Endpoint,
        settings: Settings,
        limits: Limits,
        alt_svc: Option<HeaderValue>,
    ) -> Self {
        let places = limits.tcp_connections.min(Semaphore::MAX_PERMITS);
        Self {
            endpoint,
            watch: Watch::new(limits.clone()),
            limits,
            features: Features::default(),
            connections: Connections::default(),
            places: Arc::new(Semaphore::new(places)),
            alt_svc,
            proxies: Vec::new(),
            settings: Mutex::new(settings),
            phase: watch::Sender::new(Phase::Serving),
            listening: watch::Sender::new(()),
            listeners: Vec::new(),
        }
    }

    /// Returns the settings of new connections.
    pub(super) fn settings(&self) -> Settings {
        let settings = self.settings.lock();
        settings.unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Returns true if the server is in this phase, or in a later one.
    pub(super) fn has_reached(&self, phase: Phase) -> bool {
        *self.phase.borrow() >= phase
    }

    /// Begins a phase, unless a later one has begun. Returns true if it is new.
    pub(super) fn begin(&self, phase: Phase) -> bool {
        self.phase.send_if_modified(|now| {
            let is_new = *now < phase;
            if is_new {
                *now = phase;
            }
            is_new
        })
    }

    /// Waits until no connection is left. Once the connections were closed, it waits only briefly: a service may
    /// block the thread of one, and a client that is gone does not answer the close.
    pub(super) async fn ended(&self) {
        let late = async {
            self.phase(Phase::Closing).await;
            tokio::time::sleep(CLOSE_TIME).await;
        };
        let ended = async {
            self.connections.ended().await;
            self.endpoint.idle().await;
        };
        tokio::select! {
            () = ended => {}
            () = late => {
                let connections = self.connections.count();
                tracing::warn!(connections, "connections remain after they were closed");
                self.endpoint.abandon();
            }
        }
    }

    /// Waits until the server is in this phase, or in a later one.
    pub(super) async fn phase(&self, phase: Phase) {
        // The sender is alive, so this cannot fail.
        let _ = self.phase.subscribe().wait_for(|now| *now >= phase).await;
    }
}
