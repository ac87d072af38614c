//! `netbench scenarios`: lists the scenarios that are built in, and writes them to files.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::io::Write as _;
use std::path::Path;
use std::process::ExitCode;

use super::bundled::bundled;
use crate::scenario::Template;
use crate::scenario::problem::unknown_name;
use crate::scenario::units::quantity::parse_number;
use crate::system::failure::Failure;
use crate::system::terminal;

/// Lists the scenarios that are built in, or writes them to files.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// Folder to write into, names of scenarios (default: all), and their parameters as
    /// `--SCENARIO.PARAMETER VALUE`. Without any: lists them.
    #[arg(
        value_name = "OUT [NAME]... [--SCENARIO.PARAMETER VALUE]",
        trailing_var_arg = true,
        allow_hyphen_values = true
    )]
    words: Vec<String>,
}

const EXAMPLES: &str = "\
Example, the scenario of ten thousand connections with a byte each way:
  netbench scenarios out --request_response.connections 10000
      --request_response.request_size 1 --request_response.response_size 1";

/// Files to write.
#[derive(Debug, Default, PartialEq, Eq)]
struct Order {
    folder: String,
    /// Names of the scenarios; empty for all.
    names: Vec<String>,
    /// Parameters that are set, by scenario.
    set: BTreeMap<String, BTreeMap<String, u64>>,
}

/// Runs the command.
pub(crate) fn run(args: &Args) -> Result<ExitCode, Failure> {
    if args.words.is_empty() {
        let list = list()?;
        terminal::print(|out| out.write_all(list.as_bytes()))?;
        return Ok(ExitCode::SUCCESS);
    }
    let order = order(&args.words)?;
    let written = write(&order)?;
    terminal::print(|out| written.iter().try_for_each(|path| writeln!(out, "{path}")))?;
    Ok(ExitCode::SUCCESS)
}

fn list() -> Result<String, Failure> {
    let mut text = String::new();
    for name in bundled() {
        let template = Template::load(name)?;
        writeln!(text, "{name}: {}", template.description())?;
        let width = template.params().iter().map(|param| param.name.len()).max();
        for param in template.params() {
            let default = param.default.to_string();
            let width = width.unwrap_or_default();
            writeln!(
                text,
                "  {:width$}  {default:>12}  {}",
                param.name, param.help
            )?;
        }
        text.push('\n');
    }
    text.push_str("`netbench scenarios OUT` writes them to files; docs/scenarios.md says how to write others.\n");
    Ok(text)
}

fn order(words: &[String]) -> Result<Order, Failure> {
    let mut order = Order::default();
    let mut words = words.iter();
    while let Some(word) = words.next() {
        let Some(flag) = word.strip_prefix("--") else {
            if order.folder.is_empty() {
                order.folder.clone_from(word);
            } else {
                order.names.push(scenario(word)?);
            }
            continue;
        };
        let (key, value) = match flag.split_once('=') {
            Some((key, value)) => (key, value),
            None => match words.next() {
                Some(value) => (flag, value.as_str()),
                None => return Err(format!("--{flag} needs a value").into()),
            },
        };
        let Some((name, param)) = key.split_once('.') else {
            return Err(format!(
                "unknown option --{key}; parameters are set as --request_response.connections 1000"
            )
            .into());
        };
        let value = parse_number(value).map_err(|problem| format!("--{key}: {problem}"))?;
        let params = order.set.entry(scenario(name)?).or_default();
        params.insert(param.replace('-', "_"), value);
    }
    if order.folder.is_empty() {
        return Err("say which folder to write into: netbench scenarios OUT …".into());
    }
    Ok(order)
}

/// Returns the name of a bundled scenario, with dashes or underscores.
fn scenario(word: &str) -> Result<String, Failure> {
    let name = word.replace('_', "-");
    let names: Vec<&str> = bundled().collect();
    if names.contains(&name.as_str()) {
        return Ok(name);
    }
    Err(unknown_name("scenario", word, &names).into())
}

