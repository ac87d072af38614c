//! Tests of axes and cells.

use std::collections::BTreeMap;

use hybriq::Group;

use super::*;

fn set(axes: &[(&str, &str)]) -> Axes {
    let mut all = Axes::default();
    for (axis, text) in axes {
        all.set(axis, text).unwrap();
    }
    all
}

fn refusal(axis: &str, text: &str) -> String {
    Axes::default().set(axis, text).unwrap_err().to_string()
}

#[test]
fn without_axes_there_is_one_cell_with_the_parameters() {
    let params = BTreeMap::from([("connections".to_owned(), 7)]);
    let axes = Axes::default();
    let cells = axes.cells(&params);
    assert_eq!(
        cells,
        [Cell {
            params,
            ..Cell::default()
        }]
    );
    assert_eq!(axes.cell_name(&cells[0]), "X25519MLKEM768");
    assert!(axes.is_empty());
}

#[test]
fn cells_are_every_combination_and_the_last_axis_varies_fastest() {
    let axes = set(&[
        ("group", "X25519,X25519MLKEM768"),
        ("certificate", "ecdsa-p256, ml-dsa-65"),
        ("concurrency", "1,8,64"),
    ]);
    let cells = axes.cells(&BTreeMap::new());
    let names: Vec<String> = cells.iter().map(|cell| axes.cell_name(cell)).collect();
    assert_eq!(cells.len(), 12);
    assert_eq!(axes.size(), 12);
    assert_eq!(names[0], "X25519, ecdsa-p256, concurrency 1");
    assert_eq!(names[1], "X25519, ecdsa-p256, concurrency 8");
    assert_eq!(names[3], "X25519, ml-dsa-65, concurrency 1");
    assert_eq!(names[11], "X25519MLKEM768, ml-dsa-65, concurrency 64");
    let distinct: std::collections::BTreeSet<&String> = names.iter().collect();
    assert_eq!(distinct.len(), 12);
}

#[test]
fn a_cell_is_named_by_what_varies_alone() {
    let axes = set(&[
        ("group", "X25519"),
        ("client-auth", "yes,no"),
        ("payload", "1KiB"),
    ]);
    let cells = axes.cells(&BTreeMap::new());
    let names: Vec<String> = cells.iter().map(|cell| axes.cell_name(cell)).collect();
    assert_eq!(names, ["client auth", "no client auth"]);
    assert_eq!(cells[0].params["payload"], 1024);
    assert_eq!(cells[0].group, Group::X25519);
}

#[test]
fn all_groups_are_eight() {
    let axes = set(&[("group", "all")]);
    assert_eq!(axes.group, Group::ALL);
    assert_eq!(axes.cells(&BTreeMap::new()).len(), 8);
}

#[test]
fn a_client_is_of_the_servers_stack_unless_it_is_said() {
    let same = set(&[("driver", "quinn")]).cells(&BTreeMap::new());
    assert_eq!(
        (same[0].driver, same[0].client),
        (Stack::Quinn, Stack::Quinn)
    );
    let other = set(&[("driver", "quinn"), ("client", "hybriq")]).cells(&BTreeMap::new());
    assert_eq!(
        (other[0].driver, other[0].client),
        (Stack::Quinn, Stack::Hybriq)
    );
}

#[test]
fn values_that_are_named_twice_are_measured_once() {
    let axes = set(&[
        ("group", "x25519,X25519"),
        ("chain", "1,3,1"),
        ("suite", "all,TLS_AES_128_GCM_SHA256"),
        ("resumption", "psk,all"),
    ]);
    assert_eq!(axes.group, [Group::X25519]);
    assert_eq!(axes.chain, [1, 3]);
    assert_eq!(axes.suite.len(), 3);
    assert_eq!(
        axes.resumption,
        [Resumption::Psk, Resumption::Full, Resumption::ZeroRtt]
    );
}

#[test]
fn a_value_that_is_none_is_refused_with_those_that_are() {
    assert_eq!(
        refusal("certificate", "rsa"),
        "unknown certificate 'rsa'; valid: all, ecdsa-p256, ecdsa-p384, rsa-2048, ed25519, \
         ml-dsa-44, ml-dsa-65, ml-dsa-87"
    );
    assert!(refusal("group", "all,Kyber").contains("unknown group 'Kyber'; valid: all, "));
    assert!(refusal("hello-retry", "maybe").contains("expected yes or no"));
    assert!(refusal("chain", "0").contains("expected 1"));
    assert!(refusal("workers", "0").contains("expected a number from 1"));
    assert!(refusal("resumption", "1-rtt").contains("0-rtt"));
    assert!(refusal("concurrency", "many").contains("concurrency: expected a whole number"));
    assert!(
        refusal("driver", "hybriq,").contains("valid: all, hybriq, nginx, noq, quic-go, quiche")
    );
}

