//! s2n-quic on s2n-tls or on rustls, both with aws-lc-rs.

use std::{
    net::SocketAddr,
    pin::Pin,
    sync::{Arc, Mutex, PoisonError},
    time::SystemTime,
};

use hybriq::error::By;
use s2n_quic::connection::Error;
use s2n_quic::provider::congestion_controller::{Bbr, Cubic, Endpoint as Congestion};
use s2n_quic::provider::datagram::default::Endpoint as Datagrams;
use s2n_quic::provider::endpoint_limits::Provider as Admission;
use s2n_quic::provider::event::Provider as Events;
use s2n_quic::provider::io::Default as Io;
use s2n_quic::provider::limits::Limits;
use s2n_quic::provider::tls::{Provider, s2n_tls as tls};
use s2n_quic::{Client, Server};
use s2n_tls::callbacks::{
    ConnectionFuture, SessionTicket, SessionTicketCallback, VerifyHostNameCallback,
};
use s2n_tls::config::ConnectionInitializer;
use s2n_tls::connection::Connection;
use s2n_tls::security::Policy;

use super::{Close, Failure, Tickets, Tls, Transport};

/// Maximum number of datagrams waiting to be sent or read; the default is 200.
const DATAGRAMS: usize = 1024;

/// Starts a server. `admission` decides which clients are accepted at once.
pub fn serve(
    tls: impl Provider,
    settings: &Transport<'_>,
    address: SocketAddr,
    events: impl Events,
    admission: impl Admission,
) -> Result<Server, Failure> {
    let ready = Ready::new(settings, address)?;
    match congestion(settings)? {
        Controller::Cubic => ready.serve(tls, Cubic::default(), events, admission),
        Controller::Bbr => ready.serve(tls, Bbr::default(), events, admission),
    }
}

/// Starts a client on a local address.
pub fn client(
    tls: impl Provider,
    settings: &Transport<'_>,
    address: SocketAddr,
    events: impl Events,
) -> Result<Client, Failure> {
    let ready = Ready::new(settings, address)?;
    match congestion(settings)? {
        Controller::Cubic => ready.connect(tls, Cubic::default(), events),
        Controller::Bbr => ready.connect(tls, Bbr::default(), events),
    }
}

/// Returns the transport's close, if one ended the connection.
pub fn close(error: Error) -> Option<Close> {
    let Error::Transport {
        code,
        reason,
        initiator,
        ..
    } = error
    else {
        return None;
    };
    Some(Close {
        by: if initiator.is_local() {
            By::Local
        } else {
            By::Peer
        },
        code: code.as_u64(),
        reason: reason.to_owned(),
    })
}

/// Returns s2n-tls's configuration of a server. The name of a policy takes the place of the groups
/// and suites, of which s2n-tls takes no lists.
pub fn server_tls(tls: &Tls<'_>, policy: &str) -> Result<tls::Server, Failure> {
    let own = tls.identity.ok_or("a server needs a certificate")?;
    let mut builder = tls::Server::builder()
        .with_application_protocols([tls.alpn])?
        .with_certificate(own.chain, own.key)?;
    if let Some(roots) = tls.roots {
        builder = builder
            .with_empty_trust_store()?
            .with_trusted_certificate(roots)?
            .with_client_authentication()?
            // A client is identified by its certificate, without a host name in it.
            .with_verify_host_name_callback(AnyName)?;
    }
    let config = builder
        .config_mut()
        .set_security_policy(&Policy::from_version(policy)?)?;
    if tls.tickets != Tickets::Off {
        let mut key = [0; 32];
        aws_lc_rs::rand::fill(&mut key).map_err(|_| "the system has no random bytes")?;
        config.add_session_ticket_key(b"tickets", &key, SystemTime::now())?;
    }
    Ok(builder.build()?)
}

/// Returns s2n-tls's configuration of a client, which remembers the latest ticket. For the policy
/// see [`server_tls`].
pub fn client_tls(tls: &Tls<'_>, policy: &str) -> Result<tls::Client, Failure> {
    let roots = tls.roots.ok_or("a client needs certificates to trust")?;
    let mut builder = tls::Client::builder()
        .with_application_protocols([tls.alpn])?
        .with_empty_trust_store()?
        .with_certificate(roots)?;
    let config = builder
        .config_mut()
        .set_security_policy(&Policy::from_version(policy)?)?;
    if tls.tickets != Tickets::Off {
        let ticket = Ticket::default();
        config
            .set_session_ticket_callback(ticket.clone())?
            .set_connection_initializer(ticket)?;
    }
    Ok(builder.build()?)
}

struct AnyName;

impl VerifyHostNameCallback for AnyName {
    fn verify_host_name(&self, _host_name: &str) -> bool {
        true
    }
}

/// Latest ticket of a client.
#[derive(Clone, Debug, Default)]
pub struct Ticket(Arc<Mutex<Option<Vec<u8>>>>);

