//! A scenario before its parameters are set.

pub(super) mod bundled;
pub(crate) mod listing;
pub(super) mod params;

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::path::Path;
use std::time::Duration;

use serde_json::{Map, Value};

use self::params::{Param, Values};
use super::model::schema::BARE;
use super::problem::locate::locate;
use super::{Scenario, problem, seed};
use crate::scenario::axes;
use crate::scenario::axes::Axes;
use crate::system::failure::Failure;

/// A scenario before its parameters are set: one that is built in, or a file.
#[derive(Clone, Debug)]
pub(crate) struct Template {
    /// Name in messages: its own, or the path of its file.
    origin: String,
    /// Text of the user's file, to locate problems in it; empty for a scenario that is built in.
    text: String,
    document: Map<String, Value>,
    params: Vec<Param>,
}

impl Template {
    /// Loads a scenario that is built in by its name, or a file by its path.
    pub(crate) fn load(name_or_path: &str) -> Result<Self, Failure> {
        if let Some(text) = bundled::text(name_or_path) {
            return Ok(Self {
                text: String::new(),
                ..Self::parse(name_or_path, text)?
            });
        }
        let path = Path::new(name_or_path);
        let is_path = path.extension().is_some() || path.components().count() > 1;
        if !is_path && !path.exists() {
            let names: Vec<&str> = bundled::bundled().collect();
            let unknown = problem::unknown_name("scenario", name_or_path, &names);
            return Err(format!("{unknown}, links, peers, or the path of a file").into());
        }
        let text = fs::read_to_string(path)
            .map_err(|error| format!("cannot read the scenario {name_or_path}: {error}"))?;
        Self::parse(name_or_path, &text)
    }

    /// Reads the text of a scenario, also of s2n-netbench's; `origin` names it in messages.
    pub(crate) fn parse(origin: &str, text: &str) -> Result<Self, Failure> {
        Self::read(origin, text)
            .and_then(|(document, is_seed)| {
                let params = match document.get("params") {
                    None => Vec::new(),
                    Some(Value::Object(declared)) => params::read(declared)?,
                    Some(_) => return Err("params: expected parameters by name".to_owned()),
                };
                Ok(Self {
                    origin: origin.to_owned(),
                    text: if is_seed {
                        String::new()
                    } else {
                        text.to_owned()
                    },
                    document,
                    params,
                })
            })
            .map_err(|problem| refusal(origin, text, &problem))
    }

    /// Returns the document, and true if it was one of s2n-netbench's.
    fn read(origin: &str, text: &str) -> Result<(Map<String, Value>, bool), String> {
        let value: Value = serde_json::from_str(text).map_err(|error| problem::syntax(&error))?;
        let Value::Object(document) = value else {
            return Err("expected a scenario, {\"netbench\": 1, …}".to_owned());
        };
        if seed::is_seed(&document) {
            let name = Path::new(origin).file_stem().and_then(OsStr::to_str);
            let scenario = seed::read(name.unwrap_or("scenario"), document)?;
            return Ok((spelled_out(&scenario)?, true));
        }
        match document.get("netbench").map(Value::as_u64) {
            Some(Some(version)) if version == u64::from(super::FORMAT) => Ok((document, false)),
            Some(_) => Err(format!(
                "netbench: this netbench reads format {}",
                super::FORMAT
            )),
            None => Err(format!(
                "no scenario: the key `netbench` with the format, {}, is missing",
                super::FORMAT
            )),
        }
    }

    /// Returns its name.
    pub(crate) fn name(&self) -> &str {
        self.text("name").unwrap_or(&self.origin)
    }

    /// Returns its purpose, in a sentence.
    pub(crate) fn description(&self) -> &str {
        self.text("description").unwrap_or_default()
    }

    fn text(&self, key: &str) -> Option<&str> {
        self.document.get(key).and_then(Value::as_str)
    }

    /// Returns the parameters that may be set.
    pub(crate) fn params(&self) -> &[Param] {
        &self.params
    }

    /// Returns the scenario with these parameters set, and the others at their defaults.
    pub(crate) fn resolve(&self, set: &BTreeMap<String, u64>) -> Result<Scenario, Failure> {
        self.check_names("parameter", set.keys(), &[])?;
        if let Some(name) = set.keys().find(|name| !self.uses(name)) {
            return Err(format!(
                "{}: the parameter `{name}` is already in the numbers of this file; nothing refers \
                 to \"${name}\"",
                self.origin
            )
            .into());
        }
        let scenario =
            (self.typed(set)).map_err(|problem| refusal(&self.origin, &self.text, &problem))?;
        self.check_names(
            "axis or parameter",
            scenario.axes.params.keys(),
            &axes::NAMES,
        )?;
        scenario
            .validate()
            .map_err(|problem| refusal(&self.origin, &self.text, &problem.to_string()))?;
        Ok(scenario)
    }

