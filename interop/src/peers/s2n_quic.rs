//! s2n-quic.

use std::{
    net::{Ipv4Addr, SocketAddr, SocketAddrV4},
    sync::Arc,
};

use hybriq::Group;
use hybriq_netbench::stacks;
use s2n_quic::{
    client::Connect,
    connection::Handle,
    provider::{
        endpoint_limits::{ConnectionAttempt, Limiter, Outcome},
        event::{self, events},
    },
};
use tokio::sync::mpsc;

use super::settings;
use crate::{
    Activity, Answer, Client, Connection, Failure, Feature, Groups, Handshake, Peer, Reader, Role,
    SERVER_NAME, Server, Setup, Validation, Writer, echo_stream,
};

const FREE_PORT: SocketAddr = SocketAddr::V4(SocketAddrV4::new(Ipv4Addr::LOCALHOST, 0));

/// s2n-quic 1.91 on s2n-tls.
///
/// Its builders are classical unless the compiler gets a cfg; `config_mut` reaches the s2n-tls
/// configuration behind them, which takes the name of a policy.
#[derive(Clone, Copy, Debug)]
pub struct S2nQuic;

impl Peer for S2nQuic {
    fn name(&self) -> &'static str {
        "s2n-quic"
    }

    fn supports(&self, _role: Role, groups: Groups) -> bool {
        // No policy lists a classical group before a post-quantum one.
        groups != Groups::ClassicalShareFirst
    }

    // An error in the first datagram of a connection drops the connection, and the client hears
    // nothing until it times out.
    fn answers_at_once(&self) -> bool {
        false
    }

    // s2n-tls has an internal error, which s2n-quic sends as handshake_failure.
    fn own_refusal(&self) -> u64 {
        0x150
    }

    fn lacks(&self, role: Role, feature: Feature) -> Option<&'static str> {
        match feature {
            Feature::EarlyData => Some("s2n-tls has no 0-RTT for QUIC"),
            Feature::KeyUpdates => Some("s2n-quic updates keys by itself when they wear out"),
            Feature::Datagrams => Some("s2n-quic's datagrams are unstable"),
            Feature::Migration if role == Role::Client => Some("s2n-quic's clients cannot move"),
            _ => None,
        }
    }

    fn serve(&self, setup: &Setup) -> Result<Server, Failure> {
        let (outcomes, received) = mpsc::unbounded_channel();
        let tls = settings::tls(setup, Role::Server);
        let tls = stacks::s2n_quic::server_tls(&tls, policy(setup.groups));
        let events = Observer {
            failures: Some(outcomes.clone()),
        };
        let mut server = stacks::s2n_quic::serve(
            tls.map_err(Failure::set_up)?,
            &settings::transport(setup),
            FREE_PORT,
            events,
            Admission(setup.validation),
        )
        .map_err(Failure::set_up)?;
        let address = server.local_addr().map_err(Failure::set_up)?;
        let activity = Arc::new(Activity::default());
        let noting = Arc::clone(&activity);
        let task = tokio::spawn(async move {
            while let Some(connection) = server.accept().await {
                let _ = outcomes.send(Ok(observed(&connection.handle())));
                tokio::spawn(echo_connection(connection, Arc::clone(&noting)));
            }
        });
        Ok(Server::new(address, received, activity, task))
    }

    fn client(&self, setup: &Setup) -> Result<Box<dyn Client>, Failure> {
        let tls = settings::tls(setup, Role::Client);
        let tls = stacks::s2n_quic::client_tls(&tls, policy(setup.groups));
        let tls = tls.map_err(Failure::set_up)?;
        let settings = settings::transport(setup);
        let events = Observer { failures: None };
        let client = stacks::s2n_quic::client(tls, &settings, FREE_PORT, events);
        let client = client.map_err(Failure::set_up)?;
        Ok(Box::new(Remembering(client)))
    }
}

/// A client whose TLS configuration holds the ticket.
struct Remembering(s2n_quic::Client);

impl Client for Remembering {
    fn connect(&self, server: SocketAddr) -> Answer<'_, Result<Box<dyn Connection>, Failure>> {
        Box::pin(async move {
            let to = Connect::new(server).with_server_name(SERVER_NAME);
            let connection = self.0.connect(to).await.map_err(failure)?;
            let handle = connection.handle();
            Ok(Box::new(Opened {
                handle,
                _client: self.0.clone(),
            }) as Box<dyn Connection>)
        })
    }
}

