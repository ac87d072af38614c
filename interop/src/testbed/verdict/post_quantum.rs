//! Checks of a post-quantum handshake.

use std::time::Duration;

use super::{Evidence, connections, count, demand, expect_handshakes, runner::retry};
use crate::{ServerHello, runner::Role::Client, testbed::dissect::Kind};

/// Returns the last ServerHello, and if a HelloRetryRequest was before it.
fn key_exchange(run: &Evidence) -> Result<(ServerHello, bool), String> {
    let connection = connections(run)?.first().ok_or("no connection")?;
    let hellos = &connection.server_hellos;
    let hello = hellos.last().ok_or("no ServerHello")?;
    Ok((*hello, hellos.iter().any(|hello| hello.retry)))
}

/// Checks the key exchange that the hellos show.
fn post_quantum_group(run: &Evidence) -> Result<String, String> {
    let (ServerHello { group, .. }, retried) = key_exchange(run)?;
    demand(
        group.is_post_quantum(),
        format!("{group} is not post-quantum"),
    )?;
    Ok(if retried {
        format!("{group} after HelloRetryRequest")
    } else {
        group.to_string()
    })
}

/// Returns the first datagrams that the client sent, before any arrived from the server.
fn first_datagrams(run: &Evidence) -> usize {
    let datagrams = run.client.datagrams.iter();
    datagrams
        .take_while(|datagram| datagram.from == Client)
        .count()
}

/// One handshake with a post-quantum group, whose ClientHello needs two Initial packets.
pub(in crate::testbed) fn post_quantum(run: &Evidence) -> Result<String, String> {
    expect_handshakes(run, 1)?;
    demand(count(run, Kind::Retry) == 0, "a Retry was sent")?;
    let group = post_quantum_group(run)?;
    demand(
        first_datagrams(run) >= 2,
        "the ClientHello does not take two datagrams",
    )?;
    Ok(group)
}

/// The same with a Retry.
pub(in crate::testbed) fn post_quantum_retry(run: &Evidence) -> Result<String, String> {
    retry(run)?;
    post_quantum_group(run)
}

/// One handshake with the server's only group. Returns it, and true if a HelloRetryRequest was sent.
fn only_group(run: &Evidence) -> Result<(String, bool), String> {
    expect_handshakes(run, 1)?;
    let (ServerHello { group, .. }, retried) = key_exchange(run)?;
    let group = group.to_string();
    demand(group == run.groups, format!("{group} was chosen"))?;
    Ok((group, retried))
}

/// One handshake with the group that both ends have, without a HelloRetryRequest.
pub(in crate::testbed) fn group(run: &Evidence) -> Result<String, String> {
    let (group, retried) = only_group(run)?;
    demand(!retried, "a HelloRetryRequest was sent")?;
    Ok(group)
}

/// One handshake with the server's only group, after a HelloRetryRequest.
pub(in crate::testbed) fn hello_retry(run: &Evidence) -> Result<String, String> {
    let (group, retried) = only_group(run)?;
    demand(retried, "no HelloRetryRequest was sent")?;
    Ok(group)
}

/// Time that a handshake may take with one probe timeout of a client that knows no round trip: thrice 333 ms
/// (RFC 9002 §6.2.2), some round trips of 30 ms, and the work.
const ONE_PROBE: Duration = Duration::from_millis(1300);

/// One handshake with a post-quantum group, where datagrams were lost: that costs one probe timeout.
pub(in crate::testbed) fn post_quantum_with_loss(run: &Evidence) -> Result<String, String> {
    expect_handshakes(run, 1)?;
    let group = post_quantum_group(run)?;
    let done = run
        .client
        .packets(Client)
        .find(|(_, packet)| packet.kind == Kind::OneRtt && packet.opened.is_some());
    let at = done
        .map(|(datagram, _)| datagram.at)
        .ok_or("no 1-RTT packet")?;
    let first = run
        .client
        .datagrams
        .first()
        .map_or(at, |datagram| datagram.at);
    let time = at.saturating_sub(first);
    let text = format!("{group}, {} ms", time.as_millis());
    demand(time <= ONE_PROBE, format!("more than one probe: {text}"))?;
    Ok(text)
}
