//! Times, sizes and rates in a file: a number in the base unit, or text with a unit.

use std::fmt;
use std::time::Duration;

use serde::de::{self, Deserializer, Visitor};

use crate::scenario::units::quantity::{LARGEST, TIME, parse_time, time_of_seconds};

pub(crate) const SIZE: &str = "a number of bytes, such as 1000 or \"64KiB\"";
const RATE: &str = "a rate per second above 0, such as 500 or \"500/s\"";
const COUNT: &str = "a whole number";

/// A quantity as a file has it.
pub(crate) enum Form {
    Nothing,
    Number(f64),
    Text(String),
}

impl Form {
    fn read<'de, D: Deserializer<'de>>(from: D, expected: &'static str) -> Result<Self, D::Error> {
        from.deserialize_any(Quantity(expected))
    }

    fn time(self) -> Result<Option<Duration>, String> {
        match self {
            Self::Nothing => Ok(None),
            Self::Number(millis) => time_of_seconds(millis / 1e3)
                .map(Some)
                .ok_or_else(|| format!("expected {TIME}, not {millis}")),
            Self::Text(text) => parse_time(&text).map(Some),
        }
    }

    pub(crate) fn size(self) -> Result<Option<u64>, String> {
        match self {
            Self::Text(text) => crate::scenario::units::size(&text)
                .ok()
                .filter(|bytes| *bytes <= LARGEST)
                .map(Some)
                .ok_or_else(|| format!("expected {SIZE}, not \"{text}\"")),
            form => form.whole(SIZE),
        }
    }

    fn count(self) -> Result<Option<u64>, String> {
        match self {
            Self::Text(text) if text == "unlimited" => Ok(None),
            form => form.whole(COUNT),
        }
    }

    fn whole(self, expected: &str) -> Result<Option<u64>, String> {
        match self {
            Self::Nothing => Ok(None),
            Self::Number(count)
                if count >= 0.0 && count.fract() == 0.0 && count <= LARGEST as f64 =>
            {
                Ok(Some(count as u64))
            }
            Self::Number(count) => Err(format!("expected {expected}, not {count}")),
            Self::Text(text) => Err(format!("expected {expected}, not \"{text}\"")),
        }
    }

    fn rate(self) -> Result<Option<f64>, String> {
        let (rate, shown) = match self {
            Self::Nothing => return Ok(None),
            Self::Number(rate) => (Some(rate), rate.to_string()),
            Self::Text(text) => (
                text.strip_suffix("/s")
                    .and_then(|count| count.trim().parse().ok()),
                format!("\"{text}\""),
            ),
        };
        rate.filter(|rate: &f64| rate.is_finite() && *rate > 0.0)
            .map(Some)
            .ok_or_else(|| format!("expected {RATE}, not {shown}"))
    }
}

struct Quantity(&'static str);

impl Visitor<'_> for Quantity {
    type Value = Form;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }

    fn visit_unit<E: de::Error>(self) -> Result<Form, E> {
        Ok(Form::Nothing)
    }

    fn visit_none<E: de::Error>(self) -> Result<Form, E> {
        Ok(Form::Nothing)
    }

    fn visit_u64<E: de::Error>(self, number: u64) -> Result<Form, E> {
        Ok(Form::Number(number as f64))
    }

    fn visit_i64<E: de::Error>(self, number: i64) -> Result<Form, E> {
        Ok(Form::Number(number as f64))
    }

    fn visit_f64<E: de::Error>(self, number: f64) -> Result<Form, E> {
        Ok(Form::Number(number))
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Form, E> {
        Ok(Form::Text(text.to_owned()))
    }
}

/// Returns a quantity that must not be left out.
pub(crate) fn needed<T, E: de::Error>(
    quantity: Result<Option<T>, String>,
    expected: &str,
) -> Result<T, E> {
    quantity
        .and_then(|quantity| quantity.ok_or_else(|| format!("expected {expected}, not null")))
        .map_err(E::custom)
}

/// [`Duration`] in milliseconds.
pub(crate) mod time {
    use serde::{Deserializer, Serializer};

    use super::{Duration, Form, TIME, needed};

    pub(crate) fn serialize<S: Serializer>(time: &Duration, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_f64(time.as_secs_f64() * 1e3)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Duration, D::Error> {
        needed(Form::read(from, TIME)?.time(), TIME)
    }
}

/// [`Option<Duration>`] in milliseconds.
pub(crate) mod optional_time {
    use serde::{Deserializer, Serializer, de::Error};

    use super::{Duration, Form, TIME};

    #[expect(clippy::ref_option, reason = "serde passes a reference to the field")]
    pub(crate) fn serialize<S: Serializer>(
        time: &Option<Duration>,
        to: S,
    ) -> Result<S::Ok, S::Error> {
        match time {
            Some(time) => to.serialize_f64(time.as_secs_f64() * 1e3),
            None => to.serialize_none(),
        }
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(
        from: D,
    ) -> Result<Option<Duration>, D::Error> {
        Form::read(from, TIME)?.time().map_err(D::Error::custom)
    }
}

/// Bytes, as a number or as text.
pub(crate) mod size {
    use serde::{Deserializer, Serializer};

    use super::{Form, SIZE, needed};

    #[expect(
        clippy::trivially_copy_pass_by_ref,
        reason = "serde asks for a reference"
    )]
    pub(crate) fn serialize<S: Serializer>(bytes: &u64, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_u64(*bytes)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<u64, D::Error> {
        needed(Form::read(from, SIZE)?.size(), SIZE)
    }
}

/// A rate per second, as a number or as text.
pub(crate) mod optional_rate {
    use serde::{Deserializer, Serializer, de::Error};

    use super::{Form, RATE};

    #[expect(clippy::ref_option, reason = "serde passes a reference to the field")]
    pub(crate) fn serialize<S: Serializer>(rate: &Option<f64>, to: S) -> Result<S::Ok, S::Error> {
        match rate {
            Some(rate) => to.serialize_f64(*rate),
            None => to.serialize_none(),
        }
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Option<f64>, D::Error> {
        Form::read(from, RATE)?.rate().map_err(D::Error::custom)
    }
}

/// A count; `"unlimited"` and `null` are none.
pub(crate) mod optional_count {
    use serde::{Deserializer, Serializer, de::Error};

    use super::{COUNT, Form};

    #[expect(clippy::ref_option, reason = "serde passes a reference to the field")]
    pub(crate) fn serialize<S: Serializer>(count: &Option<u64>, to: S) -> Result<S::Ok, S::Error> {
        match count {
            Some(count) => to.serialize_u64(*count),
            None => to.serialize_none(),
        }
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Option<u64>, D::Error> {
        Form::read(from, COUNT)?.count().map_err(D::Error::custom)
    }
}
