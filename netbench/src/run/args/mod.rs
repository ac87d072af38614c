//! Command line of `netbench run`, made from the scenario, so that its help shows the scenario's
//! flags.

pub(super) mod axis_flags;

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::path::PathBuf;

use clap::error::ErrorKind;
use clap::{Arg, ArgAction, ArgMatches, Args, Command, FromArgMatches};

use self::axis_flags::AXES;
use super::{Place, Request, matrix};
use crate::drivers::Transport;
use crate::report::outputs::Outputs;
use crate::run::distributed::PeerArgs;
use crate::scenario::Template;
use crate::scenario::axes::Axes;
use crate::system::failure::Failure;

/// Flags of every scenario.
#[derive(Args)]
#[command(next_help_heading = "Run")]
struct Common {
    /// Number of repetitions of each cell; results are their medians.
    #[arg(long, visible_alias = "repeat", default_value_t = 5, value_name = "N",
          value_parser = clap::value_parser!(u32).range(1..=1000))]
    repetitions: u32,

    /// Number of times that cells are measured again if other work on this machine disturbed them:
    /// processes that used 15 % of a core or more meanwhile.
    #[arg(long, default_value_t = 2, value_name = "N",
          value_parser = clap::value_parser!(u32).range(0..=100))]
    retries: u32,

    /// Number of client processes for each client of the scenario, which do the same at the same
    /// time. Each has a core of its own while cores are left.
    #[arg(long, default_value_t = 1, value_name = "N",
          value_parser = clap::value_parser!(u32).range(1..=256))]
    clients: u32,

    /// Address on which servers listen; port 0 takes a free one.
    #[arg(long, default_value = "127.0.0.1:0", value_name = "ADDRESS")]
    listen: SocketAddr,

    /// Bytes of the UDP payloads after the handshake, both ends: 1200 to 65507, the most that UDP
    /// over IPv4 carries. Default: the stack's.
    #[arg(long, value_name = "BYTES", value_parser = clap::value_parser!(u16).range(1200..=65507))]
    datagram_size: Option<u16>,

    /// Also writes all results to this file as JSON, for `netbench compare` and others.
    /// The file is rewritten after each repetition.
    #[arg(long, value_name = "PATH", help_heading = "Output")]
    json: Option<PathBuf>,

    /// Also writes the figures to this file as CSV.
    #[arg(long, value_name = "PATH", help_heading = "Output")]
    csv: Option<PathBuf>,

    /// Also writes a report with charts to this file.
    #[arg(long, value_name = "PATH", help_heading = "Output")]
    html: Option<PathBuf>,

    /// Also writes each chart to this folder as SVG, and built with the feature `png` as PNG too.
    #[arg(long, value_name = "FOLDER", help_heading = "Output")]
    charts: Option<PathBuf>,

    /// Prints all results as one line of JSON instead of the table.
    #[arg(long, help_heading = "Output")]
    print_json: bool,

    #[command(flatten)]
    peers: PeerArgs,
}

const ABOUT_VALUES: &str = "\
Several values, separated by commas, are measured side by side; several flags with several values
make a matrix. Sizes may be written 64KiB, times 10ms.";

pub(crate) fn refuse(failure: Failure) -> clap::Error {
    clap::Error::raw(ErrorKind::ValueValidation, failure)
}

/// Returns the command for one scenario, with a flag for each of its parameters.
pub(crate) fn command_for(name: &str, template: &Template) -> Command {
    let mut command = Command::new(name.to_owned());
    command = template.params().iter().fold(command, |command, param| {
        let help = format!("{} [default: {}]", capitalized(&param.help), param.default);
        let mut names = spellings(&param.name);
        if is_taken(&param.name) {
            names.clear();
        }
        for scenario in spellings(template.name()) {
            names.extend(
                spellings(&param.name)
                    .iter()
                    .map(|name| format!("{scenario}.{name}")),
            );
        }
        if param.name == "requests" {
            names.push("reuse".to_owned());
        }
        command.arg(flag(param_id(&param.name), names, "N", help).help_heading("Parameters"))
    });
    command = AXES.iter().fold(command, |command, axis| {
        let mut names = spellings(axis.axis);
        names.extend(axis.aliases.iter().map(|&alias| alias.to_owned()));
        let arg = flag(
            axis.axis.to_owned(),
            names,
            axis.value,
            axis.help.to_owned(),
        );
        command.arg(arg.help_heading("Axes"))
    });
    Common::augment_args(command)
        .about(template.description().to_owned())
        .after_help(ABOUT_VALUES)
}

