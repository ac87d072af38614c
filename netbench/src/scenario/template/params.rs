//! Parameters: named numbers of a scenario that are set when it is run.

use std::collections::BTreeMap;
use std::fmt;

use serde_json::{Map, Value};

use crate::scenario::units::quantity::parse_number;

/// A number that the user may set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Param {
    /// Its name; a scenario refers to it as `"$name"`.
    pub(crate) name: String,
    /// Value unless it is set.
    pub(crate) default: Default,
    /// Purpose, in a sentence.
    pub(crate) help: String,
}

/// Value of a parameter that is not set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Default {
    /// A number.
    Number(u64),
    /// The value of another parameter.
    Same(String),
    /// None: the key that refers to it is left out.
    Unset,
}

impl fmt::Display for Default {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(number) => write!(f, "{number}"),
            Self::Same(name) => write!(f, "as {name}"),
            Self::Unset => f.write_str("unset"),
        }
    }
}

/// Reads the `params` of a file: `{"name": 1}` or `{"name": {"default": 1, "help": "…"}}`.
pub(crate) fn read(declared: &Map<String, Value>) -> Result<Vec<Param>, String> {
    declared
        .iter()
        .map(|(name, value)| {
            param(name, value).map_err(|problem| format!("params.{name}: {problem}"))
        })
        .collect()
}

fn param(name: &str, value: &Value) -> Result<Param, String> {
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
    if name.is_empty() || !name.chars().all(is_name) {
        return Err("a parameter's name is letters, digits and _".to_owned());
    }
    let (default, help) = match value {
        Value::Object(fields) => {
            if let Some(key) = (fields.keys()).find(|key| *key != "default" && *key != "help") {
                return Err(format!("unknown key `{key}`; valid: default, help"));
            }
            let help = match fields.get("help") {
                None => "",
                Some(Value::String(help)) => help,
                Some(_) => return Err("`help` is text".to_owned()),
            };
            (fields.get("default").unwrap_or(&Value::Null), help)
        }
        value => (value, ""),
    };
    Ok(Param {
        name: name.to_owned(),
        default: default_of(default)?,
        help: help.to_owned(),
    })
}

fn default_of(value: &Value) -> Result<Default, String> {
    match value {
        Value::Null => Ok(Default::Unset),
        Value::Number(number) => (number.as_u64())
            .map(Default::Number)
            .ok_or_else(|| format!("expected a whole number, not {number}")),
        Value::String(text) => match text.strip_prefix('$') {
            Some(other) => Ok(Default::Same(other.to_owned())),
            None => parse_number(text).map(Default::Number),
        },
        _ => Err("expected a number, \"$another\", or {\"default\": …, \"help\": …}".to_owned()),
    }
}

/// Values of parameters; a parameter that is unset has none.
pub(crate) struct Values<'a> {
    params: &'a [Param],
    set: &'a BTreeMap<String, u64>,
}

impl<'a> Values<'a> {
    pub(crate) fn new(params: &'a [Param], set: &'a BTreeMap<String, u64>) -> Self {
        Self { params, set }
    }

    /// Returns the value of a parameter, following defaults that name another.
    pub(crate) fn of(&self, name: &str) -> Result<Option<u64>, String> {
        let mut name = name;
        // More steps than there are parameters mean a circle.
        for _ in 0..=self.params.len() {
            if let Some(value) = self.set.get(name) {
                return Ok(Some(*value));
            }
            let Some(param) = self.params.iter().find(|param| param.name == name) else {
                return Err(format!("unknown parameter \"${name}\"; {}", self.valid()));
            };
            match &param.default {
                Default::Number(number) => return Ok(Some(*number)),
                Default::Unset => return Ok(None),
                Default::Same(other) => name = other,
            }
        }
        Err(format!("the default of \"${name}\" comes back to itself"))
    }

    pub(crate) fn all(&self) -> Result<BTreeMap<String, u64>, String> {
        let mut all = BTreeMap::new();
        for param in self.params {
            if let Some(value) = self.of(&param.name)? {
                all.insert(param.name.clone(), value);
            }
        }
        Ok(all)
    }

    fn valid(&self) -> String {
        match self.params {
            [] => "`params` declares none".to_owned(),
            params => {
                let names: Vec<&str> = params.iter().map(|param| param.name.as_str()).collect();
                format!("`params` declares {}", names.join(", "))
            }
        }
    }

    /// Replaces every `"$name"` by its value, and `"$name ms"` by text with the value. `path` is
    /// the place of the value, for messages.
    pub(crate) fn replace(&self, value: &mut Value, path: &str) -> Result<(), String> {
        match value {
            Value::String(text) => {
                if let Some(named) = text.strip_prefix('$') {
                    *value =
                        (self.value_of(named)).map_err(|problem| format!("{path}: {problem}"))?;
                }
                Ok(())
            }
            Value::Array(items) => (items.iter_mut().enumerate())
                .try_for_each(|(index, item)| self.replace(item, &format!("{path}[{index}]"))),
            Value::Object(fields) => fields.iter_mut().try_for_each(|(key, field)| {
                let separator = if path.is_empty() { "" } else { "." };
                self.replace(field, &format!("{path}{separator}{key}"))
            }),
            _ => Ok(()),
        }
    }

    fn value_of(&self, named: &str) -> Result<Value, String> {
        let (name, unit) = split(named);
        Ok(match self.of(name)? {
            None => Value::Null,
            Some(value) if unit.is_empty() => value.into(),
            Some(value) => format!("{value}{unit}").into(),
        })
    }
}

/// Splits the text after a `$` into name and unit.
fn split(named: &str) -> (&str, &str) {
    let end = named
        .find(|c: char| !c.is_ascii_alphanumeric() && c != '_')
        .unwrap_or(named.len());
    named.split_at(end)
}

/// Returns true if a value refers to a parameter.
pub(crate) fn refers(value: &Value, name: &str) -> bool {
    match value {
        Value::String(text) => text
            .strip_prefix('$')
            .is_some_and(|named| split(named).0 == name),
        Value::Array(items) => items.iter().any(|item| refers(item, name)),
        Value::Object(fields) => fields.values().any(|field| refers(field, name)),
        _ => false,
    }
}
