//! The JSON Schema of scenario files.
//!
//! In a file a number may also be text with a unit, or a parameter, so that the schema of a field is
//! not that of its type: the types here say which forms a field takes (`#[schemars(with = …)]`).

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde_json::{Value, json};

/// Operations that may stand as their name alone: `"finish"` for `{"finish": {}}`.
pub(crate) const BARE: [&str; 5] = ["open_bidi", "open_uni", "finish", "reset", "receive_all"];

/// Defines types that stand for the forms of a field, each with its description and its forms
/// beside a parameter.
macro_rules! forms {
    ($($name:ident: $description:literal, $forms:tt;)*) => {$(
        #[doc = $description]
        pub(crate) enum $name {}

        impl JsonSchema for $name {
            fn schema_name() -> Cow<'static, str> {
                stringify!($name).into()
            }

            fn json_schema(generator: &mut SchemaGenerator) -> Schema {
                or_parameter(generator, $description, json!($forms))
            }
        }
    )*};
}

forms! {
    Count: "A whole number.", [{"type": "integer", "minimum": 0}];
    AtLeastOne: "A whole number above 0.", [{"type": "integer", "minimum": 1}];
    OptionalCount: "A whole number. \"unlimited\" and null: no bound.",
        [{"type": ["integer", "null"], "minimum": 0}, {"const": "unlimited"}];
    OptionalAtLeastOne:
        "A whole number above 0. \"unlimited\" and null: as many as the measurement has time for.",
        [{"type": ["integer", "null"], "minimum": 1}, {"const": "unlimited"}];
    Bound: "A whole number above 0. null: the default.",
        [{"type": ["integer", "null"], "minimum": 1}];
    Time: "Milliseconds, or text with a unit: \"500us\", \"10ms\", \"5s\", \"2m\", \"1h\".",
        [{"type": "number", "minimum": 0}, {"type": "string", "pattern": TIME}];
    OptionalTime: "A time. null: none.",
        [{"type": ["number", "null"], "minimum": 0}, {"type": "string", "pattern": TIME}];
    Size: "Bytes, or text with a unit: \"64KiB\", \"1MiB\", \"2GiB\".",
        [
            {"type": "integer", "minimum": 0},
            {"type": "string", "pattern": "^[0-9]+(B|KiB|MiB|GiB)?$"}
        ];
    PerSecond: "A number per second: 500 or \"500/s\". null: none.",
        [
            {"type": ["number", "null"], "exclusiveMinimum": 0},
            {"type": "string", "pattern": "^[0-9.]+ */s$"}
        ];
}

const TIME: &str = "^[0-9.]+ *(ns|us|µs|ms|s|m|h)$";

/// A parameter that stands for a number.
enum Parameter {}

impl JsonSchema for Parameter {
    fn schema_name() -> Cow<'static, str> {
        "Parameter".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "A parameter, with a unit or without.",
            "type": "string",
            "pattern": "^\\$[A-Za-z0-9_]+( *[A-Za-zµ/]+)?$",
        })
    }
}

fn or_parameter(generator: &mut SchemaGenerator, description: &str, forms: Value) -> Schema {
    let mut forms = match forms {
        Value::Array(forms) => forms,
        form => vec![form],
    };
    forms.push(generator.subschema_for::<Parameter>().to_value());
    json_schema!({ "description": description, "anyOf": forms })
}

/// Returns the schema of the format's version.
pub(crate) fn format(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "const": crate::scenario::FORMAT })
}

/// Returns the schema of the declared parameters.
pub(crate) fn params(_: &mut SchemaGenerator) -> Schema {
    let default = json!({
        "description": "A number, text with a unit, \"$another\" for the value of another \
                        parameter, or null for unset.",
        "anyOf": [
            {"type": "integer", "minimum": 0},
            {"type": "string", "minLength": 1},
            {"type": "null"},
        ],
    });
    json_schema!({
        "type": "object",
        "propertyNames": {"pattern": "^[A-Za-z0-9_]+$"},
        "additionalProperties": {
            "anyOf": [
                default,
                {
                    "type": "object",
                    "additionalProperties": false,
                    "properties": {
                        "default": default,
                        "help": {"type": "string", "description": "Its purpose, in a sentence."},
                    },
                },
            ],
        },
    })
}

/// Adds the operations that may stand as their name alone.
pub(crate) fn with_bare_names(schema: &mut Schema) {
    if let Some(Value::Array(forms)) = schema.get_mut("oneOf") {
        forms.insert(0, json!({ "enum": BARE }));
    }
}

/// Adds the key by which an editor finds the schema.
pub(crate) fn with_schema_key(schema: &mut Schema) {
    if let Some(Value::Object(properties)) = schema.get_mut("properties") {
        let key = json!({"type": "string", "description": "For editors; not read."});
        properties.insert("$schema".to_owned(), key);
    }
}
