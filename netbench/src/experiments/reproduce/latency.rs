//! Experiment 3: the shares of computing and of the network in a handshake's time.

use super::measure::repetitions as repetitions_of;
use super::measure::{cell, connections, figure, measure, of_each, paired, scaled};
use super::section::{Finding, Section, Source, Value, ValueTable, Verdict, three_digits};
use super::{Budget, Experiment};
use hybriq::Group;

use crate::report::results::{CellResult, Repetition, Results, Summary};
use crate::scenario::Template;
use crate::system::failure::Failure;

const CLASSICAL: Group = Group::SECP256R1;
const HYBRID: Group = Group::SECP256R1MLKEM768;

/// Link across a continent, with a round trip of 70 ms.
const LINK: &str = "--delay 35ms";

/// Published increase of CPU time and bytes by the hybrid group.
const PUBLISHED_CLIENT_MS: f64 = 0.25;
const PUBLISHED_SERVER_MS: f64 = 0.23;
const PUBLISHED_BYTES: f64 = 2356.0;

pub(super) async fn run(experiment: &Experiment, budget: &Budget) -> Result<Section, Failure> {
    let (wanted, repetitions) = budget.choose(("48", 4), ("200", 10));
    let concurrency = budget.choose("4", "1");
    let axes = [
        ("group", "secp256r1,SecP256r1MLKEM768"),
        ("connections", wanted),
        ("concurrency", concurrency),
        ("warm_up", "8"),
        ("link", LINK),
    ];
    let template = Template::load("connect")?.ending_after(budget.cell(2));
    let results = measure(template, &axes, repetitions, budget).await?;
    Ok(Section {
        source: Source {
            text: "AWS, blog on s2n-tls and hybrid key exchange, 2022".to_owned(),
            experiment: "2,000 connections across a continent, classical ECDHE against ECDHE with \
                         Kyber: computing of the client, of the server, and the network; bytes."
                .to_owned(),
        },
        published: vec![published()],
        ours: vec![ours(&results)],
        finding: finding(&results),
        rule: "It agrees where the hybrid costs both ends more CPU time, together less than 5 % of the \
               handshake, the network is more than 80 % of it, and the bytes added are within a quarter of the published \
               ones."
            .to_owned(),
        notes: vec![
            format!(
                "{} of {} connections for each group, in turn, {concurrency} at a time, over an \
                 emulated link with a round trip of 70 ms.",
                repetitions_of(&results),
                connections(&results)
            ),
            "Network is what is left of the median handshake without the CPU time of both ends. \
             CPU time is that of a whole connection, from its start to its close."
                .to_owned(),
            "The published bytes are those of TLS; ours are those of QUIC, which pads the \
             client's first datagrams to 1200 bytes each."
                .to_owned(),
        ],
        problems: results.problems.clone(),
        results: Some(Box::new(results)),
        ..Section::begin(experiment)
    })
}

fn published() -> ValueTable {
    let columns = [("client CPU", "ms"), ("server CPU", "ms"), ("bytes", "B")];
    ValueTable::new("Published: what the hybrid adds", "", &columns).row(
        "Kyber beside ECDHE",
        [PUBLISHED_CLIENT_MS, PUBLISHED_SERVER_MS, PUBLISHED_BYTES],
    )
}

fn ours(results: &Results) -> ValueTable {
    let columns = [
        ("client CPU", "ms"),
        ("server CPU", "ms"),
        ("network", "ms"),
        ("handshake, median", "ms"),
        ("to the server", "B"),
        ("to the client", "B"),
    ];
    let mut table = ValueTable::new("Here", "group", &columns);
    for (group, name) in [
        (CLASSICAL, "P-256".to_owned()),
        (HYBRID, HYBRID.to_string()),
    ] {
        let own = cell(results, group, &[]);
        let ms = |metric| Value::from(figure(own, metric).map(|us| scaled(us, 1e-3)));
        let bytes = |metric| Value::from(figure(own, metric));
        table.push(
            name,
            [
                ms("client_cpu_us"),
                ms("server_cpu_us"),
                of_each(own, network_ms).into(),
                ms("handshake_p50_us"),
                bytes("handshake_bytes_to_server"),
                bytes("handshake_bytes_to_client"),
            ],
        );
    }
    let (one, base) = (cell(results, HYBRID, &[]), cell(results, CLASSICAL, &[]));
    let metrics = ["client_cpu_us", "server_cpu_us"];
    let mut added: Vec<Value> = metrics
        .map(|metric| added(one, base, metric).map(|us| scaled(us, 1e-3)).into())
        .to_vec();
    added.push(
        paired(one, base, |one, base| {
            Some(network_ms(one)? - network_ms(base)?)
        })
        .into(),
    );
    added.push(
        self::added(one, base, "handshake_p50_us")
            .map(|us| scaled(us, 1e-3))
            .into(),
    );
    added.push(self::added(one, base, "handshake_bytes_to_server").into());
    added.push(self::added(one, base, "handshake_bytes_to_client").into());
    table.push("added", added);
    table
}