    /// Returns the text of a file whose parameters have these defaults.
    pub(super) fn with_defaults(&self, set: &BTreeMap<String, u64>) -> Result<String, Failure> {
        self.resolve(set)?;
        let mut document = self.document.clone();
        if let Some(Value::Object(params)) = document.get_mut("params") {
            for (name, value) in set {
                match params.get_mut(name) {
                    Some(Value::Object(param)) => {
                        param.insert("default".to_owned(), (*value).into());
                    }
                    Some(param) => *param = (*value).into(),
                    None => {}
                }
            }
        }
        Ok(serde_json::to_string_pretty(&document)? + "\n")
    }

    /// Returns the scenario with a measurement that ends after this time, unless its scripts end
    /// before.
    #[must_use]
    pub(crate) fn ending_after(mut self, time: Duration) -> Self {
        let phases = self.document.entry("phases");
        if let Value::Object(phases) = phases.or_insert_with(|| Map::new().into()) {
            let time = format!("{}ms", time.as_millis().max(1));
            phases.insert("measure".to_owned(), time.into());
        }
        self
    }

    /// Refuses names that are neither parameters nor axes.
    pub(crate) fn check_axes(&self, axes: &Axes) -> Result<(), Failure> {
        self.check_names("axis or parameter", axes.params.keys(), &axes::NAMES)
    }

    fn check_names<'a>(
        &self,
        noun: &str,
        names: impl Iterator<Item = &'a String>,
        others: &[&str],
    ) -> Result<(), Failure> {
        // The order of the file is known in builds with some features only.
        let mut params: Vec<&str> = self
            .params
            .iter()
            .map(|param| param.name.as_str())
            .collect();
        params.sort_unstable();
        let valid = [others, &params].concat();
        for name in names {
            if !self.params.iter().any(|param| param.name == *name) {
                let unknown = problem::unknown_name(noun, name, &valid);
                return Err(refusal(&self.origin, &self.text, &unknown));
            }
        }
        Ok(())
    }

    /// Returns true if anything, also another default, refers to a parameter.
    fn uses(&self, name: &str) -> bool {
        (self.document.iter()).any(|(key, value)| {
            key != "name" && key != "description" && params::refers(value, name)
        })
    }

    fn typed(&self, set: &BTreeMap<String, u64>) -> Result<Scenario, String> {
        let values = Values::new(&self.params, set);
        let mut document = self.document.clone();
        document.remove("params");
        document.remove("$schema");
        for (key, value) in &mut document {
            if key != "name" && key != "description" {
                values.replace(value, key)?;
            }
            if key == "clients" {
                spell_out(value);
            }
        }
        let mut scenario: Scenario = problem::typed(Value::Object(document))?;
        scenario.params = values.all()?;
        Ok(scenario)
    }
}

/// Returns the problem with its line in the text, if it begins with a path.
fn refusal(origin: &str, text: &str, problem: &str) -> Failure {
    let path = problem.split(": ").next().unwrap_or_default();
    let place = locate(text, path).map_or(String::new(), |(line, column)| {
        format!("line {line}, column {column}: ")
    });
    problem::one_line(&format!("{origin}: {place}{problem}")).into()
}

fn spelled_out(scenario: &Scenario) -> Result<Map<String, Value>, String> {
    match serde_json::to_value(scenario) {
        Ok(Value::Object(document)) => Ok(document),
        Ok(_) => Err("no scenario".to_owned()),
        Err(error) => Err(error.to_string()),
    }
}

/// Spells out operations that are written as their name alone.
fn spell_out(value: &mut Value) {
    match value {
        Value::Array(items) => {
            for item in items {
                match item {
                    Value::String(name) if BARE.contains(&name.as_str()) => {
                        let name = std::mem::take(name);
                        *item = Value::Object(Map::from_iter([(name, Value::Object(Map::new()))]));
                    }
                    item => spell_out(item),
                }
            }
        }
        Value::Object(fields) => {
            if let Some(Value::Object(connect)) = fields.get_mut("connect") {
                bound_open_loop(connect);
            }
            fields.values_mut().for_each(spell_out);
        }
        _ => {}
    }
}

/// Removes the default bound of one connection from an open loop.
fn bound_open_loop(connect: &mut Map<String, Value>) {
    let is_set = |key| connect.get(key).is_some_and(|value| !value.is_null());
    if is_set("concurrency") {
        return;
    }
    let bound = if is_set("rate") { MAX_OPEN_LOOP } else { 1 };
    connect.insert("concurrency".to_owned(), bound.into());
}

/// Default maximum number of concurrent connections in an open loop: the ports of one address, less
/// those that others use.
pub(crate) const MAX_OPEN_LOOP: u32 = 10_000;
