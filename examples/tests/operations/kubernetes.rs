//! The manifests for Kubernetes: valid by the types of its API, and fit for the server.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use k8s_openapi::api::apps::v1::{DaemonSet, StatefulSet};
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{Container, Service};
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use k8s_openapi::serde::Serialize;
use k8s_openapi::serde::de::DeserializeOwned;
use rustix::process::Signal;
use saphyr::{LoadableYamlNode as _, Scalar, Yaml};
use serde_json::{Map, Value};

use crate::authority::Authority;
use crate::clients::{ask, connect, endpoint};
use crate::server::{PROGRAM, Server};

fn folder(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(path)
}

fn json(yaml: &Yaml<'_>) -> Value {
    match yaml {
        Yaml::Value(Scalar::Null) => Value::Null,
        Yaml::Value(Scalar::Boolean(value)) => (*value).into(),
        Yaml::Value(Scalar::Integer(value)) => (*value).into(),
        Yaml::Value(Scalar::FloatingPoint(value)) => value.into_inner().into(),
        Yaml::Value(Scalar::String(value)) => (&**value).into(),
        Yaml::Sequence(items) => items.iter().map(json).collect(),
        Yaml::Mapping(fields) => {
            let fields = fields.iter();
            let field =
                |(key, value): (&Yaml<'_>, _)| (key.as_str().unwrap().to_owned(), json(value));
            Value::Object(fields.map(field).collect::<Map<_, _>>())
        }
        other => panic!("{other:?}"),
    }
}

/// Returns the documents of a file.
fn documents(path: &Path) -> Vec<Value> {
    let text = fs::read_to_string(path).unwrap();
    Yaml::load_from_str(&text)
        .unwrap()
        .iter()
        .map(json)
        .collect()
}

/// Returns the object of a kind in `examples/kubernetes`.
fn object<T: DeserializeOwned>(file: &str, kind: &str) -> T {
    let all = documents(&folder("examples/kubernetes").join(file));
    let found = all.into_iter().find(|it| it["kind"] == kind).unwrap();
    serde_json::from_value(found).unwrap()
}

/// Returns the document as the API understands it. A field that the API does not have is missing
/// there, and one of the wrong type fails.
fn understood<T: DeserializeOwned + Serialize>(document: &Value) -> Result<Value, String> {
    let object: T = serde_json::from_value(document.clone()).map_err(|error| error.to_string())?;
    serde_json::to_value(&object).map_err(|error| error.to_string())
}

fn check(document: &Value) -> Result<(), String> {
    let kind = (document["apiVersion"].as_str(), document["kind"].as_str());
    let read = match kind {
        (Some("v1"), Some("Service")) => understood::<Service>(document),
        (Some("apps/v1"), Some("StatefulSet")) => understood::<StatefulSet>(document),
        (Some("apps/v1"), Some("DaemonSet")) => understood::<DaemonSet>(document),
        (Some("batch/v1"), Some("Job")) => understood::<Job>(document),
        (Some("policy/v1"), Some("PodDisruptionBudget")) => {
            understood::<PodDisruptionBudget>(document)
        }
        other => Err(format!("{other:?}")),
    }?;
    if read == *document {
        values("", document)
    } else {
        Err(format!("not all of it is known:\n{document:#}\n{read:#}"))
    }
}

/// Values that the server of the API takes for a field, beyond their types.
const CHOICES: [(&str, &[&str]); 9] = [
    ("protocol", &["TCP", "UDP", "SCTP"]),
    (
        "type",
        &[
            "ClusterIP",
            "NodePort",
            "LoadBalancer",
            "RollingUpdate",
            "OnDelete",
            "RuntimeDefault",
            "Localhost",
            "Unconfined",
        ],
    ),
    ("externalTrafficPolicy", &["Cluster", "Local"]),
    ("sessionAffinity", &["None", "ClientIP"]),
    ("podManagementPolicy", &["OrderedReady", "Parallel"]),
    ("whenUnsatisfiable", &["DoNotSchedule", "ScheduleAnyway"]),
    ("restartPolicy", &["Always", "OnFailure", "Never"]),
    ("imagePullPolicy", &["Always", "IfNotPresent", "Never"]),
    (
        "dnsPolicy",
        &["ClusterFirst", "ClusterFirstWithHostNet", "Default", "None"],
    ),
];

/// Checks the values of a document by the rules of the API: choices, ports, names (RFC 1123) and
/// quantities.
fn values(field: &str, value: &Value) -> Result<(), String> {
    let wrong = || Err(format!("{field}: {value}"));
    match value {
        Value::Object(fields) => {
            for (name, value) in fields {
                if ["requests", "limits"].contains(&field) {
                    if !value.as_str().is_some_and(is_quantity) {
                        return Err(format!("{field}.{name}: {value}"));
                    }
                } else if !["labels", "matchLabels", "annotations", "nodeSelector"]
                    .contains(&name.as_str())
                {
                    values(name, value)?;
                }
            }
            Ok(())
        }
        Value::Array(items) => items.iter().try_for_each(|item| values(field, item)),
        Value::String(text) => {
            let choices = CHOICES.iter().find(|(name, _)| *name == field);
            let is_name = ["serviceName", "secretName", "name"].contains(&field);
            let is_variable = field == "name"
                && text
                    .chars()
                    .all(|c| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_');
            match choices {
                Some((_, choices)) if !choices.contains(&text.as_str()) => wrong(),
                _ if is_name && !is_variable && !is_label(text) => wrong(),
                _ => Ok(()),
            }
        }
        Value::Number(number) if field.to_lowercase().ends_with("port") => match number.as_u64() {
            Some(1..=65_535) => Ok(()),
            _ => wrong(),
        },
        Value::Number(number) if number.as_i64().is_some_and(i64::is_negative) => wrong(),
        _ => Ok(()),
    }
}

/// Returns true for a label as RFC 1123 has it.
fn is_label(text: &str) -> bool {
    let inner = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    let ends = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    (1..=63).contains(&text.len())
        && text.chars().all(inner)
        && text.starts_with(ends)
        && text.ends_with(ends)
}

/// Returns true for a quantity: a number with a suffix.
fn is_quantity(text: &str) -> bool {
    let (number, suffix) = text.split_at(
        text.find(|c: char| c.is_ascii_alphabetic())
            .unwrap_or(text.len()),
    );
    let suffixes = ["", "m", "k", "M", "G", "T", "Ki", "Mi", "Gi", "Ti"];
    number.parse::<f64>().is_ok_and(|number| number >= 0.0) && suffixes.contains(&suffix)
}

#[test]
fn a_value_that_the_api_does_not_take_is_found() {
    let load = |file: &str, kind: &str| {
        let all = documents(&folder("examples/kubernetes").join(file));
        all.into_iter().find(|it| it["kind"] == kind).unwrap()
    };
    for (pointer, value) in [
        ("/spec/ports/0/protocol", Value::from("UDPX")),
        ("/spec/ports/0/port", 99_999_999.into()),
        ("/spec/type", "LoadBalancerX".into()),
        ("/spec/externalTrafficPolicy", "Lokal".into()),
        ("/metadata/name", "Not A Valid Name!".into()),
    ] {
        let mut service = load("service.yaml", "Service");
        *service.pointer_mut(pointer).unwrap() = value;
        let error = check(&service).unwrap_err();
        assert!(
            error.starts_with(pointer.rsplit('/').next().unwrap()),
            "{error}"
        );
    }
    let mut set = load("fleet.yaml", "StatefulSet");
    let cpu = "/spec/template/spec/containers/0/resources/limits/cpu";
    *set.pointer_mut(cpu).unwrap() = "two".into();
    assert_eq!(check(&set).unwrap_err(), "limits.cpu: \"two\"");
}

#[test]
fn every_manifest_is_valid_by_the_types_of_the_api() {
    let mut count = 0;
    for folder in [folder("examples/kubernetes"), folder("netbench/kubernetes")] {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.extension().is_none_or(|extension| extension != "yaml") {
                continue;
            }
            for document in documents(&path) {
                check(&document).unwrap_or_else(|why| panic!("{}: {why}", path.display()));
                count += 1;
            }
        }
    }
    assert_eq!(count, 9);
}

#[test]
fn a_field_that_the_api_does_not_have_is_found() {
    let file = folder("examples/kubernetes/fleet.yaml");
    let mut set = documents(&file).pop().unwrap();
    set["spec"]["template"]["spec"]["terminationGracePeriod"] = 80.into();
    assert!(
        check(&set)
            .unwrap_err()
            .starts_with("not all of it is known")
    );
    let mut set = documents(&file).pop().unwrap();
    set["spec"]["replicas"] = "three".into();
    assert!(check(&set).is_err());
}

fn server() -> (StatefulSet, Container) {
    let set: StatefulSet = object("fleet.yaml", "StatefulSet");
    let template = set.spec.clone().unwrap().template;
    let container = template.spec.unwrap().containers.remove(0);
    (set, container)
}

/// Returns the value of an option of the server.
fn option(container: &Container, name: &str) -> String {
    let args = container.args.as_ref().unwrap();
    let value = args
        .iter()
        .find_map(|arg| arg.strip_prefix(name)?.strip_prefix('='));
    value.unwrap().to_owned()
}

#[test]
fn there_is_time_to_drain() {
    let (set, container) = server();
    let drain: i64 = option(&container, "--drain").parse().unwrap();
    let stop = container
        .lifecycle
        .unwrap()
        .pre_stop
        .unwrap()
        .sleep
        .unwrap();
    let pod = set.spec.unwrap().template.spec.unwrap();
    assert!(pod.termination_grace_period_seconds.unwrap() >= stop.seconds + drain + 5);
}

#[test]
fn services_budget_and_probes_meet_the_server() {
    let (set, container) = server();
    let spec = set.spec.unwrap();
    let labels = spec.template.metadata.unwrap().labels;
    assert_eq!(spec.selector.match_labels, labels);
    let pods: Service = object("fleet.yaml", "Service");
    let public: Service = object("service.yaml", "Service");
    let budget: PodDisruptionBudget = object("fleet.yaml", "PodDisruptionBudget");
    assert_eq!(pods.metadata.name, spec.service_name);
    assert_eq!(pods.spec.unwrap().selector, labels);
    let aws: Service = object("aws.yaml", "Service");
    for public in [public, aws] {
        let spec = public.spec.unwrap();
        assert_eq!(spec.selector, labels);
        let target = spec.ports.unwrap().remove(0).target_port;
        assert_eq!(serde_json::to_value(&target).unwrap(), "quic");
    }
    assert_eq!(budget.spec.unwrap().selector.unwrap().match_labels, labels);

    for (name, flag) in [("quic", "--listen"), ("health", "--health")] {
        let ports = container.ports.as_ref().unwrap();
        let port = ports
            .iter()
            .find(|port| port.name.as_deref() == Some(name))
            .unwrap();
        let address = option(&container, flag);
        assert!(
            address.ends_with(&format!("]:{}", port.container_port)),
            "{address}"
        );
    }
    for probe in [&container.readiness_probe, &container.liveness_probe] {
        let get = probe.as_ref().unwrap().http_get.as_ref().unwrap();
        assert_eq!(serde_json::to_value(&get.port).unwrap(), "health");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_server_takes_the_options_of_the_manifest() {
    let (_, container) = server();
    let authority = Authority::new("kubernetes");
    let file = |name: &str, digits: &str| {
        let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
        fs::write(&path, digits).unwrap();
        path.into_os_string().into_string().unwrap()
    };
    let text = |path: &Path| path.to_str().unwrap().to_owned();
    let replaced = [
        ("[::]:4433", "[::1]:0".to_owned()),
        ("[::]:8080", "[::1]:0".to_owned()),
        ("/tls/tls.crt", text(&authority.cert)),
        ("/tls/tls.key", text(&authority.key)),
        ("/fleet/secret", file("kubernetes-secret", &"4f".repeat(32))),
        ("/fleet/lb-key", file("kubernetes-lb-key", &"a0".repeat(16))),
        ("$(SERVER_ID)", "2".to_owned()),
    ];
    let mut command = Command::new(PROGRAM);
    for arg in container.args.unwrap() {
        let found = replaced.iter().find(|(from, _)| arg.ends_with(from));
        let arg = found.map_or(arg.clone(), |(from, to)| arg.replace(from, to));
        command.arg(arg);
    }
    let mut server = Server::run(command);
    let connection = connect(&endpoint(authority.trust()), server.address).await;
    let connection = connection.unwrap();
    ask(&connection, 1).await.unwrap();
    connection.close(0, b"done");
    server.signal(Signal::TERM);
    assert_eq!(server.says(), "draining for at most 60 s");
    assert_eq!(server.says(), "drained: 0 connections were cut off");
}
