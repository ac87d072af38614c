//! Reads axes from the text of the command line or of a file.

use std::borrow::Cow;
use std::fmt;

use hybriq::tls::Suite;
use hybriq::{Backend, Group, Profile};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{self, Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};

use serde_json::json;

use super::named::{self, Named};
use super::{Axes, Certificate, Resumption, Stack, link};
use crate::system::failure::Failure;

/// Names of the axes in files, without the parameters of a scenario. On the command line a dash may
/// stand for `_`.
pub(crate) const NAMES: [&str; 14] = [
    "driver",
    "client",
    "provider",
    "group",
    "hello_retry",
    "certificate",
    "chain",
    "workers",
    "suite",
    "resumption",
    "client_auth",
    "congestion",
    "link",
    "profile",
];

/// Text that stands for all values.
const ALL: &str = "all";

/// Maximum length of a chain: a leaf and nine issuers, more than any hierarchy in use.
const MAX_CHAIN: u8 = 10;

/// Maximum number of workers.
const MAX_WORKERS: u8 = 128;

impl Axes {
    /// Sets an axis, or a parameter of the scenario, from a text: `X25519,MLKEM768`, `all`,
    /// `yes,no`, `1,8,64`, `1KiB`. Drops repeated values.
    pub(crate) fn set(&mut self, axis: &str, text: &str) -> Result<(), Failure> {
        let values: Vec<String> = text
            .split(',')
            .map(|value| value.trim().to_owned())
            .collect();
        self.set_values(axis, &values)
    }

    /// Sets an axis, or a parameter of the scenario, from one text for each value.
    pub(crate) fn set_values(&mut self, axis: &str, values: &[String]) -> Result<(), Failure> {
        let axis = axis.replace('-', "_");
        match axis.as_str() {
            "driver" => self.driver = stacks(values)?,
            "client" => self.client = stacks(values)?,
            "provider" => self.provider = named(values)?,
            "group" => self.group = named(values)?,
            "hello_retry" => self.hello_retry = each(values, |text| flag("hello_retry", text))?,
            "certificate" => self.certificate = named(values)?,
            "chain" => self.chain = each(values, chain)?,
            "workers" => self.workers = each(values, workers)?,
            "suite" => self.suite = named(values)?,
            "resumption" => self.resumption = named(values)?,
            "client_auth" => self.client_auth = each(values, |text| flag("client_auth", text))?,
            "congestion" => self.congestion = each(values, |text| Ok(congestion(text)))?,
            "link" => {
                let links = values.iter().map(|text| link::read(text));
                let links = links.collect::<Result<Vec<_>, _>>()?.concat();
                self.link = each(&links, |text| Ok(text.to_owned()))?;
            }
            "profile" => self.profile = Some(profile(values)?),
            param => {
                let numbers = each(values, |text| {
                    crate::scenario::units::quantity::parse_number(text)
                        .map_err(|problem| format!("{param}: {problem}").into())
                })?;
                self.params.insert(param.to_owned(), numbers);
            }
        }
        Ok(())
    }
}

/// Reads each value and drops repeated ones.
fn each<T: PartialEq>(
    values: &[String],
    read: impl Fn(&str) -> Result<T, Failure>,
) -> Result<Vec<T>, Failure> {
    values.iter().try_fold(Vec::new(), |mut kept, text| {
        let value = read(text)?;
        if !kept.contains(&value) {
            kept.push(value);
        }
        Ok(kept)
    })
}

/// Reads values by name; `all` stands for all of them.
fn named<T: Named>(values: &[String]) -> Result<Vec<T>, Failure> {
    from_names(values, || T::ALL.to_vec())
}

/// Reads stacks by name; `all` stands for those that are built in.
fn stacks(values: &[String]) -> Result<Vec<Stack>, Failure> {
    from_names(values, || Stack::built_in().collect())
}

fn from_names<T: Named>(values: &[String], all: impl Fn() -> Vec<T>) -> Result<Vec<T>, Failure> {
    let mut kept = Vec::new();
    for text in values {
        let mut found = if text.eq_ignore_ascii_case(ALL) {
            all()
        } else {
            vec![T::from_text(text).map_err(|_| unknown::<T>(text))?]
        };
        found.retain(|value| !kept.contains(value));
        kept.append(&mut found);
    }
    Ok(kept)
}

fn unknown<T: Named>(text: &str) -> Failure {
    let valid = named::list::<T>();
    format!("unknown {} '{text}'; valid: {ALL}, {valid}", T::NOUN).into()
}

fn flag(axis: &str, text: &str) -> Result<bool, Failure> {
    match text.to_ascii_lowercase().as_str() {
        "yes" | "true" | "on" => Ok(true),
        "no" | "false" | "off" => Ok(false),
        _ => Err(format!("{axis}: expected yes or no, not '{text}'").into()),
    }
}

