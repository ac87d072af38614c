//! Checks that a stack can do what a scenario and a link need.

use crate::Failure;
use crate::axes::Cell;
use crate::drivers::{self, Role};
use crate::scenario::{ClientOp, Connect, Op, Scenario};

/// Refuses, in one line, a scenario that the cell's stacks cannot play.
pub(super) fn check(cell: &Cell, scenario: &Scenario) -> Result<(), Failure> {
    let server = drivers::driver(cell.driver)?;
    let client = drivers::driver(cell.client)?;
    server.check(Role::Server, cell)?;
    client.check(Role::Client, cell)?;
    if cell.workers > 1 && !server.has_workers() {
        let problem = format!("{} has no workers that share its address", server.name());
        return Err(format!("{problem}; use --workers 1 or --driver hybriq").into());
    }
    for driver in [server, client] {
        let name = driver.name();
        if !driver.has_datagrams() && has_datagrams(scenario) {
            let problem = format!("{name} has no datagrams, which this scenario sends");
            return Err(format!("{problem}; use a QUIC stack, for example --driver hybriq").into());
        }
        if !driver.is_over_udp() && !cell.link.is_empty() {
            let problem = format!("links carry UDP, and {name} is TCP");
            return Err(format!("{problem}; leave out --link or {name}").into());
        }
    }
    Ok(())
}

fn has_datagrams(scenario: &Scenario) -> bool {
    let mut ops = scenario.clients.iter().flat_map(|client| &client.ops);
    ops.any(of_client)
}

fn of_client(op: &ClientOp) -> bool {
    match op {
        ClientOp::Connect(connect) => of_connections(connect),
        ClientOp::Pool(pool) => of_scripts(&pool.ops),
        ClientOp::Scope(threads) => threads.iter().flatten().any(of_client),
        ClientOp::Iterate(iterate) => iterate.ops.iter().any(of_client),
        ClientOp::Hold(_) | ClientOp::Sleep(_) | ClientOp::Park(_) | ClientOp::Unpark(_) => false,
    }
}

fn of_connections(connect: &Connect) -> bool {
    of_scripts(&connect.ops) || of_scripts(&connect.server_ops)
}

fn of_scripts(ops: &[Op]) -> bool {
    ops.iter().any(|op| match op {
        Op::Datagrams(_) => true,
        Op::OpenBidi(open) | Op::OpenUni(open) => of_scripts(&open.peer),
        Op::Scope(threads) => threads.iter().any(|ops| of_scripts(ops)),
        Op::Iterate(iterate) => of_scripts(&iterate.ops),
        Op::Request(request) => of_scripts(&request.ops),
        _ => false,
    })
}
