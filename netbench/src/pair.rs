//! A server and a client process that measure one group together.

use crate::Failure;
use crate::groups::Plan;
use crate::message::{ClientSpec, FromClient, FromServer, ServerSpec, ToClient, ToServer};
use crate::process::Process;
use crate::report::Row;

/// How many connections a round makes.
#[derive(Clone, Copy)]
pub(crate) struct Round {
    pub(crate) warm_up: u64,
    pub(crate) connections: u64,
}

/// Both processes, between rounds asleep. Dropping it ends them.
pub(crate) struct Pair {
    pub(crate) plan: Plan,
    server: Process,
    client: Process,
    /// Connections of the rounds so far, failed ones included.
    attempts: u64,
}

impl Pair {
    /// Starts both. `client_spec` is made from the address the server listens on.
    pub(crate) async fn start(
        plan: Plan,
        server_spec: &ServerSpec,
        client_spec: impl FnOnce(std::net::SocketAddr) -> ClientSpec,
    ) -> Result<Self, Failure> {
        let mut server = Process::start("serve", server_spec).await?;
        let FromServer::Listening(address) = server.hear().await? else {
            return Err(server.out_of_turn());
        };
        let client = Process::start("drive", &client_spec(address)).await?;
        Ok(Self {
            plan,
            server,
            client,
            attempts: 0,
        })
    }

    /// Makes the connections of one round. The row is of all rounds so far.
    pub(crate) async fn round(
        &mut self,
        round: Round,
        mut progress: impl FnMut(u64),
    ) -> Result<Row, Failure> {
        let warm_up = ToClient::WarmUp {
            connections: round.warm_up,
        };
        self.client.tell(&warm_up).await?;
        let FromClient::Ready = self.hear_client(|_| {}).await? else {
            return Err(self.client.out_of_turn());
        };
        self.server
            .tell(&ToServer::Measure {
                after: round.warm_up,
            })
            .await?;
        let FromServer::Measuring = self.server.hear().await? else {
            return Err(self.server.out_of_turn());
        };
        let measure = ToClient::Measure {
            connections: round.connections,
        };
        progress(0);
        self.client.tell(&measure).await?;
        let FromClient::Report(client) = self.hear_client(&mut progress).await? else {
            return Err(self.client.out_of_turn());
        };
        let after = client.completed + client.failed - self.attempts;
        self.attempts += after;
        self.server.tell(&ToServer::Pause { after }).await?;
        let FromServer::Report(server) = self.server.hear().await? else {
            return Err(self.server.out_of_turn());
        };
        Ok(Row::new(&self.plan, server, *client))
    }

    /// Waits for what the client says beside its progress, and for the end of a server, which
    /// speaks unasked only of its failure.
    async fn hear_client(&mut self, mut progress: impl FnMut(u64)) -> Result<FromClient, Failure> {
        loop {
            let message = tokio::select! {
                message = self.client.hear() => message?,
                unasked = self.server.hear::<FromServer>() => {
                    unasked?;
                    return Err(self.server.out_of_turn());
                }
            };
            match message {
                FromClient::Progress(done) => progress(done),
                other => return Ok(other),
            }
        }
    }
}
