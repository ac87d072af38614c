//! Promises: each takes a client's and a server's implementation and checks one of them.

mod features;
mod problem;

use std::sync::Arc;

use hybriq::tls::GroupKind;
use hybriq::{Group, error::By};
use tokio::{task::JoinSet, time::timeout};

pub use self::problem::Problem;
use self::{
    features::{
        carries_datagrams, follows_a_retry, loses_no_early_data, migrates, resumes,
        sends_early_data, sends_early_data_past_a_retry, survives_rebinding,
        updates_the_clients_keys, updates_the_servers_keys,
    },
    problem::{PATIENCE, ensure, failed, unexpected},
};
use crate::{
    Answer, Bulk, Certificate, Client, Connection, Failure, Feature, Groups, HANDSHAKE_FAILURE,
    Handshake, Peer, Receipt, Role, Server, Setup, Sighting, Windows, Witness,
};

const BULK: usize = 32 * 1024 * 1024;
const STREAMS: usize = 200;
/// Number of bytes that exceeds narrow windows and any implementation's buffers.
const LATE: usize = 8 * 1024 * 1024;

/// Two implementations.
#[derive(Clone, Copy)]
pub struct Pair<'a> {
    /// Implementation that connects.
    pub client: &'a dyn Peer,
    /// Implementation that accepts.
    pub server: &'a dyn Peer,
}

impl std::fmt::Debug for Pair<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Pair").finish_non_exhaustive()
    }
}

/// One promise.
#[derive(Clone, Copy)]
pub struct Case {
    /// The promise as a sentence.
    pub name: &'static str,
    client: Groups,
    server: Groups,
    needs: Needs,
    check: for<'a> fn(Pair<'a>, &'a Case) -> Answer<'a, Result<(), Problem>>,
}

