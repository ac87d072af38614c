//! Hosts of their own, each with its addresses, as network namespaces joined by a cable.
//!
//! ```text
//!  clients' host                        servers' host
//!  192.0.2.1, 2001:db8::1 ─── veth ─── 192.0.2.2, 2001:db8::2
//! ```

use std::process::Command;

use crate::agent::{Agent, NETBENCH, without_variables};
use crate::client::{Client, count, repetition, succeeded};

/// Two namespaces. They go with this, and the cable with them.
struct Hosts {
    clients: String,
    servers: String,
}

fn ip(words: &str) -> Result<(), String> {
    let mut ip = Command::new("ip");
    let output = ip.args(words.split_whitespace()).output();
    let output = output.map_err(|error| format!("ip: {error}"))?;
    if output.status.success() {
        return Ok(());
    }
    let why = String::from_utf8_lossy(&output.stderr);
    Err(format!("ip {words}: {}", why.trim()))
}

impl Hosts {
    /// An error: it is not permitted here, and why.
    fn new() -> Result<Self, String> {
        let id = std::process::id();
        let hosts = Self {
            clients: format!("netbench-c{id}"),
            servers: format!("netbench-s{id}"),
        };
        let Self { clients, servers } = &hosts;
        for host in [clients, servers] {
            ip(&format!("netns add {host}"))?;
            ip(&format!("-n {host} link set lo up"))?;
        }
        ip(&format!(
            "link add cable netns {clients} type veth peer name cable netns {servers}"
        ))?;
        for (host, number) in [(clients, 1), (servers, 2)] {
            ip(&format!("-n {host} addr add 192.0.2.{number}/24 dev cable"))?;
            // At once, without asking whether another has the address.
            ip(&format!(
                "-n {host} addr add 2001:db8::{number}/64 dev cable nodad"
            ))?;
            ip(&format!("-n {host} link set cable up"))?;
        }
        Ok(hosts)
    }

    /// netbench on one of them.
    fn netbench(host: &str) -> Command {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", host, NETBENCH]);
        without_variables(command)
    }

    /// The bytes that have come in at the servers' end of the cable, by the kernel's count.
    fn received(&self) -> u64 {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &self.servers, "cat"]);
        command.arg("/sys/class/net/cable/statistics/rx_bytes");
        let text = command.output().unwrap().stdout;
        String::from_utf8(text).unwrap().trim().parse().unwrap()
    }
}

impl Drop for Hosts {
    fn drop(&mut self) {
        for host in [&self.clients, &self.servers] {
            let _ = ip(&format!("netns del {host}"));
        }
    }
}

#[test]
fn a_client_on_another_host_measures_over_both_kinds_of_addresses() {
    let hosts = match Hosts::new() {
        Ok(hosts) => hosts,
        Err(why) => {
            test_summary::skip(format!("network namespaces need root and iproute2: {why}"));
            return;
        }
    };
    for (name, listen) in [("ipv4", "192.0.2.2:0"), ("ipv6", "[2001:db8::2]:0")] {
        let mut server = Hosts::netbench(&hosts.servers);
        server.args(["server", "--token", "correct horse", "--listen", listen]);
        let agent = Agent::of(server);
        let before = hosts.received();

        let mut client = Hosts::netbench(&hosts.clients);
        client
            .env("SERVER_0", agent.address.to_string())
            .env("NETBENCH_TOKEN", "correct horse")
            .args(["client", "--group", "X25519MLKEM768"])
            .args(["--connections", "20", "--repetitions", "1"]);
        let results = Client::of(name, client).finish().results();

        let repetition = repetition(&results, 0);
        assert_eq!(succeeded(repetition), 20, "{name}");
        assert_eq!(repetition["server"]["completed"], 20, "{name}");
        // All of it has gone over the cable, with headers, warm-up and control port on top.
        let sent = count(&repetition["client"]["traffic"]["sent_bytes"]);
        assert!(hosts.received() - before > sent, "{name}");
    }
}
