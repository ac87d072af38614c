//! `netbench server`: an agent as a program.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::process::ExitCode;
use std::time::Duration;

use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};

use super::control::address::{PORT, Reach, Target};
use super::control::options::Options;
use super::control::token::Token;
use super::member;
use crate::scenario::Template;
use crate::system::failure::Failure;
use crate::system::machine::Machine;
use crate::system::terminal::{complain, print};

/// Runs servers for clients on other hosts. `netbench run --server HOST:PORT` and `netbench client`
/// talk to its control port (TCP), and it starts a server process for each repetition.
#[derive(clap::Args, Clone, Debug)]
pub(crate) struct ServerArgs {
    /// The control port. Default: 127.0.0.1 and the port of the environment variable PORT, or 4433.
    #[arg(long, value_name = "HOST:PORT")]
    pub(crate) listen: Option<Target>,

    /// The UDP or TCP port that is measured, for firewalls; by default a free one each time.
    #[arg(long, value_name = "PORT", default_value_t = 0)]
    pub(crate) data_port: u16,

    /// A secret that clients must know. It does not hide what is measured.
    #[arg(
        long,
        value_name = "TEXT",
        env = "NETBENCH_TOKEN",
        hide_env_values = true
    )]
    pub(crate) token: Option<Token>,

    /// Lets anybody in who can reach the port.
    #[arg(long, conflicts_with = "token")]
    pub(crate) no_token: bool,

    /// Clients that share a server process and begin together.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub(crate) fleet: u32,

    /// Seconds that the first client of a fleet waits for the last.
    #[arg(long, value_name = "SECONDS", default_value_t = 60, value_parser = clap::value_parser!(u64).range(1..=86_400))]
    pub(crate) fleet_wait: u64,

    /// Clients at the same time.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub(crate) sessions: Option<u32>,

    /// Seconds of silence after which a client is given up. Clients say every 5 that they are there.
    #[arg(long, value_name = "SECONDS", default_value_t = 30, value_parser = clap::value_parser!(u64).range(6..=86_400))]
    pub(crate) silence: u64,

    /// Serves this scenario alone: a file, or the name of one that is built in.
    #[arg(long, value_name = "FILE", env = "SCENARIO")]
    pub(crate) scenario: Option<String>,

    /// Which of the scenario's servers this is, where it has several.
    #[arg(long, value_name = "N", env = "SERVER_ID")]
    pub(crate) server_id: Option<usize>,

    #[arg(long, hide = true, env = "PORT")]
    pub(crate) port: Option<u16>,
}

/// Serves until a signal comes.
pub(crate) async fn serve(args: ServerArgs) -> Result<ExitCode, Failure> {
    let options = args.options()?;
    let listener = args.bind().await?;
    let address = listener.local_addr()?;
    args.check_reach(address)?;
    let (mut interrupt, mut terminate) = (
        signal(SignalKind::interrupt())?,
        signal(SignalKind::terminate())?,
    );
    print(|out| {
        use std::io::Write as _;
        writeln!(out, "listening on {address}")
    })?;
    tokio::select! {
        () = member::serve(listener, options) => {}
        _ = interrupt.recv() => {}
        _ = terminate.recv() => {}
    }
    Ok(ExitCode::SUCCESS)
}

impl ServerArgs {
    fn options(&self) -> Result<Options, Failure> {
        let fleet = self.fleet as usize;
        let sessions = self.sessions.map_or(fleet.max(16), |most| most as usize);
        if sessions < fleet {
            return Err(format!(
                "a fleet of {fleet} does not fit into --sessions {sessions}: give at least {fleet}"
            )
            .into());
        }
        Ok(Options {
            token: self.token.clone(),
            data_port: self.data_port,
            sessions,
            fleet: self.fleet,
            wait: Duration::from_secs(self.fleet_wait),
            silence: Duration::from_secs(self.silence),
            scenario_id: self.scenario_id()?,
            server_id: self.server_id,
            machine: Machine::detect(),
        })
    }

    fn scenario_id(&self) -> Result<Option<String>, Failure> {
        let Some(scenario) = &self.scenario else {
            return Ok(None);
        };
        let scenario = Template::load(scenario)?.resolve(&BTreeMap::new())?;
        Ok(Some(scenario.id()))
    }

    async fn bind(&self) -> Result<TcpListener, Failure> {
        let addresses = match &self.listen {
            Some(target) => target.resolve().await?,
            None => vec![SocketAddr::from((
                [127, 0, 0, 1],
                self.port.unwrap_or(PORT),
            ))],
        };
        for address in &addresses {
            self.check_reach(*address)?;
        }
        TcpListener::bind(&*addresses).await.map_err(|error| {
            let addresses: Vec<_> = addresses.iter().map(SocketAddr::to_string).collect();
            format!("cannot listen on {}: {error}", addresses.join(", ")).into()
        })
    }

    /// Refuses an address that strangers can reach without a token: they could start processes.
    fn check_reach(&self, address: SocketAddr) -> Result<(), Failure> {
        if self.token.is_some() || self.no_token {
            return Ok(());
        }
        match Reach::of(address.ip()) {
            Reach::ThisHost => Ok(()),
            Reach::OwnNetwork => {
                complain(&format!(
                    "everybody on the network of {address} can start servers here; --token keeps \
                     others out"
                ));
                Ok(())
            }
            Reach::Anybody => Err(format!(
                "anybody could start servers at {address}: give a secret with --token or \
                 NETBENCH_TOKEN, or let them with --no-token"
            )
            .into()),
        }
    }
}