impl std::fmt::Debug for Case {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Case")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

/// Features that a case needs.
#[derive(Clone, Copy, Debug)]
enum Needs {
    Nothing,
    /// Both of them.
    Both(Feature),
    /// The client.
    Client(Feature),
    /// The server.
    Server(Feature),
}

macro_rules! cases {
    ($($(#[doc = $doc:literal])* $name:ident:
        $client:ident -> $server:ident, $check:ident $(, $needs:ident($feature:ident))?;)*) => {
        $($(#[doc = $doc])*
        pub const $name: Case = Case {
            name: stringify!($name),
            client: Groups::$client,
            server: Groups::$server,
            needs: needs!($($needs($feature))?),
            check: |pair, case| Box::pin($check(pair, case)),
        };)*

        /// All promises, in the order of the table.
        pub const ALL: &[Case] = &[$($name),*];
    };
}

macro_rules! needs {
    () => {
        Needs::Nothing
    };
    ($needs:ident($feature:ident)) => {
        Needs::$needs(Feature::$feature)
    };
}

cases! {
    /// Both defaults agree on X25519MLKEM768, in one round trip.
    AGREES_ON_X25519MLKEM768: PreferPostQuantum -> PreferPostQuantum, agrees_on_x25519mlkem768;
    /// 32 MiB on one stream, there and back, are unchanged.
    CARRIES_32_MIB_EACH_WAY: PreferPostQuantum -> PreferPostQuantum, carries_32_mib_each_way;
    /// Twice as many streams as may be open at once, all at once, are served.
    CARRIES_200_STREAMS: PreferPostQuantum -> PreferPostQuantum, carries_200_streams;
    /// Four streams whose reader starts late stop at the limits of both ends, and arrive
    /// completely.
    STOPS_AT_THE_LIMITS: PreferPostQuantum -> PreferPostQuantum, stops_at_the_limits;
    /// A server whose only group has no share in the ClientHello sends a HelloRetryRequest.
    RETRIES_FOR_SECP384R1: PreferPostQuantum -> OnlySecp384r1, retries_for_secp384r1;
    /// A server that prefers post-quantum retries, although a classical share would do.
    RETRIES_FOR_ML_KEM_UNDER_PREFER: ClassicalShareFirst -> PreferPostQuantum, retries_for_ml_kem;
    /// A server that requires post-quantum retries for it.
    RETRIES_FOR_ML_KEM_UNDER_REQUIRE: ClassicalShareFirst -> RequirePostQuantum, retries_for_ml_kem;
    /// A server that prefers post-quantum serves a classical-only client.
    SERVES_A_CLASSICAL_CLIENT: OnlyClassical -> PreferPostQuantum, agrees_on_a_classical_group;
    /// A client that prefers post-quantum connects to a classical-only server.
    CONNECTS_TO_A_CLASSICAL_SERVER: PreferPostQuantum -> OnlyClassical, agrees_on_a_classical_group;
    /// A server that requires post-quantum refuses a classical-only client.
    REFUSES_A_CLASSICAL_CLIENT: OnlyClassical -> RequirePostQuantum, is_refused;
    /// A client that requires post-quantum does not connect to a classical-only server.
    REFUSES_A_CLASSICAL_SERVER: RequirePostQuantum -> OnlyClassical, is_refused;
    /// A returning client resumes its session, with a post-quantum key exchange again.
    RESUMES: PreferPostQuantum -> PreferPostQuantum, resumes, Both(Resumption);
    /// A returning client is served before the handshake is complete.
    SENDS_EARLY_DATA: PreferPostQuantum -> PreferPostQuantum, sends_early_data, Both(EarlyData);
    /// A server without the ticket's keys refuses early data, which arrives later, or the client is
    /// told.
    LOSES_NO_REFUSED_EARLY_DATA:
        PreferPostQuantum -> PreferPostQuantum, loses_no_early_data, Both(EarlyData);
    /// A client follows a server's Retry.
    FOLLOWS_A_RETRY: PreferPostQuantum -> PreferPostQuantum, follows_a_retry, Both(Retry);
    /// A client follows a server's Retry with its ticket, and with early data.
    SENDS_EARLY_DATA_PAST_A_RETRY:
        PreferPostQuantum -> PreferPostQuantum, sends_early_data_past_a_retry, Both(EarlyData);
    /// The client starts a key update in the middle of a transfer.
    UPDATES_THE_CLIENTS_KEYS:
        PreferPostQuantum -> PreferPostQuantum, updates_the_clients_keys, Client(KeyUpdates);
    /// The server starts key updates in the middle of transfers.
    UPDATES_THE_SERVERS_KEYS:
        PreferPostQuantum -> PreferPostQuantum, updates_the_servers_keys, Server(KeyUpdates);
    /// Datagrams of all sizes arrive whole.
    CARRIES_DATAGRAMS: PreferPostQuantum -> PreferPostQuantum, carries_datagrams, Both(Datagrams);
    /// A NAT gives the client another port in the middle of a transfer.
    SURVIVES_REBINDING:
        PreferPostQuantum -> PreferPostQuantum, survives_rebinding, Both(Rebinding);
    /// The client moves to another port in the middle of a transfer.
    MIGRATES: PreferPostQuantum -> PreferPostQuantum, migrates, Both(Migration);
}

impl Case {
    /// Returns true if both implementations support the case.
    pub fn applies(&self, pair: Pair<'_>) -> bool {
        self.obstacle(pair).is_none()
    }

    /// Returns the reason why they do not support it.
    fn obstacle(&self, pair: Pair<'_>) -> Option<&'static str> {
        let client = |feature| pair.client.lacks(Role::Client, feature);
        let server = |feature| pair.server.lacks(Role::Server, feature);
        let lack = match self.needs {
            Needs::Nothing => None,
            Needs::Both(feature) => client(feature).or_else(|| server(feature)),
            Needs::Client(feature) => client(feature),
            Needs::Server(feature) => server(feature),
        };
        let supported = self.is_supported(pair);
        lack.or_else(|| (!supported).then_some("one of the two cannot be set up that way"))
    }

    fn is_supported(&self, pair: Pair<'_>) -> bool {
        let server = match (self.client, self.server) {
            (Groups::ClassicalShareFirst, Groups::PreferPostQuantum) => {
                pair.server.retries_for_post_quantum()
            }
            (Groups::OnlyClassical, Groups::RequirePostQuantum) => pair.server.answers_at_once(),
            _ => true,
        };
        server
            && pair.client.supports(Role::Client, self.client)
            && pair.server.supports(Role::Server, self.server)
    }

    /// Runs the case. Must be called within a tokio runtime.
    ///
    /// # Errors
    /// The promise was not kept.
    pub async fn run(&self, pair: Pair<'_>) -> Result<(), Problem> {
        if let Some(reason) = self.obstacle(pair) {
            return Err(Problem::NotApplicable(reason));
        }
        let check = (self.check)(pair, self);
        timeout(PATIENCE, check)
            .await
            .unwrap_or(Err(Problem::TimedOut))
    }

    fn set_ups(&self, windows: Windows) -> Result<(Setup, Setup), Problem> {
        let certificate = Certificate::generate()
            .map_err(|error| Problem::Unexpected(format!("no certificate: {error}")))?;
        let set_up = |groups| Setup {
            windows,
            ..Setup::new(certificate.clone(), groups)
        };
        Ok((set_up(self.client), set_up(self.server)))
    }

    /// Connects without a witness.
    async fn connect(
        &self,
        pair: Pair<'_>,
        windows: Windows,
    ) -> Result<(Server, Arc<dyn Connection>), Problem> {
        let (client, server) = self.set_ups(windows)?;
        let mut server = pair.server.serve(&server).map_err(failed("server"))?;
        let connection = pair
            .client
            .connect(&client, server.address())
            .await
            .map_err(failed("client"))?;
        server.handshake().await.map_err(failed("server"))?;
        Ok((server, connection.into()))
    }

    /// Connects both through a witness and uses the connection, if there is one.
    async fn meet(&self, pair: Pair<'_>) -> Result<Meeting, Problem> {
        let (client, server) = self.set_ups(Windows::Default)?;
        let mut server = pair.server.serve(&server).map_err(failed("server"))?;
        let client = pair.client.client(&client).map_err(failed("client"))?;
        self.visit(&*client, &mut server).await
    }

    /// Connects like [`Case::meet`], with ends that may have met before.
    async fn visit(&self, client: &dyn Client, server: &mut Server) -> Result<Meeting, Problem> {
        let witness = Witness::before(server.address()).await?;
        let (connected, accepted) =
            tokio::join!(client.connect(witness.address()), server.handshake());
        let connected = match connected {
            Ok(connection) => {
                exchange(
                    &*connection,
                    Bulk {
                        bytes: 10_000,
                        seed: 1,
                    },
                )
                .await?;
                Ok(connection.handshake())
            }
            Err(failure) => Err(failure),
        };
        Ok(Meeting {
            client: connected,
            server: accepted,
            wire: witness.sighting(),
        })
    }
}

/// A handshake from three points of view.
struct Meeting {
    client: Result<Handshake, Failure>,
    server: Result<Handshake, Failure>,
    wire: Sighting,
}

impl Meeting {
    /// Returns what was agreed on the wire, after checking that both ends tell the same.
    fn agreed(&self) -> Result<Handshake, Problem> {
        let client = self.client.clone().map_err(failed("client"))?;
        let server = self.server.clone().map_err(failed("server"))?;
        let hellos = &self.wire.server_hellos;
        let Some(last) = hellos.last().filter(|hello| !hello.retry) else {
            return unexpected(format!("no ServerHello on the wire: {:?}", self.wire));
        };
        let wire = Handshake {
            group: Some(last.group),
            hello_retry: Some(hellos.iter().any(|hello| hello.retry)),
            resumed: Some(last.resumed),
        };
        for (end, told) in [("client", client), ("server", server)] {
            let group = told.group.or(wire.group);
            let hello_retry = told.hello_retry.or(wire.hello_retry);
            let resumed = told.resumed.or(wire.resumed);
            let told = Handshake {
                group,
                hello_retry,
                resumed,
            };
            ensure(told == wire, || {
                format!("the {end} tells {told:?}, on the wire was {wire:?}")
            })?;
        }
        Ok(wire)
    }

    /// Checks that the handshake agreed on this group with the first ClientHello.
    fn expect(&self, group: Group) -> Result<(), Problem> {
        self.expect_hellos(group, 1)
    }

    /// Checks that the handshake agreed on this group after a HelloRetryRequest.
    fn expect_after_retry(&self, group: Group) -> Result<(), Problem> {
        self.expect_hellos(group, 2)
    }

    fn expect_hellos(&self, group: Group, expected_hellos: usize) -> Result<(), Problem> {
        let agreed = self.agreed()?;
        let expected = Handshake {
            group: Some(group),
            hello_retry: Some(expected_hellos > 1),
            ..agreed
        };
        ensure(agreed == expected, || {
            format!("agreed on {agreed:?}, expected {expected:?}")
        })?;
        let hellos = self.wire.client_hellos.len();
        ensure(hellos == expected_hellos, || {
            format!("{hellos} ClientHellos")
        })
    }

    /// Checks that both ends know that the server refused the connection for its key exchange.
    fn expect_refusal(&self, pair: Pair<'_>, case: &Case) -> Result<(), Problem> {
        let client = told(pair.client, case.client, HANDSHAKE_FAILURE);
        let server = told(pair.server, case.server, pair.server.own_refusal());
        expect_refused("client", By::Peer, &self.client, client)?;
        expect_refused("server", By::Local, &self.server, server)?;
        ensure(self.wire.closes.contains(&HANDSHAKE_FAILURE), || {
            format!("closed on the wire with {:x?}", self.wire.closes)
        })
    }
}

/// Form in which an end reports a refused key exchange.
#[derive(Clone, Copy)]
enum Report {
    /// An error variant made for refused key exchanges.
    Named,
    /// A transport error with this code.
    Code(u64),
    /// Either of the two: the other end may have named the policy that failed, or sent an alert only.
    NamedOrCode(u64),
}

/// Returns how an end reports a refusal: one that requires post-quantum names it, others see an
/// alert.
fn told(peer: &dyn Peer, groups: Groups, code: u64) -> Report {
    match (peer.names_refusals(), groups) {
        (true, Groups::RequirePostQuantum) => Report::Named,
        (true, _) => Report::NamedOrCode(code),
        (false, _) => Report::Code(code),
    }
}

fn expect_refused(
    end: &'static str,
    by: By,
    outcome: &Result<Handshake, Failure>,
    told: Report,
) -> Result<(), Problem> {
    let right = match (outcome, told) {
        (
            Err(Failure::KeyExchangeRefused { by: who, .. }),
            Report::Named | Report::NamedOrCode(_),
        ) => *who == by,
        (
            Err(Failure::Transport { by: who, code, .. }),
            Report::Code(expected) | Report::NamedOrCode(expected),
        ) => *who == by && *code == expected,
        _ => false,
    };
    ensure(right, || {
        format!("the {end} was to be refused, {by:?}, and has {outcome:?}")
    })
}

async fn agrees_on_x25519mlkem768(pair: Pair<'_>, case: &Case) -> Result<(), Problem> {
    case.meet(pair).await?.expect(Group::X25519MLKEM768)
}

async fn carries_32_mib_each_way(pair: Pair<'_>, case: &Case) -> Result<(), Problem> {
    let (_server, connection) = case.connect(pair, Windows::Default).await?;
    exchange(
        &*connection,
        Bulk {
            bytes: BULK,
            seed: 2,
        },
    )
    .await?;
    connection.close();
    Ok(())
}

async fn carries_200_streams(pair: Pair<'_>, case: &Case) -> Result<(), Problem> {
    let (_server, connection) = case.connect(pair, Windows::Default).await?;
    let mut streams = JoinSet::new();
    for index in 0..STREAMS {
        let connection = Arc::clone(&connection);
        let bulk = Bulk {
            bytes: index * 97,
            seed: index as u64,
        };
        streams.spawn(async move { exchange(&*connection, bulk).await });
    }
    all(streams).await?;
    connection.close();
    Ok(())
}

async fn stops_at_the_limits(pair: Pair<'_>, case: &Case) -> Result<(), Problem> {
    let (_server, connection) = case.connect(pair, Windows::Narrow).await?;
    let mut streams = JoinSet::new();
    for seed in 0..4 {
        let connection = Arc::clone(&connection);
        let bulk = Bulk { bytes: LATE, seed };
        streams.spawn(async move { check(bulk, bulk.exchange_late(&*connection).await) });
    }
    all(streams).await?;
    connection.close();
    Ok(())
}

async fn all(mut streams: JoinSet<Result<(), Problem>>) -> Result<(), Problem> {
    while let Some(stream) = streams.join_next().await {
        stream.map_err(|error| Problem::Unexpected(error.to_string()))??;
    }
    Ok(())
}

async fn retries_for_secp384r1(pair: Pair<'_>, case: &Case) -> Result<(), Problem> {
    case.meet(pair).await?.expect_after_retry(Group::SECP384R1)
}

async fn retries_for_ml_kem(pair: Pair<'_>, case: &Case) -> Result<(), Problem> {
    let meeting = case.meet(pair).await?;
    let first = meeting.wire.client_hellos.first();
    ensure(
        first.is_some_and(|hello| hello.shares == [Group::X25519]),
        || format!("the first ClientHello was to share X25519 alone: {first:?}"),
    )?;
    meeting.expect_after_retry(Group::X25519MLKEM768)
}

async fn agrees_on_a_classical_group(pair: Pair<'_>, case: &Case) -> Result<(), Problem> {
    let meeting = case.meet(pair).await?;
    let agreed = meeting.agreed()?;
    let kind = agreed.group.map(Group::kind);
    ensure(kind == Some(GroupKind::Classical), || {
        format!("agreed on {agreed:?}")
    })
}

async fn is_refused(pair: Pair<'_>, case: &Case) -> Result<(), Problem> {
    case.meet(pair).await?.expect_refusal(pair, case)
}

async fn exchange(connection: &dyn Connection, bulk: Bulk) -> Result<(), Problem> {
    check(bulk, bulk.exchange(connection).await)
}

fn check(bulk: Bulk, outcome: Result<Receipt, Failure>) -> Result<(), Problem> {
    let receipt = outcome.map_err(failed("client"))?;
    ensure(receipt.bytes == bulk.bytes && receipt.is_intact(), || {
        format!("{bulk:?} came back as {receipt:?}")
    })
}