fn network_ms(repetition: &Repetition) -> Option<f64> {
    let metric = |name| repetition.metrics.get(name).copied();
    let computing = metric("client_cpu_us")? + metric("server_cpu_us")?;
    Some((metric("handshake_p50_us")? - computing).max(0.0) / 1e3)
}

fn added(one: Option<&CellResult>, base: Option<&CellResult>, metric: &str) -> Option<Summary> {
    paired(one, base, |one, base| {
        Some(one.metrics.get(metric)? - base.metrics.get(metric)?)
    })
}

/// Judges each part of the rule by the repetitions of the same turn.
fn verdict(one: Option<&CellResult>, base: Option<&CellResult>) -> Option<Verdict> {
    let metric = |of: &Repetition, name: &str| of.metrics.get(name).copied();
    let added_to = |one: &Repetition, base: &Repetition, names: [&str; 2]| {
        let parts = names.map(|name| Some(metric(one, name)? - metric(base, name)?));
        Some(parts[0]? + parts[1]?)
    };
    let computing = paired(one, base, |one, base| {
        let added = added_to(one, base, ["client_cpu_us", "server_cpu_us"])?;
        Some(added / metric(one, "handshake_p50_us")?)
    })?;
    let bytes = paired(one, base, |one, base| {
        let names = ["handshake_bytes_to_server", "handshake_bytes_to_client"];
        Some(added_to(one, base, names)? / PUBLISHED_BYTES)
    })?;
    let network = of_each(one, |one| {
        Some(network_ms(one)? * 1e3 / metric(one, "handshake_p50_us")?)
    })?;
    let more_cpu = |name| Some(Verdict::at_least(added(one, base, name)?, 0.0));
    Some(
        Verdict::within(computing, f64::NEG_INFINITY, 0.05)
            .and(more_cpu("client_cpu_us")?)
            .and(more_cpu("server_cpu_us")?)
            .and(Verdict::within(bytes, 0.75, 1.25))
            .and(Verdict::at_least(network, 0.8)),
    )
}

fn finding(results: &Results) -> Finding {
    let (one, base) = (cell(results, HYBRID, &[]), cell(results, CLASSICAL, &[]));
    let added = |metric| added(one, base, metric);
    let (Some(client), Some(server)) = (added("client_cpu_us"), added("server_cpu_us")) else {
        return Finding::unknown("CPU time is missing");
    };
    let (Some(up), Some(down)) = (
        added("handshake_bytes_to_server"),
        added("handshake_bytes_to_client"),
    ) else {
        return Finding::unknown("bytes are missing");
    };
    let (Some(network), Some(whole)) = (of_each(one, network_ms), figure(one, "handshake_p50_us"))
    else {
        return Finding::unknown("latency is missing");
    };
    let bytes = up.median + down.median;
    let share = network.median * 1e5 / whole.median;
    let Some(verdict) = verdict(one, base) else {
        return Finding::unknown("no repetition has all figures");
    };
    Finding::of(
        verdict,
        format!(
            "The hybrid adds {} ms at the client, {} ms at the server and {bytes:.0} bytes \
             (published {PUBLISHED_CLIENT_MS}, {PUBLISHED_SERVER_MS} and {PUBLISHED_BYTES:.0}); \
             {share:.0} % of its handshake is the network.",
            three_digits(client.median / 1e3),
            three_digits(server.median / 1e3),
        ),
    )
}

#[cfg(test)]
mod tests {
    use super::{CLASSICAL, HYBRID, finding, ours};
    use crate::experiments::reproduce::Verdict;
    use crate::experiments::reproduce::fixed::{cell, results};

    fn verdict(client_us: f64, bytes: f64, handshake_us: f64) -> Verdict {
        let cell = |group, cpu: f64, bytes: f64| {
            let metrics: [(&str, &[f64]); 5] = [
                ("client_cpu_us", &[cpu; 3]),
                ("server_cpu_us", &[900.0; 3]),
                ("handshake_p50_us", &[handshake_us; 3]),
                ("handshake_bytes_to_server", &[1300.0 + bytes / 2.0; 3]),
                ("handshake_bytes_to_client", &[1300.0 + bytes / 2.0; 3]),
            ];
            cell(group, &[], &metrics)
        };
        let cells = vec![cell(CLASSICAL, 800.0, 0.0), cell(HYBRID, client_us, bytes)];
        let results = results(cells);
        assert_eq!(ours(&results).rows.len(), 3);
        finding(&results).verdict
    }

    #[test]
    fn little_computing_much_network_and_the_bytes_of_a_hybrid_agree() {
        assert_eq!(verdict(1050.0, 2356.0, 72_000.0), Verdict::Agrees);
        assert_eq!(
            verdict(700.0, 2356.0, 72_000.0),
            Verdict::Differs,
            "the hybrid cannot be cheaper"
        );
        assert_eq!(verdict(9000.0, 2356.0, 72_000.0), Verdict::Differs);
        assert_eq!(verdict(1050.0, 1000.0, 72_000.0), Verdict::Differs);
        assert_eq!(verdict(1050.0, 2356.0, 4000.0), Verdict::Differs);
        assert_eq!(finding(&results(Vec::new())).verdict, Verdict::Unknown);
    }
}
