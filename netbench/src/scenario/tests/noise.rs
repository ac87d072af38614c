//! Property tests: any file is read, or refused in one line.

use proptest::prelude::*;
use serde_json::{Map, Value, json};

use super::*;

/// Returns values of the kinds in files, valid or not.
fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        "[$a-z0-9 µ/.\n]{0,8}".prop_map(Value::from),
        Just(json!({"send": 1})),
        Just(json!({"open_bidi": {"peer": [{"receive": 1}]}})),
        Just(json!("$connections")),
        Just(json!("finish")),
        Just(json!({"park": 1})),
        Just(json!({"unpark": 1})),
    ];
    let key = prop_oneof![
        "[a-z_\n]{1,6}",
        Just("ops".to_owned()),
        Just("iterate".to_owned()),
        Just("scope".to_owned()),
        Just("times".to_owned()),
        Just("connect".to_owned()),
        Just("$".to_owned()),
    ];
    leaf.prop_recursive(4, 24, 4, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::vec((key.clone(), inner), 0..4)
                .prop_map(|fields| Value::from(Map::from_iter(fields))),
        ]
    })
}

/// Replaces the value at the position with this number, counted in order.
fn place(value: &mut Value, number: &mut usize, instead: &Value) -> bool {
    if *number == 0 {
        *value = instead.clone();
        return true;
    }
    *number -= 1;
    match value {
        Value::Array(items) => items.iter_mut().any(|item| place(item, number, instead)),
        Value::Object(fields) => fields
            .values_mut()
            .any(|field| place(field, number, instead)),
        _ => false,
    }
}

fn refused_in_one_line(text: &str) {
    if let Err(problem) = read(text) {
        assert!(!problem.contains('\n'), "{problem}");
    }
}

proptest! {
    #[test]
    fn any_text_is_read_or_refused(text in "\\PC*") {
        refused_in_one_line(&text);
    }

    #[test]
    fn any_part_of_a_bundled_scenario_may_be_anything(
        scenario in 0..11_usize, number in 0..150_usize, instead in value()
    ) {
        let mut document = serde_json::from_str(super::super::template::bundled::ALL[scenario].1).unwrap();
        place(&mut document, &mut number.clone(), &instead);
        refused_in_one_line(&document.to_string());
    }

    #[test]
    fn any_part_of_a_seed_scenario_may_be_anything(number in 0..120_usize, instead in value()) {
        let text = include_str!("../../../tests/seed/ping.json");
        let mut document = serde_json::from_str(text).unwrap();
        place(&mut document, &mut number.clone(), &instead);
        refused_in_one_line(&document.to_string());
    }

    #[test]
    fn any_value_of_an_axis_is_read_or_refused(axis in "[a-z_-]{1,12}", text in "\\PC{0,20}") {
        let mut axes = crate::scenario::axes::Axes::default();
        let _ = axes.set(&axis, &text);
        for axis in crate::scenario::axes::NAMES {
            let _ = axes.set(axis, &text);
        }
    }
}
