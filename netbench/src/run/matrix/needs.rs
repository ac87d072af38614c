//! Checks that a stack can do what a scenario and a link need.

use crate::drivers::{self, Role, Streams};
use crate::scenario::axes::{Cell, Resumption};
use crate::scenario::{Op, Scenario};
use crate::system::failure::Failure;

/// Refuses, in one line, a scenario that the cell's stacks cannot play.
pub(crate) fn check(cell: &Cell, scenario: &Scenario) -> Result<(), Failure> {
    let server = drivers::driver(cell.driver)?;
    let client = drivers::driver(cell.client)?;
    server.check(Role::Server, cell)?;
    client.check(Role::Client, cell)?;
    if cell.workers > 1 && !server.has_workers() {
        let problem = format!("{} has no workers that share its address", server.name());
        return Err(format!("{problem}; use --workers 1 or --driver hybriq").into());
    }
    if Streams::of(scenario) == Streams::Http && cell.resumption == Resumption::ZeroRtt {
        return Err(
            "netbench sends no requests in 0-RTT packets; use resumption full or psk".into(),
        );
    }
    for driver in [server, client] {
        let name = driver.name();
        if !driver.has_datagrams() && scenario.has(&|op| matches!(op, Op::Datagrams(_))) {
            let problem = format!("{name} has no datagrams, which this scenario sends");
            return Err(format!("{problem}; use a QUIC stack, for example --driver hybriq").into());
        }
        if !driver.has_http() && Streams::of(scenario) == Streams::Http {
            let problem = format!("netbench has no HTTP with {name}");
            return Err(format!("{problem}; use hybriq, quinn, quiche or tcp-tls (HTTP/2)").into());
        }
        let congestion = cell.congestion.as_str();
        if !congestion.is_empty() && !driver.controllers().contains(&congestion) {
            let valid = driver.controllers().join(", ");
            return Err(match valid.as_str() {
                "" => format!("{name} has no choice of congestion controllers"),
                _ => format!("{name} has no congestion controller '{congestion}'; valid: {valid}"),
            }
            .into());
        }
        if !driver.is_over_udp() && !cell.link.is_empty() {
            let problem = format!("links carry UDP, and {name} is TCP");
            return Err(format!("{problem}; leave out --link or {name}").into());
        }
    }
    Ok(())
}