/// Returns the spellings with dashes and with underscores. The first is shown.
fn spellings(name: &str) -> Vec<String> {
    let dashes = name.replace('_', "-");
    let underscores = name.replace('-', "_");
    if dashes == underscores {
        vec![dashes]
    } else {
        vec![dashes, underscores]
    }
}

/// Returns true if another flag has this name, so that the scenario's is only `--SCENARIO.NAME`.
fn is_taken(param: &str) -> bool {
    let common = Common::augment_args(Command::new("common"));
    let mut names = common.get_arguments().filter_map(Arg::get_long);
    let dashed = param.replace('_', "-");
    names.any(|name| name == dashed)
        || ["help", "version"].contains(&dashed.as_str())
        || AXES
            .iter()
            .any(|axis| axis.axis == param || axis.aliases.contains(&param))
}

fn flag(id: String, names: Vec<String>, value: &'static str, help: String) -> Arg {
    let mut names = names.into_iter();
    let long = names.next().unwrap_or_default();
    Arg::new(id)
        .long(long)
        .aliases(names)
        .value_name(value)
        .help(help)
        .action(ArgAction::Append)
        .allow_hyphen_values(true)
}

fn param_id(name: &str) -> String {
    format!("parameter {name}")
}

fn capitalized(text: &str) -> String {
    let mut chars = text.chars();
    match chars.next() {
        Some(first) => first.to_uppercase().chain(chars).collect(),
        None => String::new(),
    }
}

/// Checks that the scenario makes sense with the values of the command line, so that a 0 is refused
/// like any other wrong value.
fn check_values(template: &Template, axes: &Axes) -> Result<(), Failure> {
    if axes.size() > matrix::MOST_CELLS {
        return Ok(());
    }
    let cells = axes.cells(&BTreeMap::new());
    cells
        .iter()
        .try_for_each(|cell| template.resolve(&cell.params).map(drop))
}

/// Returns the request that the arguments of a scenario make.
pub(crate) fn request(template: Template, matches: &ArgMatches) -> Result<Request, clap::Error> {
    let common = Common::from_arg_matches(matches)?;
    let mut axes = Axes::default();
    let mut named = BTreeSet::new();
    let params = template.params().iter();
    let params: Vec<_> = params
        .map(|param| (param_id(&param.name), param.name.clone()))
        .collect();
    let flags = AXES
        .iter()
        .map(|flag| (flag.axis.to_owned(), flag.axis.to_owned()));
    for (id, axis) in flags.chain(params) {
        let Some(values) = matches.get_many::<String>(&id) else {
            continue;
        };
        let values: Vec<String> = values.cloned().collect();
        // The words of a link may contain commas, and each has its own flag.
        let set = if axis == "link" {
            axes.set_values(&axis, &values)
        } else {
            axes.set(&axis, &values.join(","))
        };
        set.map_err(refuse)?;
        if !values
            .iter()
            .any(|value| value.to_ascii_lowercase().contains("all"))
        {
            named.insert(axis);
        }
    }
    check_values(&template, &axes).map_err(refuse)?;
    let place = match common.peers.agents(&template).map_err(refuse)? {
        Some(agents) => Place::Agents(agents),
        None => Place::Here(common.listen),
    };
    Ok(Request {
        template,
        axes,
        named,
        repetitions: common.repetitions,
        time: None,
        retries: common.retries,
        gives_up: false,
        clients: common.clients,
        place,
        transport: Transport {
            datagram_size: common.datagram_size,
            ..Transport::default()
        },
        outputs: Outputs {
            json: common.json,
            csv: common.csv,
            html: common.html,
            charts: common.charts,
            print_json: common.print_json,
        },
    })
}
