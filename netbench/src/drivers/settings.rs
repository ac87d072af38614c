//! Settings of a measurement as [`crate::stacks`] take them.

use std::time::Duration;

use super::{ALPN, ALPN_H2, ALPN_H3, Role, Setup, Streams, Transport, first_share};
use crate::scenario::axes::{Resumption, Stack};
use crate::stacks::{self, Identity, Tickets, Tls, Windows};

impl Setup {
    /// Returns the application protocol of both ends.
    pub(crate) fn alpn(&self) -> &'static str {
        match (self.transport.streams, self.cell.driver) {
            (Streams::Http, Stack::TcpTls) => ALPN_H2,
            (Streams::Http, _) => ALPN_H3,
            (Streams::One | Streams::Many, _) => ALPN,
        }
    }

    /// Returns the TLS settings of one end: nothing but what the cell says.
    pub(crate) fn tls(&self, role: Role) -> Tls<'_> {
        let (cell, pem) = (&self.cell, &self.certificates);
        let (first, chain, key) = match role {
            Role::Client => (first_share(cell), &pem.client_chain, &pem.client_key),
            Role::Server => (None, &pem.server_chain, &pem.server_key),
        };
        let identity = Identity { chain, key };
        let shows = role == Role::Server || cell.client_auth;
        let verifies = role == Role::Client || cell.client_auth;
        Tls {
            alpn: self.alpn(),
            groups: first.into_iter().chain([cell.group]).collect(),
            suite: Some(cell.suite),
            identity: shows.then_some(identity),
            roots: verifies.then_some(&pem.root),
            tickets: match cell.resumption {
                Resumption::Full => Tickets::Off,
                Resumption::Psk => Tickets::Resume,
                Resumption::ZeroRtt => Tickets::EarlyData,
            },
        }
    }
}

impl<'a> From<&'a Transport> for stacks::Transport<'a> {
    fn from(settings: &'a Transport) -> Self {
        Self {
            datagram_size: settings.datagram_size,
            congestion: settings.congestion.as_deref(),
            windows: settings.window.map(|bytes| Windows {
                stream: bytes,
                local_stream: bytes,
                connection: bytes,
            }),
            socket_buffer: settings.socket_buffer,
            idle_timeout: settings.idle_timeout_ms.map(Duration::from_millis),
            max_streams: settings.max_streams,
        }
    }
}
