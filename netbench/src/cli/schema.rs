//! JSON Schemas of the files that netbench reads and writes, generated from their types.
//!
//! The committed files under `schema/` are compared with what is generated here. To write them
//! again after a change of a type: `UPDATE_SCHEMAS=1 cargo test -p hybriq-netbench schema::`.

use schemars::generate::SchemaSettings;
use schemars::transform::{RecursiveTransform, Transform as _};
use schemars::{JsonSchema, Schema};
use serde_json::Value;

use crate::report::results::Results;
use crate::scenario::Scenario;

/// Returns the schema of files that are read as a type.
fn of_input<T: JsonSchema>() -> Schema {
    let settings = SchemaSettings::draft2020_12();
    settings.into_generator().into_root_schema_for::<T>()
}

/// Returns the schema of files that a type is written to, which have no further keys.
fn of_output<T: JsonSchema>() -> Schema {
    let settings = SchemaSettings::draft2020_12().for_serialize();
    let mut schema = settings.into_generator().into_root_schema_for::<T>();
    let mut close = RecursiveTransform(|schema: &mut Schema| {
        if schema.get("properties").is_some() && schema.get("additionalProperties").is_none() {
            schema.insert("additionalProperties".to_owned(), false.into());
        }
    });
    close.transform(&mut schema);
    schema
}

/// Compares a committed schema with the generated one, or writes it if requested.
fn check(name: &str, generated: Schema) {
    let path = format!("{}/schema/{name}", env!("CARGO_MANIFEST_DIR"));
    let generated = generated.to_value();
    if std::env::var_os("UPDATE_SCHEMAS").is_some() {
        let text = serde_json::to_string_pretty(&generated).unwrap() + "\n";
        std::fs::write(&path, text).unwrap();
    }
    let committed = std::fs::read_to_string(&path).unwrap();
    let committed: Value = serde_json::from_str(&committed).unwrap();
    assert!(
        committed == generated,
        "{name} is not what its types say: UPDATE_SCHEMAS=1 cargo test -p hybriq-netbench schema::"
    );
}

#[test]
fn the_schema_of_scenarios_is_that_of_their_types() {
    check("scenario.schema.json", of_input::<Scenario>());
}

#[test]
fn the_schema_of_results_is_that_of_their_types() {
    check("results.schema.json", of_output::<Results>());
}
