//! Waiting times and numbers of servers for a scenario.

use std::time::Duration;

use crate::scenario::{ClientOp, Op, Scenario};

/// Allowed time without any success while the scenario itself does not wait.
const PATIENCE: Duration = Duration::from_secs(30);

/// Limit for the wait for an answer, which otherwise is the time that a connection may take. Longer
/// ones make progress meanwhile.
const LONGEST_ANSWER: Duration = Duration::from_mins(1);

/// Returns the time without any success after which the run is given up: longer than any wait of
/// the scenario.
pub(crate) fn wait_for(scenario: &Scenario) -> Duration {
    let ops = scenario.clients.iter().flat_map(|client| &client.ops);
    PATIENCE + ops.map(longest).max().unwrap_or_default()
}

/// Returns the number of servers in the scenario.
pub(crate) fn servers(scenario: &Scenario) -> usize {
    let ops = scenario.clients.iter().flat_map(|client| &client.ops);
    ops.map(highest_server).max().unwrap_or(0) + 1
}

/// Returns true if anything begins at a fixed rate, whatever the servers can serve.
pub(crate) fn is_open_loop(scenario: &Scenario) -> bool {
    let mut ops = scenario.clients.iter().flat_map(|client| &client.ops);
    ops.any(has_rate)
}

fn longest(op: &ClientOp) -> Duration {
    match op {
        ClientOp::Sleep(time) => *time,
        ClientOp::Hold(hold) => hold.timeout + hold.settle,
        ClientOp::Connect(connect) => {
            let sleeps = connect.ops.iter().map(longest_of_connection).max();
            connect
                .timeout
                .min(LONGEST_ANSWER)
                .max(sleeps.unwrap_or_default())
        }
        ClientOp::Scope(threads) => threads
            .iter()
            .flatten()
            .map(longest)
            .max()
            .unwrap_or_default(),
        ClientOp::Iterate(iterate) => iterate.ops.iter().map(longest).max().unwrap_or_default(),
        ClientOp::Pool(pool) => {
            let every = pool.every.unwrap_or_default();
            pool.timeout.min(LONGEST_ANSWER).max(every)
        }
        ClientOp::Park(_) | ClientOp::Unpark(_) => Duration::ZERO,
    }
}

fn longest_of_connection(op: &Op) -> Duration {
    let of_all = |ops: &[Op]| ops.iter().map(longest_of_connection).max();
    match op {
        Op::Sleep(time) => *time,
        Op::Scope(threads) => threads
            .iter()
            .filter_map(|ops| of_all(ops))
            .max()
            .unwrap_or_default(),
        Op::Iterate(iterate) => of_all(&iterate.ops).unwrap_or_default(),
        Op::Request(request) => of_all(&request.ops).unwrap_or_default(),
        _ => Duration::ZERO,
    }
}

fn highest_server(op: &ClientOp) -> usize {
    match op {
        ClientOp::Connect(connect) => connect.server,
        ClientOp::Pool(pool) => pool.server,
        ClientOp::Hold(hold) => hold.server,
        ClientOp::Scope(threads) => threads
            .iter()
            .flatten()
            .map(highest_server)
            .max()
            .unwrap_or(0),
        ClientOp::Iterate(iterate) => iterate.ops.iter().map(highest_server).max().unwrap_or(0),
        _ => 0,
    }
}

fn has_rate(op: &ClientOp) -> bool {
    match op {
        ClientOp::Connect(connect) => connect.rate.is_some(),
        ClientOp::Pool(pool) => pool.rate.is_some(),
        ClientOp::Scope(threads) => threads.iter().flatten().any(has_rate),
        ClientOp::Iterate(iterate) => iterate.rate.is_some() || iterate.ops.iter().any(has_rate),
        _ => false,
    }
}