#[test]
fn a_file_may_give_a_value_a_list_or_the_text_of_the_command_line() {
    let read = |text| serde_json::from_str::<Axes>(text).unwrap();
    let axes = read(
        r#"{"group": "X25519, MLKEM768", "hello_retry": [true, false], "chain": 3,
            "link": "--delay 1ms", "payload": ["1KiB", 5]}"#,
    );
    assert_eq!(axes.group, [Group::X25519, Group::MLKEM768]);
    assert_eq!(axes.hello_retry, [true, false]);
    assert_eq!(axes.chain, [3]);
    assert_eq!(axes.link, ["--delay 1ms"]);
    assert_eq!(axes.params["payload"], [1024, 5]);
    let written = serde_json::to_string(&axes).unwrap();
    assert_eq!(read(&written), axes);
    assert!(serde_json::from_str::<Axes>(r#"{"group": [["X25519"]]}"#).is_err());
    assert!(serde_json::from_str::<Axes>(r#"{"group": {}}"#).is_err());
}

#[test]
fn axes_of_the_command_line_replace_those_of_the_file() {
    let mut axes = set(&[("group", "all"), ("chain", "3"), ("payload", "1,2")]);
    axes.override_with(set(&[("group", "X25519"), ("payload", "7")]));
    assert_eq!(axes.group, [Group::X25519]);
    assert_eq!(axes.chain, [3]);
    assert_eq!(axes.params["payload"], [7]);
}

#[test]
fn all_stacks_are_those_that_are_built_in() {
    let axes = set(&[("driver", "all")]);
    let built_in: Vec<Stack> = Stack::built_in().collect();
    assert_eq!(axes.driver, built_in);
    assert!(built_in.contains(&Stack::Hybriq));
}

#[test]
fn a_cell_is_written_by_names_and_read_back() {
    let cell = Cell {
        driver: Stack::S2nQuic,
        client: Stack::TcpTls,
        provider: Backend::S2nTls,
        group: Group::SECP384R1MLKEM1024,
        certificate: Certificate::MlDsa65,
        suite: Suite::ChaCha20Poly1305Sha256,
        resumption: Resumption::ZeroRtt,
        ..Cell::default()
    };
    let written = serde_json::to_value(&cell).unwrap();
    let expected = serde_json::json!({
        "driver": "s2n-quic",
        "client": "tcp-tls",
        "provider": "s2n-tls",
        "group": "SecP384r1MLKEM1024",
        "hello_retry": false,
        "certificate": "ml-dsa-65",
        "chain": 1,
        "workers": 1,
        "suite": "TLS_CHACHA20_POLY1305_SHA256",
        "resumption": "0-rtt",
        "client_auth": false,
        "congestion": "",
        "link": "",
        "params": {},
    });
    assert_eq!(written, expected);
    assert_eq!(serde_json::from_value::<Cell>(written).unwrap(), cell);
    let unknown = serde_json::json!({ "group": "Kyber512" });
    let refused = serde_json::from_value::<Cell>(unknown)
        .unwrap_err()
        .to_string();
    assert!(
        refused.starts_with("unknown group 'Kyber512'; valid: X25519MLKEM768, "),
        "{refused}"
    );
}

#[test]
fn links_have_names() {
    let axes = set(&[("link", "clean, none, --delay 1ms")]);
    assert_eq!(axes.link, ["clean", "", "--delay 1ms"]);
    let names = axes.cells(&BTreeMap::new());
    assert_eq!(axes.cell_name(&names[0]), "clean");
    assert!(link::arguments("clean").starts_with("--rate 20mbit"));
    assert_eq!(link::arguments("--delay 1ms"), "--delay 1ms");
    assert_eq!(set(&[("link", "all")]).link.len(), link::LINKS.len());
    let refused = refusal("link", "lunar");
    assert!(
        refused.starts_with("unknown link 'lunar'; valid: all, none, clean"),
        "{refused}"
    );
}