fn write(order: &Order) -> Result<Vec<String>, Failure> {
    let unset = BTreeMap::new();
    let names = || {
        bundled().filter(|name| {
            order.names.is_empty()
                || order.names.iter().any(|asked| asked == name)
                || order.set.contains_key(*name)
        })
    };
    // All is checked before anything is written.
    let files = names()
        .map(|name| {
            let set = order.set.get(name).unwrap_or(&unset);
            let text = Template::load(name)?.with_defaults(set)?;
            Ok((format!("{}.json", name.replace('-', "_")), text))
        })
        .collect::<Result<Vec<_>, Failure>>()?;
    let folder = Path::new(&order.folder);
    fs::create_dir_all(folder)
        .map_err(|error| format!("cannot make the folder {}: {error}", folder.display()))?;
    files
        .into_iter()
        .map(|(file, text)| {
            let path = folder.join(file);
            fs::write(&path, text)
                .map_err(|error| format!("cannot write {}: {error}", path.display()))?;
            Ok(path.display().to_string())
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<String> {
        text.split(' ').map(str::to_owned).collect()
    }

    fn refusal(text: &str) -> String {
        order(&words(text))
            .and_then(|order| write(&order))
            .unwrap_err()
            .to_string()
    }

    #[test]
    fn parameters_are_set_with_either_spelling() {
        let one = "out --request_response.connections 10000 --request_response.request_size 1";
        let other = "out --request-response.connections=10000 --request-response.request-size=1B";
        let order = order(&words(one)).unwrap();
        assert_eq!(order.folder, "out");
        assert_eq!(order.set["request-response"]["connections"], 10_000);
        assert_eq!(super::order(&words(other)).unwrap(), order);
    }

    #[test]
    fn what_is_unknown_is_told_with_what_there_is() {
        let unknown = refusal("/nowhere/x --connect.conections 5");
        assert!(unknown.contains("did you mean `connections`?"), "{unknown}");
        assert!(refusal("out --conect.connections 5").contains("did you mean `connect`?"));
        assert!(refusal("out pong").contains("did you mean `ping`?"));
        assert!(refusal("out --connections 5").contains("unknown option --connections"));
        assert!(refusal("out --connect.connections").contains("needs a value"));
        assert!(refusal("out --connect.connections lots").contains("expected a whole number"));
        assert!(refusal("--connect.connections 5").contains("which folder"));
    }

    #[test]
    fn files_say_what_was_asked_for() {
        let folder =
            std::env::temp_dir().join(format!("netbench-scenarios-{}", std::process::id()));
        let out = folder.display();
        let text = format!("{out} connect --request_response.connections 10000");
        let written = write(&order(&words(&text)).unwrap()).unwrap();
        assert_eq!(written.len(), 2, "{written:?}");
        let path = folder.join("request_response.json");
        let template = Template::load(path.to_str().unwrap()).unwrap();
        let scenario = template.resolve(&BTreeMap::new()).unwrap();
        assert_eq!(scenario.params["connections"], 10_000);
        // The result is still a scenario with parameters.
        let set = BTreeMap::from([("connections".to_owned(), 5)]);
        assert_eq!(template.resolve(&set).unwrap().params["connections"], 5);
        let all = write(&order(&words(&out.to_string())).unwrap()).unwrap();
        for path in &all {
            let template = Template::load(path).unwrap();
            let scenario = template.resolve(&BTreeMap::new()).unwrap();
            for cell in scenario.axes.cells(&scenario.params) {
                template.resolve(&cell.params).unwrap();
            }
        }
        fs::remove_dir_all(&folder).unwrap();
        assert_eq!(all.len(), bundled().count());
    }

    #[test]
    fn the_list_has_every_scenario_and_parameter() {
        let list = list().unwrap();
        for name in bundled() {
            assert!(list.contains(&format!("{name}: ")), "{list}");
        }
        assert!(list.contains("as payload"), "{list}");
    }
}
