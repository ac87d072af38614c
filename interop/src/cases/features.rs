//! Promises about features that not every handshake has.

use std::future::Future;

use hybriq::Group;
use hybriq::tls::EarlyDataPolicy;
use tokio::sync::oneshot;

use super::{Case, Meeting, Pair, Problem, check, ensure, exchange, failed, unexpected};
use crate::{
    Bulk, Client, Connection, Early, Feature, Role, Server, Setup, Validation, Windows, Witness,
};

/// Transfer long enough for something to happen in the middle.
const TRANSFER: Bulk = Bulk {
    bytes: 4 * 1024 * 1024,
    seed: 3,
};
/// Transfer short enough to look for an effect repeatedly.
const LOOK: Bulk = Bulk {
    bytes: 100_000,
    seed: 4,
};
/// Maximum number of meetings until one has a Retry. A server that has acknowledged the first half of
/// a ClientHello, because the second came late, sends none (RFC 9000 §17.2.5.2).
const MEETINGS: usize = 10;
/// Maximum number of looks, more than any implementation needs.
const LOOKS: usize = 1000;
/// Datagram size that every path carries (RFC 9000 §14), with room for the header of the packet.
const LARGEST_DATAGRAM: usize = 1100;

/// A client and a server that meet several times.
struct Acquaintances {
    client: Box<dyn Client>,
    server: Server,
    /// Setup for another server of the same kind.
    server_setup: Setup,
}

impl Acquaintances {
    fn new(pair: Pair<'_>, case: &Case, change: impl Fn(&mut Setup)) -> Result<Self, Problem> {
        let (mut client, mut server) = case.set_ups(Windows::Default)?;
        change(&mut client);
        change(&mut server);
        Ok(Self {
            client: pair.client.client(&client).map_err(failed("client"))?,
            server: pair.server.serve(&server).map_err(failed("server"))?,
            server_setup: server,
        })
    }

    /// Connects and checks that the key exchange is post-quantum.
    async fn meet(&mut self, case: &Case) -> Result<Meeting, Problem> {
        let meeting = case.visit(&*self.client, &mut self.server).await?;
        meeting.expect(Group::X25519MLKEM768)?;
        Ok(meeting)
    }

    /// Connects with early data of the client.
    async fn meet_early(&mut self) -> Result<(Early, Witness), Problem> {
        let witness = Witness::before_early_data(self.server.address()).await?;
        let connecting = self.client.connect_early(witness.address(), LOOK);
        let (early, accepted) = tokio::join!(connecting, self.server.handshake());
        accepted.map_err(failed("server"))?;
        let early = early.map_err(failed("client"))?;
        Ok((early, witness))
    }

    async fn is_served_early(&mut self) -> Result<Witness, Problem> {
        let (early, witness) = self.meet_early().await?;
        ensure(early.accepted, || "the early data was refused".into())?;
        check(LOOK, early.echo)?;
        exchange(&*early.connection, LOOK).await?;
        let hello = witness.sighting().server_hellos.pop();
        ensure(
            hello.is_some_and(|it| it.resumed && it.group == Group::X25519MLKEM768),
            || format!("the server's last answer was {hello:?}"),
        )?;
        Ok(witness)
    }
}

fn with_early_data(setup: &mut Setup) {
    setup.early_data = EarlyDataPolicy::On;
}

pub(super) async fn resumes(pair: Pair<'_>, case: &Case) -> Result<(), Problem> {
    let mut both = Acquaintances::new(pair, case, |_| {})?;
    let full = both.meet(case).await?.agreed()?;
    let resumed = both.meet(case).await?.agreed()?;
    let outcome = (full.resumed, resumed.resumed);
    ensure(outcome == (Some(false), Some(true)), || {
        format!("resumed: {outcome:?}")
    })
}

pub(super) async fn sends_early_data(pair: Pair<'_>, case: &Case) -> Result<(), Problem> {
    let mut both = Acquaintances::new(pair, case, with_early_data)?;
    both.meet(case).await?;
    both.is_served_early().await.map(drop)
}

pub(super) async fn sends_early_data_past_a_retry(
    pair: Pair<'_>,
    case: &Case,
) -> Result<(), Problem> {
    let mut both = Acquaintances::new(pair, case, |setup| {
        with_early_data(setup);
        setup.validation = Validation::ByRetry;
    })?;
    both.meet(case).await?;
    for _ in 0..MEETINGS {
        let witness = both.is_served_early().await?;
        if witness.sighting().retries > 0 {
            return Ok(());
        }
    }
    unexpected("no Retry".to_owned())
}

pub(super) async fn loses_no_early_data(pair: Pair<'_>, case: &Case) -> Result<(), Problem> {
    let mut both = Acquaintances::new(pair, case, with_early_data)?;
    both.meet(case).await?;
    // Another process of the same service has other ticket keys.
    both.server = pair
        .server
        .serve(&both.server_setup)
        .map_err(failed("server"))?;
    let (early, _witness) = both.meet_early().await?;
    ensure(!early.accepted, || {
        "a server that does not know the ticket took early data".into()
    })?;
    // An error tells the client; an answer must be the right one.
    if early.echo.is_ok() {
        check(LOOK, early.echo)?;
    }
    exchange(&*early.connection, LOOK).await
}

