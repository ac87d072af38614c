//! `netbench client`: a run against servers on other hosts, configured by its environment.

use std::ffi::OsString;

use clap::{FromArgMatches as _, Subcommand as _};

use super::run::Run;
use crate::run::{Place, Request};
use crate::system::failure::Failure;

/// Runs a scenario against the servers SERVER_0, SERVER_1, … of the environment, which
/// `netbench server` offers.
#[derive(clap::Args, Clone, Debug)]
pub(crate) struct ClientArgs {
    /// Scenario to run: a file, or the name of a built-in one.
    #[arg(
        long,
        value_name = "FILE",
        env = "SCENARIO",
        default_value = "request-response"
    )]
    scenario: OsString,

    /// Flags of `netbench run`, as `netbench run SCENARIO --help` shows them.
    #[arg(
        trailing_var_arg = true,
        allow_hyphen_values = true,
        value_name = "FLAGS"
    )]
    flags: Vec<OsString>,
}

impl ClientArgs {
    /// Returns the request that `netbench run` would run.
    pub(crate) fn request(self) -> Result<Box<Request>, ClientError> {
        let command = Run::augment_subcommands(clap::Command::new("netbench client"));
        let words = ["netbench client".into(), self.scenario];
        let words = words.into_iter().chain(self.flags);
        let matches = command.try_get_matches_from(words)?;
        match Run::from_arg_matches(&matches)? {
            Run::Scenario(request) if matches!(request.place, Place::Agents(_)) => Ok(request),
            Run::Scenario(_) => Err(ClientError::Refused(
                "no server is given: set SERVER_0=HOST:PORT to where `netbench server` listens, \
                 or give --server"
                    .into(),
            )),
            Run::Peers(_) => Err(ClientError::Refused(
                "`peers` runs on one host: `netbench run peers`".into(),
            )),
            Run::HandshakeBreakdown(_) => Err(ClientError::Refused(
                "this runs in one process: `netbench run handshake-breakdown`".into(),
            )),
        }
    }
}

/// Reason why there is nothing to run.
pub(crate) enum ClientError {
    /// The flags are wrong, or help was requested.
    Usage(clap::Error),
    Refused(Failure),
}

impl From<clap::Error> for ClientError {
    fn from(error: clap::Error) -> Self {
        Self::Usage(error)
    }
}
