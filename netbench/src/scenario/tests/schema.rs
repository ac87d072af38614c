//! Tests that the schema of scenarios and the parser agree.

use serde_json::Value;

use super::*;

const SCHEMA: &str = include_str!("../../../schema/scenario.schema.json");

pub(super) fn validator() -> jsonschema::Validator {
    let schema: Value = serde_json::from_str(SCHEMA).unwrap();
    jsonschema::draft202012::meta::validate(&schema).unwrap();
    jsonschema::draft202012::new(&schema).unwrap()
}

#[test]
fn every_bundled_scenario_follows_the_schema_resolved_or_not() {
    let schema = validator();
    for (name, text) in super::super::template::bundled::ALL {
        let file: Value = serde_json::from_str(text).unwrap();
        schema
            .validate(&file)
            .unwrap_or_else(|problem| panic!("{name}: {problem}"));
        let resolved = serde_json::to_value(read(text).unwrap()).unwrap();
        schema
            .validate(&resolved)
            .unwrap_or_else(|problem| panic!("{name}: {problem}"));
    }
}

/// Both the parser and the schema refuse these parts in an otherwise valid file.
#[test]
fn what_the_parser_refuses_the_schema_refuses() {
    let schema = validator();
    let good = r#"{"netbench": 1, "name": "x", "phases": {"measure": "5s"}, "axes": {"group": "all"},
        "clients": [{"name": "c", "ops": [{"connect": {"connections": 2, "ops": [
            "open_bidi", {"send": 1}, {"iterate": {"times": 3, "ops": [{"sleep": "5ms"}]}}]}}]}]}"#;
    read(good).unwrap();
    let wrong = [
        (r#""name": "x","#, r#""name": "x", "nam": 1,"#),
        (r#""name": "x","#, ""),
        (r#""netbench": 1"#, r#""netbench": 2"#),
        (r#""netbench": 1"#, r#""netbench": "1""#),
        (r#""5s""#, r#""5 parsecs""#),
        (r#""5s""#, "[]"),
        (r#""all""#, "{}"),
        (r#""all""#, "[[]]"),
        (r#""connections": 2"#, r#""conections": 2"#),
        (r#""connections": 2"#, r#""connections": "2""#),
        (r#""connections": 2"#, r#""connections": -2"#),
        (r#""connections": 2"#, r#""connections": 0"#),
        (r#""connections": 2"#, r#""concurrency": 0"#),
        (r#""connections": 2"#, r#""rate": 0"#),
        (r#""connections": 2"#, r#""arrivals": "often""#),
        (r#""connections": 2"#, r#""on_error": "panic""#),
        (r#""open_bidi""#, r#""close""#),
        (r#"{"send": 1}"#, r#"{"send": "1KB"}"#),
        (r#"{"send": 1}"#, r#"{"send": {"stream": 0}}"#),
        (r#"{"send": 1}"#, r#"{"send": 1, "receive": 1}"#),
        (r#"{"send": 1}"#, r#"{"sned": 1}"#),
        (r#"{"send": 1}"#, "{}"),
        (r#"{"send": 1}"#, r#"{"reset": {"cod": 1}}"#),
        (r#"{"send": 1}"#, r#"{"datagrams": {"count": 1}}"#),
        (r#""times": 3"#, r#""times": 1.5"#),
        (r#"[{"sleep": "5ms"}]"#, "[]"),
    ];
    for (part, instead) in wrong {
        assert!(good.contains(part), "{part}");
        let text = good.replace(part, instead);
        let value: Value = serde_json::from_str(&text).unwrap();
        assert!(
            read(&text).is_err(),
            "the parser takes {instead} for {part}"
        );
        assert!(
            !schema.is_valid(&value),
            "the schema takes {instead} for {part}"
        );
    }
}