pub(super) async fn follows_a_retry(pair: Pair<'_>, case: &Case) -> Result<(), Problem> {
    let mut both = Acquaintances::new(pair, case, |setup| {
        setup.validation = Validation::ByRetry;
    })?;
    for _ in 0..MEETINGS {
        if both.meet(case).await?.wire.retries > 0 {
            return Ok(());
        }
    }
    unexpected("no Retry".to_owned())
}

pub(super) async fn updates_the_clients_keys(pair: Pair<'_>, case: &Case) -> Result<(), Problem> {
    let count = KeyUpdates::of(pair)?;
    let (server, connection) = case.connect(pair, Windows::Default).await?;
    // The first exchange ends after the handshake is confirmed: only then may keys be updated.
    exchange(&*connection, LOOK).await?;
    halfway(&*connection, async || {
        connection.update_keys();
        Ok(())
    })
    .await?;
    count.reaches_one(&*connection, &server).await
}

pub(super) async fn updates_the_servers_keys(pair: Pair<'_>, case: &Case) -> Result<(), Problem> {
    let count = KeyUpdates::of(pair)?;
    let (server, connection) = case.connect(pair, Windows::Default).await?;
    exchange(&*connection, LOOK).await?;
    server.activity().update_keys();
    exchange(&*connection, TRANSFER).await?;
    count.reaches_one(&*connection, &server).await
}

/// End that reported the number of key updates.
enum KeyUpdates {
    AtClient,
    AtServer,
}

impl KeyUpdates {
    fn of(pair: Pair<'_>) -> Result<Self, Problem> {
        let feature = Feature::KeyUpdateCount;
        if pair.client.lacks(Role::Client, feature).is_none() {
            return Ok(Self::AtClient);
        }
        match pair.server.lacks(Role::Server, feature) {
            None => Ok(Self::AtServer),
            Some(reason) => Err(Problem::NotApplicable(reason)),
        }
    }

    async fn reaches_one(
        &self,
        connection: &dyn Connection,
        server: &Server,
    ) -> Result<(), Problem> {
        let what = "an update of the keys";
        until(connection, what, || match self {
            Self::AtClient => connection.key_updates() > Some(0),
            Self::AtServer => server.activity().key_updates() > 0,
        })
        .await
    }
}

pub(super) async fn carries_datagrams(pair: Pair<'_>, case: &Case) -> Result<(), Problem> {
    let (_server, connection) = case.connect(pair, Windows::Default).await?;
    exchange(&*connection, LOOK).await?;
    for len in (1..=LARGEST_DATAGRAM).step_by(7) {
        let sent: Vec<_> = (0..len).map(|index| (index * 31 + len) as u8).collect();
        let came = connection.datagram(sent.clone()).await;
        let came = came.map_err(failed("client"))?;
        ensure(came == sent, || {
            format!("of {len} bytes {} came back, or others", came.len())
        })?;
    }
    Ok(())
}

pub(super) async fn survives_rebinding(pair: Pair<'_>, case: &Case) -> Result<(), Problem> {
    let mut both = Acquaintances::new(pair, case, |_| {})?;
    let witness = Witness::before(both.server.address()).await?;
    let connection = both.client.connect(witness.address()).await;
    let connection = connection.map_err(failed("client"))?;
    both.server.handshake().await.map_err(failed("server"))?;
    exchange(&*connection, LOOK).await?;
    halfway(&*connection, async || {
        witness.rebind();
        Ok(())
    })
    .await?;
    is_elsewhere(&*connection, &both.server).await
}

pub(super) async fn migrates(pair: Pair<'_>, case: &Case) -> Result<(), Problem> {
    let (server, connection) = case.connect(pair, Windows::Default).await?;
    exchange(&*connection, LOOK).await?;
    halfway(&*connection, async || {
        connection.migrate().await.map_err(failed("client"))
    })
    .await?;
    is_elsewhere(&*connection, &server).await
}

/// Checks that the server saw its client at a second address.
async fn is_elsewhere(connection: &dyn Connection, server: &Server) -> Result<(), Problem> {
    let what = "its client at a second address";
    until(connection, what, || {
        server.activity().client_addresses() > 1
    })
    .await
}

/// Does something in the middle of a transfer.
async fn halfway<F>(connection: &dyn Connection, act: impl FnOnce() -> F) -> Result<(), Problem>
where
    F: Future<Output = Result<(), Problem>>,
{
    let (to, half) = oneshot::channel();
    let acting = async {
        match half.await {
            Ok(()) => act().await,
            // The transfer's failure is more informative.
            Err(_) => Ok(()),
        }
    };
    let (transferred, acted) = tokio::join!(TRANSFER.exchange_and_tell(connection, to), acting);
    acted?;
    check(TRANSFER, transferred)
}

/// Uses the connection until one of the ends has noticed the effect.
async fn until(
    connection: &dyn Connection,
    what: &str,
    noticed: impl Fn() -> bool,
) -> Result<(), Problem> {
    for _ in 0..LOOKS {
        exchange(connection, LOOK).await?;
        if noticed() {
            return Ok(());
        }
    }
    unexpected(format!("nobody saw {what}"))
}
