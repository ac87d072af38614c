//! Values that have one fixed name on the command line, in files and in tables.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;

use hybriq::tls::Suite;
use hybriq::{Backend, Group, Profile};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serializer, de};

use super::{Certificate, Resumption, Stack};

/// A value with a fixed name, which [`fmt::Display`] writes.
pub(crate) trait Named: Copy + PartialEq + fmt::Display + 'static {
    /// Noun for such a value in error messages.
    const NOUN: &'static str;

    /// Every value, in the order in which help texts list them.
    const ALL: &'static [Self];

    /// Returns the value with this name; case is ignored.
    ///
    /// # Errors
    ///
    /// A line with the names that are valid.
    fn from_text(text: &str) -> Result<Self, String> {
        let mut all = Self::ALL.iter().copied();
        all.find(|value| value.to_string().eq_ignore_ascii_case(text))
            .ok_or_else(|| format!("unknown {} '{text}'; valid: {}", Self::NOUN, list::<Self>()))
    }
}

/// Returns the names of all values, separated by commas.
pub(super) fn list<T: Named>() -> String {
    let names: Vec<String> = T::ALL.iter().map(ToString::to_string).collect();
    names.join(", ")
}

impl Named for Group {
    const NOUN: &'static str = "group";
    const ALL: &'static [Self] = &Self::ALL;
}

impl Named for Suite {
    const NOUN: &'static str = "suite";
    const ALL: &'static [Self] = &[
        Self::Aes128GcmSha256,
        Self::Aes256GcmSha384,
        Self::ChaCha20Poly1305Sha256,
    ];
}

impl Named for Backend {
    const NOUN: &'static str = "provider";
    const ALL: &'static [Self] = &Self::ALL;
}

impl Named for Certificate {
    const NOUN: &'static str = "certificate";
    const ALL: &'static [Self] = &Self::ALL;
}

impl Named for Resumption {
    const NOUN: &'static str = "resumption";
    const ALL: &'static [Self] = &Self::ALL;
}

impl Named for Stack {
    const NOUN: &'static str = "stack";
    const ALL: &'static [Self] = &Self::ALL;
}

impl Named for Profile {
    const NOUN: &'static str = "profile";
    const ALL: &'static [Self] = &Self::ALL;
}

/// Writes the name of a value, if there is one.
#[expect(clippy::ref_option, reason = "serde calls it so")]
pub(super) fn serialize_optional<T: Named, S: Serializer>(
    value: &Option<T>,
    to: S,
) -> Result<S::Ok, S::Error> {
    match value {
        Some(value) => to.collect_str(value),
        None => to.serialize_none(),
    }
}

/// Writes a value as its name (`#[serde(with = "named")]`).
pub(crate) fn serialize<T: Named, S: Serializer>(value: &T, to: S) -> Result<S::Ok, S::Error> {
    to.collect_str(value)
}

/// Reads a value from its name.
pub(crate) fn deserialize<'de, T: Named, D: Deserializer<'de>>(from: D) -> Result<T, D::Error> {
    let name = String::deserialize(from)?;
    T::from_text(&name).map_err(de::Error::custom)
}

/// Writes a list of values as their names (`#[serde(serialize_with = "named::serialize_list")]`).
pub(super) fn serialize_list<T: Named, S: Serializer>(
    values: &[T],
    to: S,
) -> Result<S::Ok, S::Error> {
    to.collect_seq(values.iter().map(ToString::to_string))
}

/// Schema of a value that is written as its name (`#[schemars(with = "Name<T>")]`).
pub(crate) struct Name<T>(PhantomData<T>);

impl<T: Named> JsonSchema for Name<T> {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        T::NOUN.into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let names: Vec<String> = T::ALL.iter().map(ToString::to_string).collect();
        json_schema!({ "enum": names })
    }
}
