//! Makes connections of one kind to one server.

use std::rc::Rc;
use std::time::Duration;

use tokio::time::{Instant, sleep, timeout};

use super::Client;
use super::attempt::{Attempt, Live};
use crate::drivers::Connection;
use crate::engine::plan::{Kind, opens};
use crate::engine::record::mismatch::mismatch;
use crate::engine::record::phase::Phase;
use crate::engine::record::recorder::Label;
use crate::engine::script::session::Session;
use crate::engine::time::clock;
use crate::system::outcome::Failed;

/// Maximum time to wait for a ticket.
pub(crate) const PATIENCE: Duration = Duration::from_secs(2);

/// Maximum time between two checks for a ticket.
const LOOK: Duration = Duration::from_millis(5);

/// Maximum time for a connection to tell the peer that it is closed.
const CLOSING: Duration = Duration::from_secs(1);

/// Facts shared by the connections of one operation.
pub(crate) struct Making<'a> {
    pub(crate) client: &'a Client,
    pub(crate) phase: &'a Phase,
    pub(crate) label: Label,
    kind: &'a Kind,
    /// Server name that tells the kind of connection.
    name: String,
    server: usize,
}

impl<'a> Making<'a> {
    pub(crate) fn new(
        client: &'a Client,
        phase: &'a Phase,
        wanted: &Kind,
        server: usize,
        label: &str,
    ) -> Result<Self, Failed> {
        client.server(server)?;
        let Some((kind, name)) = client.plan.kind(wanted) else {
            return Err(Failed::other("a kind of connection that is not planned"));
        };
        Ok(Self {
            client,
            phase,
            label: phase.recorder.label(label),
            kind,
            name,
            server,
        })
    }

    /// Starts a connection under that name.
    pub(crate) async fn connect(&self, name: &str) -> Result<Rc<dyn Connection>, Failed> {
        let (connector, server) = self.client.server(self.server)?;
        connector.connect(server, name).await
    }

    /// Makes a connection, or fails to start one. With early data the handshake may still be in
    /// progress.
    pub(crate) async fn make(&self) -> Result<Live<'a>, Failed> {
        let name = self.client.name(&self.name, self.server);
        let began = Instant::now();
        let connection = self.connect(name.as_str()).await?;
        Ok(Live::new(self.phase, connection, began, name))
    }

    /// Returns the server name that tells the kind of connection.
    pub(crate) fn base_name(&self) -> &str {
        &self.name
    }

    /// Makes the state that the scripts of a connection share.
    pub(crate) fn session(&self, attempt: &Rc<Attempt<'a>>, live: &Live<'_>) -> Session<'a> {
        let connection = Rc::clone(&live.connection);
        let session = Session::new(
            connection,
            &self.kind.client,
            &self.kind.server,
            Rc::clone(attempt) as _,
        );
        session.await_streams(opens(&self.kind.server_ops));
        session
    }

    /// Runs a script on a new connection: after the handshake, or with early data from the start.
    pub(crate) async fn first(
        &self,
        (attempt, live): (&Attempt<'_>, &Live<'_>),
        session: &Session<'_>,
        script: impl Future<Output = Result<(), Failed>>,
    ) -> Result<(), Failed> {
        let established = async {
            let negotiated = live.connection.established().await?;
            live.is_established();
            attempt.established(&negotiated);
            match mismatch(&self.client.spec.setup.cell, &negotiated) {
                Some(failed) => Err(failed),
                None => Ok(()),
            }
        };
        if self.client.sends_early() {
            tokio::try_join!(established, beside(session, script)).map(|_| ())
        } else {
            established.await?;
            beside(session, script).await
        }
    }

    /// Closes a successful connection.
    pub(crate) async fn close(&self, attempt: &Attempt<'_>, live: &Live<'_>) {
        if self.client.resumes() {
            // The server sends tickets once it has seen the end of the handshake. With early data
            // its first bytes may come before.
            if self.client.sends_early() || !attempt.has_first_byte() {
                clock::until(live.is_seen_at().unwrap_or_else(Instant::now)).await;
            }
            await_ticket(&*live.connection).await;
        }
        live.connection.close(0);
        let _ = timeout(CLOSING, live.connection.closed()).await;
    }
}

/// Runs a script, and answers the peer's streams meanwhile.
pub(crate) async fn beside(
    session: &Session<'_>,
    script: impl Future<Output = Result<(), Failed>>,
) -> Result<(), Failed> {
    tokio::pin!(script);
    tokio::select! {
        biased;
        outcome = &mut script => return outcome,
        outcome = session.serve(|outcome| outcome) => outcome?,
    }
    script.await
}

/// Waits for the ticket that the next connection needs, before this one is closed.
pub(crate) async fn await_ticket(connection: &dyn Connection) {
    let end = Instant::now() + PATIENCE;
    let mut pause = Duration::from_micros(100);
    while !connection.has_ticket() && Instant::now() < end {
        sleep(pause).await;
        pause = (2 * pause).min(LOOK);
    }
}
