//! Parts of the JSON Schema of results that their types alone do not say.

use schemars::{Schema, SchemaGenerator, json_schema};

use super::{FORMAT, METRICS};

/// Returns the schema of the format's version.
pub(super) fn format(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "const": FORMAT })
}

/// Returns the schema of a scenario, which has a file of its own.
pub(super) fn scenario(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "object", "required": ["netbench", "name", "clients"] })
}

/// Restricts the keys of a map to the names of [`METRICS`].
pub(super) fn by_metric(schema: &mut Schema) {
    let names: Vec<&str> = METRICS.iter().map(|metric| metric.name).collect();
    schema.insert(
        "propertyNames".to_owned(),
        serde_json::json!({ "enum": names }),
    );
}
