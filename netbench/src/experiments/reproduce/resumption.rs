//! Experiment 4, part three: the savings by session resumption.

use super::measure::repetitions as repetitions_of;
use super::measure::{change, connections, figure, measure, paired, percent};
use super::section::{Finding, Section, Source, Value, ValueTable, Verdict};
use super::{Budget, Experiment};
use hybriq::Group;

use crate::report::results::{CellResult, Repetition, Results};
use crate::scenario::Template;
use crate::scenario::axes::Resumption;
use crate::system::failure::Failure;

const CLASSICAL: Group = Group::X25519;
const HYBRID: Group = Group::X25519MLKEM768;

pub(super) async fn run(experiment: &Experiment, budget: &Budget) -> Result<Section, Failure> {
    let (wanted, repetitions) = budget.choose(("150", 4), ("1000", 10));
    let axes = [
        ("group", "X25519,X25519MLKEM768"),
        ("resumption", "full,psk,0-rtt"),
        ("connections", wanted),
    ];
    let template = Template::load("resumption")?.ending_after(budget.cell(6));
    let results = measure(template, &axes, repetitions, budget).await?;
    Ok(Section {
        source: Source {
            text: "AWS, blog on s2n-tls and hybrid key exchange, 2022".to_owned(),
            experiment: "Connections that begin with a ticket of an earlier one.".to_owned(),
        },
        published: vec![
            ValueTable::new("Published", "claim", &[("", "")])
                .row("the certificate", ["is bypassed"])
                .row("the hybrid's cost", ["is amortised"]),
        ],
        ours: vec![ours(&results)],
        finding: finding(&results),
        rule: "It agrees where both ends together spend less CPU time on a resumed hybrid connection \
               than on a full one, and than on a full classical one: a ticket saves more than the \
               hybrid costs."
            .to_owned(),
        notes: vec![format!(
            "{} of {} connections for each row, in turn, one after the other; a resumed handshake has a key exchange of its own (psk_dhe_ke), so \
             that the hybrid protects it too.",
            repetitions_of(&results),
            connections(&results)
        ),
        "Bytes do not show the certificate that is left out: QUIC pads the server's first datagram, \
         which has room for a chain of ECDSA, and a server that gives out tickets sends one."
            .to_owned()],
        problems: results.problems.clone(),
        results: Some(Box::new(results)),
        ..Section::begin(experiment)
    })
}

fn of(results: &Results, group: Group, resumption: Resumption) -> Option<&CellResult> {
    let mut cells = results.cells.iter();
    cells.find(|result| result.cell.group == group && result.cell.resumption == resumption)
}

fn ours(results: &Results) -> ValueTable {
    let columns = [
        ("begins with", ""),
        ("connections", "1/s"),
        ("first byte, median", "µs"),
        ("server CPU", "µs"),
        ("client CPU", "µs"),
        ("to the server", "B"),
        ("to the client", "B"),
    ];
    let mut table = ValueTable::new("Here", "group", &columns);
    for result in &results.cells {
        let names = [
            "connections_per_second",
            "first_byte_p50_us",
            "server_cpu_us",
            "client_cpu_us",
            "bytes_to_server",
            "bytes_to_client",
        ];
        let mut figures = vec![Value::from(match result.cell.resumption {
            Resumption::Full => "a full handshake",
            Resumption::Psk => "a ticket",
            Resumption::ZeroRtt => "a ticket and 0-RTT",
        })];
        figures.extend(
            names
                .iter()
                .map(|name| Value::from(figure(Some(result), name))),
        );
        table.push(result.cell.group.to_string(), figures);
    }
    table
}

fn finding(results: &Results) -> Finding {
    let full = of(results, HYBRID, Resumption::Full);
    let resumed = of(results, HYBRID, Resumption::Psk);
    let classical = of(results, CLASSICAL, Resumption::Full);
    let cpu = |one, base| Some(change(paired(one, base, computing)?));
    let (Some(saved), Some(against)) = (cpu(resumed, full), cpu(resumed, classical)) else {
        return Finding::unknown("CPU time is missing");
    };
    let below_zero = |change| Verdict::within(change, f64::NEG_INFINITY, 0.0);
    Finding::of(
        below_zero(saved).and(below_zero(against)),
        format!(
            "With a ticket both ends' CPU time of a hybrid connection changes by {} of a full \
             handshake's, and by {} of a classical full handshake's.",
            percent(saved),
            percent(against)
        ),
    )
}

/// Returns the ratio of the CPU times of both ends.
fn computing(one: &Repetition, base: &Repetition) -> Option<f64> {
    let cpu =
        |of: &Repetition| Some(of.metrics.get("server_cpu_us")? + of.metrics.get("client_cpu_us")?);
    Some(cpu(one)? / cpu(base)?)
}

#[cfg(test)]
mod tests {
    use super::{CLASSICAL, HYBRID, finding};
    use crate::experiments::reproduce::Verdict;
    use crate::experiments::reproduce::fixed::{cell, results};
    use crate::scenario::axes::Resumption;

    fn verdict(resumed_us: [f64; 3]) -> Verdict {
        let cell = |group, resumption, cpu: [f64; 3]| {
            let metrics: [(&str, &[f64]); 2] = [("server_cpu_us", &cpu), ("client_cpu_us", &cpu)];
            let mut cell = cell(group, &[], &metrics);
            cell.cell.resumption = resumption;
            cell
        };
        let cells = vec![
            cell(CLASSICAL, Resumption::Full, [300.0, 300.0, 300.0]),
            cell(HYBRID, Resumption::Full, [350.0, 350.0, 350.0]),
            cell(HYBRID, Resumption::Psk, resumed_us),
        ];
        finding(&results(cells)).verdict
    }

    #[test]
    fn a_ticket_has_to_save_more_than_the_hybrid_costs() {
        assert_eq!(verdict([250.0, 255.0, 260.0]), Verdict::Agrees);
        assert_eq!(verdict([320.0, 325.0, 330.0]), Verdict::Differs);
        assert_eq!(verdict([280.0, 305.0, 330.0]), Verdict::Unclear);
        assert_eq!(finding(&results(Vec::new())).verdict, Verdict::Unknown);
    }
}