async fn echo_connection(mut connection: s2n_quic::Connection, activity: Arc<Activity>) {
    let handle = connection.handle();
    while let Ok(Some(stream)) = connection.accept_bidirectional_stream().await {
        if let Ok(address) = handle.remote_addr() {
            activity.saw_client_at(address);
        }
        let (reader, writer) = stream.split();
        let (handle, activity) = (handle.clone(), Arc::clone(&activity));
        tokio::spawn(async move {
            echo_stream(Box::new(writer), Box::new(reader)).await;
            activity.saw_key_updates(key_updates(&handle).unwrap_or_default());
        });
    }
}

fn key_updates(connection: &Handle) -> Option<u64> {
    let noted = connection.query_event_context(|noted: &Noted| noted.key_updates);
    noted.ok()
}

/// Limiter that decides which clients are accepted at once.
struct Admission(Validation);

impl Limiter for Admission {
    fn on_connection_attempt(&mut self, _: &ConnectionAttempt) -> Outcome {
        match self.0 {
            Validation::ByHandshake => Outcome::allow(),
            Validation::ByRetry => Outcome::retry(),
        }
    }
}

struct Opened {
    handle: Handle,
    _client: s2n_quic::Client,
}

impl Connection for Opened {
    fn handshake(&self) -> Handshake {
        observed(&self.handle)
    }

    fn open(&self) -> Answer<'_, Result<(Writer, Reader), Failure>> {
        let mut handle = self.handle.clone();
        Box::pin(async move {
            let stream = handle.open_bidirectional_stream().await.map_err(failure)?;
            let (reader, writer) = stream.split();
            Ok((Box::new(writer) as Writer, Box::new(reader) as Reader))
        })
    }

    fn key_updates(&self) -> Option<u64> {
        key_updates(&self.handle)
    }

    fn close(&self) {
        self.handle.close(0u32.into());
    }
}

fn failure(error: s2n_quic::connection::Error) -> Failure {
    stacks::s2n_quic::close(error).map_or_else(|| Failure::other(error), Failure::from)
}

/// Subscriber that notes the group of each connection, and reports those that end before they are
/// established, which `accept` never shows.
struct Observer {
    failures: Option<mpsc::UnboundedSender<Result<Handshake, Failure>>>,
}

#[derive(Default)]
struct Noted {
    group: Option<Group>,
    complete: bool,
    key_updates: u64,
}

impl event::Subscriber for Observer {
    type ConnectionContext = Noted;

    fn create_connection_context(
        &mut self,
        _meta: &event::ConnectionMeta,
        _info: &event::ConnectionInfo,
    ) -> Noted {
        Noted::default()
    }

    fn on_key_exchange_group(
        &mut self,
        noted: &mut Noted,
        _meta: &event::ConnectionMeta,
        event: &events::KeyExchangeGroup,
    ) {
        noted.group = Group::from_name(event.chosen_group_name);
    }

    fn on_key_update(
        &mut self,
        noted: &mut Noted,
        _meta: &event::ConnectionMeta,
        event: &events::KeyUpdate,
    ) {
        // The first keys are reported as an update, too.
        if let events::KeyType::OneRtt { generation, .. } = event.key_type {
            noted.key_updates = generation.into();
        }
    }

    fn on_handshake_status_updated(
        &mut self,
        noted: &mut Noted,
        _meta: &event::ConnectionMeta,
        event: &events::HandshakeStatusUpdated,
    ) {
        noted.complete |= matches!(event.status, events::HandshakeStatus::Complete { .. });
    }

    fn on_connection_closed(
        &mut self,
        noted: &mut Noted,
        _meta: &event::ConnectionMeta,
        event: &events::ConnectionClosed,
    ) {
        if let Some(failures) = self.failures.as_ref().filter(|_| !noted.complete) {
            let _ = failures.send(Err(failure(event.error)));
        }
    }
}

fn observed(connection: &Handle) -> Handshake {
    let group = connection
        .query_event_context(|noted: &Noted| noted.group)
        .ok()
        .flatten();
    Handshake {
        group,
        hello_retry: None,
        resumed: None,
    }
}

/// Returns the name of the policy of s2n-tls with these groups.
fn policy(groups: Groups) -> &'static str {
    match groups {
        Groups::PreferPostQuantum | Groups::ClassicalShareFirst => "default_pq",
        Groups::RequirePostQuantum => "test_pq_only",
        Groups::OnlyClassical => "20240603",
        Groups::OnlySecp384r1 => "20250414",
    }
}