fn chain(text: &str) -> Result<u8, Failure> {
    text.parse()
        .ok()
        .filter(|length| (1..=MAX_CHAIN).contains(length))
        .ok_or_else(|| {
            format!("chain: expected 1 (the leaf alone) to {MAX_CHAIN} certificates, not '{text}'")
                .into()
        })
}

fn workers(text: &str) -> Result<u8, Failure> {
    text.parse()
        .ok()
        .filter(|workers| (1..=MAX_WORKERS).contains(workers))
        .ok_or_else(|| {
            format!("workers: expected a number from 1 to {MAX_WORKERS}, not '{text}'").into()
        })
}

/// Reads the only profile of a run.
fn profile(values: &[String]) -> Result<Profile, Failure> {
    match values {
        [name] => Profile::from_text(name).map_err(Failure::from),
        _ => Err("profile: name one; several are several runs".into()),
    }
}

fn congestion(text: &str) -> String {
    match text.trim() {
        "default" => String::new(),
        name => name.to_owned(),
    }
}

impl JsonSchema for Axes {
    fn schema_name() -> Cow<'static, str> {
        "Axes".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let text = json!({
            "type": "string",
            "description": "Values separated by commas, as on the command line.",
        });
        let named = |description: &str, names: Vec<String>| {
            let values = json!({"type": "array", "items": {"enum": names}});
            json!({"description": description, "anyOf": [text, values]})
        };
        let value = json!({
            "anyOf": [{"type": ["string", "boolean"]}, {"type": "integer", "minimum": 0}],
        });
        let values = |description: &str| {
            let list = json!({"type": "array", "items": value});
            json!({"description": description, "anyOf": [value, list]})
        };
        json_schema!({
            "description": "Values that are varied; every combination is measured. Other keys are \
                            parameters.",
            "type": "object",
            "properties": {
                "driver": named("Stacks.", names::<Stack>()),
                "client": named("Stacks of the client, where it is not the server's.", names::<Stack>()),
                "provider": named("TLS providers of the server.", names::<Backend>()),
                "group": named("Key-exchange groups by IANA name.", names::<Group>()),
                "hello_retry": values("Whether the client first sends a share of another group."),
                "certificate": named("Kinds of the server's certificate.", names::<Certificate>()),
                "chain": values("Numbers of certificates that the server sends."),
                "workers": values("Numbers of the server's workers."),
                "suite": named("Cipher suites by IANA name.", names::<Suite>()),
                "resumption": named("Beginnings of connections.", names::<Resumption>()),
                "client_auth": values("Whether the client shows a certificate."),
                "congestion": values("Congestion controllers by name, or `default`."),
                "link": values("Links, by name or as the arguments of `netbench link`."),
                "profile": {
                    "description": "Rules of an authority, which narrow the others.",
                    "enum": Profile::ALL.map(Profile::name),
                },
            },
            "additionalProperties": values("Values of a parameter."),
        })
    }
}

/// Returns the names of all values, and the one that stands for all.
fn names<T: Named>() -> Vec<String> {
    let names = T::ALL.iter().map(ToString::to_string);
    std::iter::once(ALL.to_owned()).chain(names).collect()
}

impl<'de> Deserialize<'de> for Axes {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_map(Reader)
    }
}

struct Reader;

impl<'de> Visitor<'de> for Reader {
    type Value = Axes;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("axes by name, as {\"group\": \"all\", \"concurrency\": [1, 8]}")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Axes, A::Error> {
        let mut axes = Axes::default();
        while let Some(axis) = map.next_key::<String>()? {
            let set = match map.next_value()? {
                Values::Text(text) if axis == "link" => axes.set_values(&axis, &[text]),
                Values::Text(text) => axes.set(&axis, &text),
                Values::List(list) if list.is_empty() => Ok(()),
                Values::List(list) => axes.set_values(&axis, &list),
            };
            set.map_err(de::Error::custom)?;
        }
        Ok(axes)
    }
}

/// Values of an axis in a file.
enum Values {
    Text(String),
    List(Vec<String>),
}

impl<'de> Deserialize<'de> for Values {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_any(ValuesReader)
    }
}

struct ValuesReader;

impl<'de> Visitor<'de> for ValuesReader {
    type Value = Values;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value of the axis, or a list of values")
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Values, E> {
        Ok(Values::Text(text.to_owned()))
    }

    fn visit_bool<E: de::Error>(self, flag: bool) -> Result<Values, E> {
        Ok(Values::Text(flag.to_string()))
    }

    fn visit_u64<E: de::Error>(self, number: u64) -> Result<Values, E> {
        Ok(Values::Text(number.to_string()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Values, A::Error> {
        let mut values = Vec::new();
        while let Some(value) = list.next_element()? {
            match value {
                Values::Text(text) => values.push(text),
                Values::List(_) => return Err(de::Error::custom("a list within a list of values")),
            }
        }
        Ok(Values::List(values))
    }
}
