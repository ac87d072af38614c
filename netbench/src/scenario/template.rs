//! A scenario before its parameters are set.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use serde_json::{Map, Value};

use super::params::{self, Param, Values};
use super::{Scenario, bundled, problem};
use crate::Failure;
use crate::axes::{self, Axes};

/// A scenario before its parameters are set: one that is built in, or a file.
///
/// ```
/// use std::collections::BTreeMap;
/// use hybriq_netbench::scenario::Template;
///
/// let template = Template::load("request-response")?;
/// let set = BTreeMap::from([("connections".to_owned(), 10_000)]);
/// let scenario = template.resolve(&set)?;
/// assert_eq!(scenario.params["connections"], 10_000);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Template {
    /// What messages call it: its name, or the path of its file.
    origin: String,
    document: Map<String, Value>,
    params: Vec<Param>,
}

impl Template {
    /// Loads a scenario that is built in by its name, or a file by its path.
    pub fn load(name_or_path: &str) -> Result<Self, Failure> {
        if let Some(text) = bundled::text(name_or_path) {
            return Self::parse(name_or_path, text);
        }
        let path = Path::new(name_or_path);
        let is_path = path.extension().is_some() || path.components().count() > 1;
        if !is_path && !path.exists() {
            let names: Vec<&str> = bundled::bundled().collect();
            let unknown = problem::unknown_name("scenario", name_or_path, &names);
            return Err(format!("{unknown}, or the path of a file").into());
        }
        let text = fs::read_to_string(path)
            .map_err(|error| format!("cannot read the scenario {name_or_path}: {error}"))?;
        Self::parse(name_or_path, &text)
    }

    /// Reads the text of a scenario; `origin` is what messages call it.
    pub fn parse(origin: &str, text: &str) -> Result<Self, Failure> {
        Self::read(text)
            .and_then(|document| {
                let params = match document.get("params") {
                    None => Vec::new(),
                    Some(Value::Object(declared)) => params::read(declared)?,
                    Some(_) => return Err("params: expected parameters by name".to_owned()),
                };
                Ok(Self {
                    origin: origin.to_owned(),
                    document,
                    params,
                })
            })
            .map_err(|problem| format!("{origin}: {problem}").into())
    }

    fn read(text: &str) -> Result<Map<String, Value>, String> {
        let value: Value = serde_json::from_str(text).map_err(|error| problem::syntax(&error))?;
        let Value::Object(document) = value else {
            return Err("expected a scenario, {\"netbench\": 1, …}".to_owned());
        };
        match document.get("netbench").map(Value::as_u64) {
            Some(Some(version)) if version == u64::from(super::FORMAT) => Ok(document),
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

    /// Its name.
    pub fn name(&self) -> &str {
        self.text("name").unwrap_or(&self.origin)
    }

    /// What it measures, in a sentence.
    pub fn description(&self) -> &str {
        self.text("description").unwrap_or_default()
    }

    fn text(&self, key: &str) -> Option<&str> {
        self.document.get(key).and_then(Value::as_str)
    }

    /// The parameters that may be set, by name.
    pub fn params(&self) -> &[Param] {
        &self.params
    }

    /// The scenario with these parameters set, and the others as their defaults say.
    pub fn resolve(&self, set: &BTreeMap<String, u64>) -> Result<Scenario, Failure> {
        self.check_names("parameter", set.keys(), &[])?;
        let scenario = self
            .typed(set)
            .map_err(|problem| format!("{}: {problem}", self.origin))?;
        self.check_names(
            "axis or parameter",
            scenario.axes.params.keys(),
            &axes::NAMES,
        )?;
        scenario
            .validate()
            .map_err(|problem| format!("{}: {problem}", self.origin))?;
        Ok(scenario)
    }

    /// Refuses names that are neither parameters nor of a list.
    pub fn check_axes(&self, axes: &Axes) -> Result<(), Failure> {
        self.check_names("axis or parameter", axes.params.keys(), &axes::NAMES)
    }

    fn check_names<'a>(
        &self,
        noun: &str,
        names: impl Iterator<Item = &'a String>,
        others: &[&str],
    ) -> Result<(), Failure> {
        let valid: Vec<&str> = (others.iter().copied())
            .chain(self.params.iter().map(|param| param.name.as_str()))
            .collect();
        for name in names {
            if !self.params.iter().any(|param| param.name == *name) {
                let unknown = problem::unknown_name(noun, name, &valid);
                return Err(format!("{}: {unknown}", self.origin).into());
            }
        }
        Ok(())
    }

    fn typed(&self, set: &BTreeMap<String, u64>) -> Result<Scenario, String> {
        let values = Values::new(&self.params, set);
        let mut document = self.document.clone();
        document.remove("params");
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

/// Operations that may stand as their name alone: `"finish"` for `{"finish": {}}`.
const BARE: [&str; 5] = ["open_bidi", "open_uni", "finish", "reset", "receive_all"];

/// Spells out the operations that stand as their name alone.
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

/// An open loop has no use for a bound of one connection, which closed loops have by default.
fn bound_open_loop(connect: &mut Map<String, Value>) {
    let is_set = |key| connect.get(key).is_some_and(|value| !value.is_null());
    if is_set("concurrency") {
        return;
    }
    let bound = if is_set("rate") { MAX_OPEN_LOOP } else { 1 };
    connect.insert("concurrency".to_owned(), bound.into());
}

/// How many connections an open loop may have under way unless it is said otherwise: as many as
/// one address has ports for, less what others use.
const MAX_OPEN_LOOP: u32 = 10_000;
