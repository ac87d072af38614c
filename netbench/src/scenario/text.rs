//! How times, sizes and rates stand in a file: a number in the base unit, or text with a unit.

use std::time::Duration;

use serde::{Deserialize, Deserializer, Serializer, de};

use super::model::Bytes;
use crate::cli::size as parse_size;

#[derive(Deserialize)]
#[serde(untagged)]
enum Form {
    Number(f64),
    Text(String),
}

/// Milliseconds, or text as `"500us"`, `"10ms"`, `"5s"`, `"2m"`.
pub(super) fn parse_time(text: &str) -> Result<Duration, String> {
    const UNITS: [(&str, f64); 5] = [
        ("us", 1e-6),
        ("µs", 1e-6),
        ("ms", 1e-3),
        ("s", 1.0),
        ("m", 60.0),
    ];
    UNITS
        .iter()
        .find_map(|(unit, seconds)| {
            let count: f64 = text.strip_suffix(unit)?.trim().parse().ok()?;
            Duration::try_from_secs_f64(count * seconds).ok()
        })
        .ok_or_else(|| format!("expected a time, as \"10ms\" or \"5s\", not \"{text}\""))
}

fn time_of(form: Form) -> Result<Duration, String> {
    match form {
        Form::Number(millis) => {
            Duration::try_from_secs_f64(millis / 1e3).map_err(|_| "expected a time".to_owned())
        }
        Form::Text(text) => parse_time(&text),
    }
}

fn size_of(form: Form) -> Result<u64, String> {
    match form {
        Form::Number(count) if count >= 0.0 && count.fract() == 0.0 && count < 9e15 => {
            Ok(count as u64)
        }
        Form::Number(count) => Err(format!("expected a whole number of bytes, not {count}")),
        Form::Text(text) => parse_size(&text),
    }
}

fn rate_of(form: Form) -> Result<f64, String> {
    let rate = match form {
        Form::Number(rate) => Some(rate),
        Form::Text(ref text) => text
            .strip_suffix("/s")
            .and_then(|count| count.trim().parse().ok()),
    };
    rate.filter(|rate| rate.is_finite() && *rate > 0.0)
        .ok_or_else(|| "expected a rate, as \"500/s\"".to_owned())
}

/// [`Duration`] as text.
pub(super) mod time {
    use super::{Deserialize, Deserializer, Duration, Form, Serializer, de, time_of};

    pub(crate) fn serialize<S: Serializer>(time: &Duration, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_f64(time.as_secs_f64() * 1e3)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Duration, D::Error> {
        time_of(Form::deserialize(from)?).map_err(de::Error::custom)
    }
}

/// [`Option<Duration>`] as text.
pub(super) mod optional_time {
    use super::{Deserialize, Deserializer, Duration, Form, Serializer, de, time_of};

    pub(crate) fn serialize<S: Serializer>(
        time: &Option<Duration>,
        to: S,
    ) -> Result<S::Ok, S::Error> {
        match time {
            Some(time) => to.serialize_some(&(time.as_secs_f64() * 1e3)),
            None => to.serialize_none(),
        }
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(
        from: D,
    ) -> Result<Option<Duration>, D::Error> {
        Option::<Form>::deserialize(from)?
            .map(time_of)
            .transpose()
            .map_err(de::Error::custom)
    }
}

/// Bytes, as a number or as text.
pub(super) mod size {
    use super::{Deserialize, Deserializer, Form, Serializer, de, size_of};

    #[expect(
        clippy::trivially_copy_pass_by_ref,
        reason = "serde asks for a reference"
    )]
    pub(crate) fn serialize<S: Serializer>(bytes: &u64, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_u64(*bytes)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<u64, D::Error> {
        size_of(Form::deserialize(from)?).map_err(de::Error::custom)
    }
}

/// A rate per second, as a number or as text.
pub(super) mod optional_rate {
    use super::{Deserialize, Deserializer, Form, Serializer, de, rate_of};

    pub(crate) fn serialize<S: Serializer>(rate: &Option<f64>, to: S) -> Result<S::Ok, S::Error> {
        match rate {
            Some(rate) => to.serialize_some(rate),
            None => to.serialize_none(),
        }
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Option<f64>, D::Error> {
        Option::<Form>::deserialize(from)?
            .map(rate_of)
            .transpose()
            .map_err(de::Error::custom)
    }
}

/// A count, or `"unlimited"`, or `null`.
pub(super) fn count_or_unlimited<'de, D: Deserializer<'de>>(
    from: D,
) -> Result<Option<u64>, D::Error> {
    match Option::<Form>::deserialize(from)? {
        None => Ok(None),
        Some(Form::Text(text)) if text == "unlimited" => Ok(None),
        Some(form) => size_of(form).map(Some).map_err(de::Error::custom),
    }
}

/// The two forms of [`Bytes`].
#[derive(Deserialize)]
#[serde(untagged)]
pub(super) enum BytesForm {
    Alone(#[serde(with = "size")] u64),
    Of {
        #[serde(default)]
        stream: u64,
        #[serde(with = "size")]
        bytes: u64,
    },
}

impl From<BytesForm> for Bytes {
    fn from(form: BytesForm) -> Self {
        match form {
            BytesForm::Alone(bytes) => Self { stream: 0, bytes },
            BytesForm::Of { stream, bytes } => Self { stream, bytes },
        }
    }
}
