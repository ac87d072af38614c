//! The manifests for Kubernetes: whether they fit together, and name commands that netbench has.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::path::Path;
use std::process::Command;

use saphyr::{LoadableYamlNode as _, Yaml};

fn text(file: &str) -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("kubernetes");
    std::fs::read_to_string(folder.join(file)).unwrap()
}

fn args(container: &Yaml<'_>) -> Vec<String> {
    let args = container["args"].as_sequence().unwrap().iter();
    args.map(|arg| arg.as_str().unwrap().to_owned()).collect()
}

fn value_after<'a>(args: &'a [String], flag: &str) -> &'a str {
    let position = args.iter().position(|arg| arg == flag).unwrap();
    &args[position + 1]
}

/// The value of an environment variable, or the field that it is taken from.
fn variable<'a>(container: &'a Yaml<'_>, name: &str) -> Option<&'a str> {
    let all = container["env"].as_sequence().unwrap();
    let found = all.iter().find(|it| it["name"].as_str() == Some(name))?;
    if let Some(value) = found.as_mapping_get("value") {
        return value.as_str();
    }
    let from = found.as_mapping_get("valueFrom")?;
    match from.as_mapping_get("fieldRef") {
        Some(field) => field["fieldPath"].as_str(),
        None => from["secretKeyRef"]["name"].as_str(),
    }
}

#[test]
fn servers_and_clients_find_each_other() {
    let (servers, clients) = (text("servers.yaml"), text("clients.yaml"));
    let servers = Yaml::load_from_str(&servers).unwrap();
    let clients = Yaml::load_from_str(&clients).unwrap();
    let (service, set, job) = (&servers[0], &servers[1], &clients[0]);
    let kinds = [service, set, job].map(|it| it["kind"].as_str().unwrap());
    assert_eq!(kinds, ["Service", "StatefulSet", "Job"]);

    // Headless, for the pods of the set.
    assert_eq!(service["spec"]["clusterIP"].as_str(), Some("None"));
    let labels = &set["spec"]["template"]["metadata"]["labels"];
    assert_eq!(&service["spec"]["selector"], labels);
    assert_eq!(&set["spec"]["selector"]["matchLabels"], labels);
    let service_name = service["metadata"]["name"].as_str().unwrap();
    assert_eq!(set["spec"]["serviceName"].as_str(), Some(service_name));

    let server = &set["spec"]["template"]["spec"]["containers"][0];
    let client = &job["spec"]["template"]["spec"]["containers"][0];
    let port = server["ports"][0]["containerPort"].as_integer().unwrap();
    let set_name = set["metadata"]["name"].as_str().unwrap();
    let address = format!("{set_name}-0.{service_name}:{port}");
    assert_eq!(variable(client, "SERVER_0"), Some(address.as_str()));
    let listen = args(server);
    assert!(value_after(&listen, "--listen").ends_with(&format!(":{port}")));
    assert_eq!(
        variable(client, "NETBENCH_TOKEN"),
        variable(server, "NETBENCH_TOKEN")
    );
}

#[test]
fn the_fleet_is_as_large_everywhere() {
    let (servers, clients) = (text("servers.yaml"), text("clients.yaml"));
    let servers = Yaml::load_from_str(&servers).unwrap();
    let clients = Yaml::load_from_str(&clients).unwrap();
    let job = &clients[0]["spec"];
    let server = &servers[1]["spec"]["template"]["spec"]["containers"][0];
    let client = &job["template"]["spec"]["containers"][0];
    assert_eq!(job["completionMode"].as_str(), Some("Indexed"));
    let size = job["completions"].as_integer().unwrap();
    assert_eq!(job["parallelism"].as_integer(), Some(size));
    for container in [server, client] {
        assert_eq!(value_after(&args(container), "--fleet"), size.to_string());
    }
    let index = variable(client, "CLIENT_ID").unwrap();
    assert!(index.contains("job-completion-index"), "{index}");
    assert_eq!(server["image"], client["image"]);
}

#[test]
fn their_commands_are_ones_that_netbench_takes() {
    let (servers, clients) = (text("servers.yaml"), text("clients.yaml"));
    let servers = Yaml::load_from_str(&servers).unwrap();
    let clients = Yaml::load_from_str(&clients).unwrap();
    let containers = [
        &servers[1]["spec"]["template"]["spec"]["containers"][0],
        &clients[0]["spec"]["template"]["spec"]["containers"][0],
    ];
    // Nobody can be reached: all that is left to complain about comes after the command line.
    for (container, complaint) in containers
        .iter()
        .zip(["NETBENCH_TOKEN", "no agent answers"])
    {
        let output = Command::new(env!("CARGO_BIN_EXE_netbench"))
            .args(args(container))
            .env_remove("NETBENCH_TOKEN")
            .env("SERVER_0", "127.0.0.1:1")
            .env(
                "SCENARIO",
                variable(container, "SCENARIO").unwrap_or("request-response"),
            )
            .env("CLIENT_ID", "2")
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(said.contains(complaint), "{said}");
    }
}