impl SessionTicketCallback for Ticket {
    fn on_session_ticket(&self, _: &mut Connection, ticket: &SessionTicket) {
        let Ok(len) = ticket.len() else { return };
        let mut bytes = vec![0; len];
        if ticket.data(&mut bytes).is_ok() {
            *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(bytes);
        }
    }
}

impl ConnectionInitializer for Ticket {
    fn initialize_connection(
        &self,
        connection: &mut Connection,
    ) -> Result<Option<Pin<Box<dyn ConnectionFuture>>>, s2n_tls::error::Error> {
        let ticket = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(ticket) = ticket.as_deref() {
            connection.set_session_ticket(ticket)?;
        }
        Ok(None)
    }
}

/// Parts of an endpoint that both roles have.
struct Ready {
    address: SocketAddr,
    limits: Limits,
    datagrams: Datagrams,
    io: Io,
}

impl Ready {
    fn new(settings: &Transport<'_>, address: SocketAddr) -> Result<Self, Failure> {
        Ok(Self {
            address,
            limits: limits(settings)?,
            datagrams: datagrams()?,
            io: io(address, settings)?,
        })
    }

    fn serve(
        self,
        tls: impl Provider,
        congestion: impl Congestion,
        events: impl Events,
        admission: impl Admission,
    ) -> Result<Server, Failure> {
        let address = self.address;
        let builder = Server::builder()
            .with_tls(tls)
            .map_err(refused)?
            .with_congestion_controller(congestion)?
            .with_limits(self.limits)?
            .with_event(events)
            .map_err(refused)?
            .with_endpoint_limits(admission)
            .map_err(refused)?
            .with_datagram(self.datagrams)?
            .with_io(self.io)?;
        let started = builder.start();
        started.map_err(|error| format!("cannot listen on UDP {address}: {error}").into())
    }

    fn connect(
        self,
        tls: impl Provider,
        congestion: impl Congestion,
        events: impl Events,
    ) -> Result<Client, Failure> {
        let builder = Client::builder()
            .with_tls(tls)
            .map_err(refused)?
            .with_congestion_controller(congestion)?
            .with_limits(self.limits)?
            .with_event(events)
            .map_err(refused)?
            .with_datagram(self.datagrams)?
            .with_io(self.io)?;
        Ok(builder.start()?)
    }
}

fn refused(error: impl std::fmt::Display) -> String {
    error.to_string()
}

enum Controller {
    Cubic,
    Bbr,
}

fn congestion(settings: &Transport<'_>) -> Result<Controller, Failure> {
    match settings.congestion {
        None | Some("cubic") => Ok(Controller::Cubic),
        Some("bbr") => Ok(Controller::Bbr),
        Some(name) => {
            Err(format!("s2n-quic has no congestion controller '{name}'; it has cubic, bbr").into())
        }
    }
}

fn datagrams() -> Result<Datagrams, Failure> {
    Ok(Datagrams::builder()
        .with_send_capacity(DATAGRAMS)
        .and_then(|builder| builder.with_recv_capacity(DATAGRAMS))
        .map_err(|_| "s2n-quic takes no datagrams")?
        .build()?)
}

fn io(address: SocketAddr, settings: &Transport<'_>) -> Result<Io, Failure> {
    let mut io = Io::builder().with_receive_address(address)?;
    if let Some(bytes) = settings.socket_buffer {
        io = io
            .with_recv_buffer_size(bytes as usize)?
            .with_send_buffer_size(bytes as usize)?;
    }
    if let Some(bytes) = settings.datagram_size {
        // The value includes the headers of UDP and IP; equal limits switch the search off.
        let size = bytes.saturating_add(if address.is_ipv4() { 28 } else { 48 });
        io = io.with_max_mtu(size)?.with_initial_mtu(size)?;
    }
    Ok(io.build()?)
}

/// Streams that an end may open, if the peer allows them.
const LOCAL_STREAMS: u64 = 1 << 20;

fn limits(settings: &Transport<'_>) -> Result<Limits, Failure> {
    let mut limits = Limits::default();
    if let Some(windows) = settings.windows {
        limits = limits
            .with_data_window(windows.connection.into())?
            .with_bidirectional_local_data_window(windows.local_stream.into())?
            .with_bidirectional_remote_data_window(windows.stream.into())?
            .with_unidirectional_data_window(windows.stream.into())?
            .with_max_send_buffer_size(windows.stream)?;
    }
    if let Some(timeout) = settings.idle_timeout {
        limits = limits.with_max_idle_timeout(timeout)?;
    }
    if let Some(count) = settings.max_streams {
        // Without limits of its own a client waits for those that end, and with many waiting tasks
        // s2n-quic 1.91 sometimes wakes none of them.
        limits = limits
            .with_max_open_local_bidirectional_streams(LOCAL_STREAMS)?
            .with_max_open_local_unidirectional_streams(LOCAL_STREAMS)?
            .with_max_open_remote_bidirectional_streams(count)?
            .with_max_open_remote_unidirectional_streams(count)?;
    }
    Ok(limits)
}
