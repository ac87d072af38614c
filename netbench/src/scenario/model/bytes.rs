//! The forms of [`Bytes`] in a file: the number alone, or with the stream's.

use std::borrow::Cow;
use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{self, Deserialize, Deserializer, MapAccess, Visitor};

use super::op::Bytes;
use super::schema;
use super::text::{Form, SIZE, needed, size};

impl<'de> Deserialize<'de> for Bytes {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_any(BytesForms)
    }
}

/// [`Bytes`] with the number of their stream.
#[derive(serde::Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct BytesOfStream {
    /// Number of the stream.
    #[schemars(with = "schema::Count")]
    #[serde(default)]
    stream: u64,
    /// Number of bytes.
    #[schemars(with = "schema::Size")]
    #[serde(with = "size")]
    bytes: u64,
}

impl JsonSchema for Bytes {
    fn schema_name() -> Cow<'static, str> {
        "Bytes".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "anyOf": [
                generator.subschema_for::<schema::Size>(),
                generator.subschema_for::<BytesOfStream>(),
            ],
        })
    }
}

/// A reader of both forms.
struct BytesForms;

impl<'de> Visitor<'de> for BytesForms {
    type Value = Bytes;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{SIZE}, or {{\"stream\": 1, \"bytes\": 1000}}")
    }

    fn visit_u64<E: de::Error>(self, bytes: u64) -> Result<Bytes, E> {
        let bytes = needed(Form::Number(bytes as f64).size(), SIZE)?;
        Ok(Bytes { stream: 0, bytes })
    }

    fn visit_f64<E: de::Error>(self, bytes: f64) -> Result<Bytes, E> {
        let bytes = needed(Form::Number(bytes).size(), SIZE)?;
        Ok(Bytes { stream: 0, bytes })
    }

    fn visit_str<E: de::Error>(self, bytes: &str) -> Result<Bytes, E> {
        let bytes = needed(Form::Text(bytes.to_owned()).size(), SIZE)?;
        Ok(Bytes { stream: 0, bytes })
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Bytes, A::Error> {
        let BytesOfStream { stream, bytes } =
            BytesOfStream::deserialize(de::value::MapAccessDeserializer::new(map))?;
        Ok(Bytes { stream, bytes })
    }
}
