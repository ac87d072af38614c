//! Axes from text: of the command line, or of a file.

use std::fmt;

use serde::de::{self, Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};

use super::{ALL, Axes, Certificate, Resumption};
use crate::Failure;

/// The axes beside the parameters of a scenario, as they are called in files. On the command line
/// a dash may stand for `_`.
pub const NAMES: [&str; 11] = [
    "driver",
    "client",
    "provider",
    "group",
    "hello_retry",
    "certificate",
    "chain",
    "suite",
    "resumption",
    "client_auth",
    "link",
];

const PROVIDERS: [&str; 2] = ["rustls", "s2n-tls"];

const SUITES: [&str; 3] = [
    "TLS_AES_128_GCM_SHA256",
    "TLS_AES_256_GCM_SHA384",
    "TLS_CHACHA20_POLY1305_SHA256",
];

/// A leaf and nine that sign each other: more than any hierarchy in use.
const MAX_CHAIN: u8 = 10;

impl Axes {
    /// Sets an axis, or a parameter of the scenario, to the values of a text: `X25519,MLKEM768`,
    /// `all`, `yes,no`, `1,8,64`, `1KiB`. Values that are named twice are kept once.
    pub fn set(&mut self, axis: &str, text: &str) -> Result<(), Failure> {
        let values: Vec<String> = text
            .split(',')
            .map(|value| value.trim().to_owned())
            .collect();
        self.set_values(axis, &values)
    }

    /// The same, with each value a text of its own.
    pub fn set_values(&mut self, axis: &str, values: &[String]) -> Result<(), Failure> {
        let axis = axis.replace('-', "_");
        match axis.as_str() {
            "driver" => self.driver = each(values, |text| word("driver", text))?,
            "client" => self.client = each(values, |text| word("client", text))?,
            "provider" => self.provider = texts(named(values, "provider", &PROVIDERS)?),
            "group" => self.group = groups(values)?,
            "hello_retry" => self.hello_retry = each(values, |text| flag("hello_retry", text))?,
            "certificate" => self.certificate = named(values, "certificate", &Certificate::ALL)?,
            "chain" => self.chain = each(values, chain)?,
            "suite" => self.suite = texts(named(values, "suite", &SUITES)?),
            "resumption" => self.resumption = named(values, "resumption", &Resumption::ALL)?,
            "client_auth" => self.client_auth = each(values, |text| flag("client_auth", text))?,
            "link" => self.link = each(values, |text| Ok(link(text)))?,
            param => {
                let numbers = each(values, |text| {
                    crate::scenario::parse_number(text)
                        .map_err(|problem| format!("{param}: {problem}").into())
                })?;
                self.params.insert(param.to_owned(), numbers);
            }
        }
        Ok(())
    }
}

/// Reads each value, and keeps the first of equals.
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

/// Reads values that are of a list, or `all` of them.
fn named<T: Copy + PartialEq + fmt::Display>(
    values: &[String],
    axis: &str,
    all: &[T],
) -> Result<Vec<T>, Failure> {
    let mut kept = Vec::new();
    for text in values {
        let asked = |value: &T| {
            text.eq_ignore_ascii_case(ALL) || value.to_string().eq_ignore_ascii_case(text)
        };
        if !all.iter().any(asked) {
            let valid: Vec<String> = all.iter().map(ToString::to_string).collect();
            let valid = valid.join(", ");
            return Err(format!("unknown {axis} '{text}'; valid: all, {valid}").into());
        }
        for value in all.iter().copied().filter(asked) {
            if !kept.contains(&value) {
                kept.push(value);
            }
        }
    }
    Ok(kept)
}

fn texts(names: Vec<&str>) -> Vec<String> {
    names.into_iter().map(str::to_owned).collect()
}

/// Groups by name; `all` stays, so that what a stack has not can be left out.
fn groups(values: &[String]) -> Result<Vec<String>, Failure> {
    if values.iter().any(|text| text.eq_ignore_ascii_case(ALL)) {
        each(values, |text| {
            if text.eq_ignore_ascii_case(ALL) {
                Ok(ALL.to_owned())
            } else {
                group(text)
            }
        })?;
        return Ok(vec![ALL.to_owned()]);
    }
    each(values, group)
}

fn group(text: &str) -> Result<String, Failure> {
    hybriq::Group::from_name(text)
        .filter(|group| hybriq::Group::ALL.contains(group))
        .map(|group| group.to_string())
        .ok_or_else(|| {
            let valid = hybriq::Group::ALL.map(|group| group.to_string()).join(", ");
            format!("unknown group '{text}'; valid: all, {valid}").into()
        })
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

fn word(axis: &str, text: &str) -> Result<String, Failure> {
    if text.is_empty() {
        return Err(format!("{axis}: expected a name (`netbench drivers` lists them)").into());
    }
    Ok(text.to_ascii_lowercase())
}

fn link(text: &str) -> String {
    match text.trim() {
        "none" => String::new(),
        link => link.to_owned(),
    }
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

/// The values of an axis in a file.
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
