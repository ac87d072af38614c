//! Tests of scenarios.

mod docs;
mod noise;
mod problems;
mod schema;
mod template;
mod validate;

use std::collections::BTreeMap;

use super::*;

/// Reads a scenario, with the defaults of its parameters.
fn read(text: &str) -> Result<Scenario, String> {
    Template::parse("test.json", text)
        .and_then(|template| template.resolve(&BTreeMap::new()))
        .map_err(|problem| problem.to_string())
}

/// Returns a scenario with one client that runs these operations.
fn client(ops: &str) -> Result<Scenario, String> {
    read(&format!(
        r#"{{"netbench": 1, "name": "test", "clients": [{{"name": "client", "ops": {ops}}}]}}"#
    ))
}

/// Returns a scenario with one connection on which the client runs these operations.
fn connection(ops: &str) -> Result<Scenario, String> {
    client(&format!(r#"[{{"connect": {{"ops": {ops}}}}}]"#))
}

fn set(params: &[(&str, u64)]) -> BTreeMap<String, u64> {
    (params.iter())
        .map(|(name, value)| ((*name).to_owned(), *value))
        .collect()
}
