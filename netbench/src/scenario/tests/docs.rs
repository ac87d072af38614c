//! Tests of the examples in docs/scenarios.md.

use serde_json::Value;

use super::*;

const DOCS: &str = include_str!("../../../docs/scenarios.md");

/// Returns the code blocks with this mark.
fn blocks(mark: &str) -> Vec<String> {
    let mut blocks = Vec::new();
    let mut lines = DOCS.lines();
    while let Some(line) = lines.next() {
        if line == mark {
            let block: Vec<&str> = lines.by_ref().take_while(|line| *line != "```").collect();
            blocks.push(block.join("\n"));
        }
    }
    blocks
}

#[test]
fn the_scenarios_in_the_docs_can_be_read() {
    let blocks = blocks("```json");
    assert!(blocks.len() >= 2);
    let schema = schema::validator();
    for block in &blocks {
        read(block).unwrap_or_else(|problem| panic!("{problem}\n{block}"));
        let value: Value = serde_json::from_str(block).unwrap();
        schema
            .validate(&value)
            .unwrap_or_else(|problem| panic!("{problem}\n{block}"));
    }
}

#[test]
fn a_million_connections_are_ten_lines() {
    let block = (blocks("```json").into_iter())
        .find(|block| block.contains("1000000"))
        .unwrap();
    assert!(block.lines().count() <= 10, "{block}");
    let scenario = read(&block).unwrap();
    let ClientOp::Connect(connect) = &scenario.clients[0].ops[0] else {
        panic!("{scenario:?}");
    };
    assert_eq!(connect.connections, Some(1_000_000));
}

#[test]
fn the_scripts_in_the_docs_can_be_read() {
    let blocks = blocks("```json script");
    assert!(!blocks.is_empty());
    for block in blocks {
        connection(&block).unwrap_or_else(|problem| panic!("{problem}\n{block}"));
    }
}

#[test]
fn the_docs_name_every_operation_key_and_bundled_scenario() {
    for name in bundled() {
        assert!(DOCS.contains(&format!("`{name}`")), "{name}");
    }
    for axis in crate::scenario::axes::NAMES {
        assert!(DOCS.contains(&format!("`{axis}`")), "{axis}");
    }
    let schema: Value =
        serde_json::from_str(include_str!("../../../schema/scenario.schema.json")).unwrap();
    let mut keys = Vec::new();
    properties(&schema, &mut keys);
    for key in keys {
        assert!(DOCS.contains(&format!("`{key}`")), "{key}");
    }
}

fn properties(value: &Value, found: &mut Vec<String>) {
    match value {
        Value::Object(fields) => {
            if let Some(Value::Object(properties)) = fields.get("properties") {
                found.extend(properties.keys().cloned());
            }
            fields.values().for_each(|field| properties(field, found));
        }
        Value::Array(items) => items.iter().for_each(|item| properties(item, found)),
        _ => {}
    }
}
