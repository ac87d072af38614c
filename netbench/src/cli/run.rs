//! Commands of `netbench run`: the scenarios, and what is made of several.

use clap::{ArgMatches, Args as _, Command, FromArgMatches, Subcommand};

use crate::experiments::peers;
use crate::handshake;
use crate::run::Request;
use crate::run::args::{command_for, refuse, request};
use crate::scenario::{Template, bundled};

/// A command of `netbench run`.
pub(crate) enum Run {
    Scenario(Box<Request>),
    HandshakeBreakdown(Box<handshake::Args>),
    Peers(Box<peers::Args>),
}

impl Subcommand for Run {
    fn augment_subcommands(command: Command) -> Command {
        let scenarios = bundled()
            .filter(|name| *name != "handshake-breakdown")
            .filter_map(|name| Template::load(name).ok());
        let command = scenarios.fold(command, |command, template| {
            command.subcommand(command_for(template.name(), &template))
        });
        let handshakes = handshake::Args::augment_args(Command::new("handshake-breakdown"))
            .about("Where a handshake's time goes: each TLS message and operation, in one process");
        let peers = peers::Args::augment_args(Command::new("peers"))
            .about("Ours next to all other stacks: one table with goals, and one chart");
        command
            .subcommand(handshakes)
            .subcommand(peers)
            .subcommand_required(true)
            .arg_required_else_help(true)
            .allow_external_subcommands(true)
            .subcommand_value_name("SCENARIO")
            .subcommand_help_heading("Scenarios")
            .after_help(
                "SCENARIO may also be the path of a JSON file (`netbench scenarios` has the \
                 format). `netbench run SCENARIO --help` shows what it takes.",
            )
    }

    fn augment_subcommands_for_update(command: Command) -> Command {
        Self::augment_subcommands(command)
    }

    fn has_subcommand(name: &str) -> bool {
        name == "peers" || bundled().any(|bundled| bundled == name)
    }
}

impl FromArgMatches for Run {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        match matches.subcommand() {
            Some(("peers", own)) => Ok(Self::Peers(Box::new(peers::Args::from_arg_matches(own)?))),
            Some(("handshake-breakdown", own)) => {
                let args = handshake::Args::from_arg_matches(own)?;
                Ok(Self::HandshakeBreakdown(Box::new(args)))
            }
            Some((scenario, own)) => {
                let template = Template::load(scenario).map_err(refuse)?;
                if has_subcommand_of_its_own(scenario) {
                    return request(template, own).map(Self::scenario);
                }
                // The path of a file, whose flags are only known now.
                let words = own.get_many::<std::ffi::OsString>("");
                let usage = format!("netbench run {scenario}");
                let matches = command_for(&usage, &template)
                    .bin_name(usage)
                    .no_binary_name(true)
                    .try_get_matches_from(words.into_iter().flatten())?;
                request(template, &matches).map(Self::scenario)
            }
            None => Err(refuse(
                "name a scenario, for example `netbench run connect`".into(),
            )),
        }
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

fn has_subcommand_of_its_own(name: &str) -> bool {
    <Run as Subcommand>::has_subcommand(name)
}

impl Run {
    fn scenario(request: Request) -> Self {
        Self::Scenario(Box::new(request))
    }
}
