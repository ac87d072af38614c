//! The table of limits in `docs/server.md`, made from this list.

use std::{fmt::Write as _, time::Duration};

use super::{EarlyMethods, Limits};

const PAGE: &str = include_str!("../../docs/server.md");

/// A limit: what it bounds, and what happens beyond it in HTTP/1.1, HTTP/2 and HTTP/3.
struct Line {
    name: &'static str,
    default: String,
    bounds: &'static str,
    beyond: [&'static str; 3],
}

/// Returns all limits. One that is missing does not compile.
#[expect(clippy::too_many_lines, reason = "a table, with a line for each limit")]
fn all() -> Vec<Line> {
    let Limits {
        header_list,
        field_table,
        header_time,
        stall_time,
        requests,
        cancelled,
        idle_time,
        drain_time,
        tcp_connections,
        memory,
        early_methods,
    } = Limits::default();
    let line = |name, default: String, bounds, beyond| Line {
        name,
        default,
        bounds,
        beyond,
    };
    let kib = |bytes: u64| format!("{} KiB", bytes >> 10);
    let time = |time: Duration| format!("{} s", time.as_secs());
    vec![
        line(
            "header_list",
            kib(header_list),
            "size of a request's fields, plus 32 bytes for each; at most 792 KiB",
            [
                "431",
                "431, or the connection ends",
                "431, or H3_EXCESSIVE_LOAD if a frame is longer",
            ],
        ),
        line(
            "field_table",
            kib(field_table),
            "dynamic table of QPACK, in each direction",
            [
                "there is none",
                "4 KiB, whatever the limit is",
                "QPACK_ENCODER_STREAM_ERROR",
            ],
        ),
        line(
            "header_time",
            time(header_time),
            "time to a request's last field, and to the first request",
            [
                "the connection ends",
                "the connection ends",
                "the request is reset; without a request, the connection ends",
            ],
        ),
        line(
            "stall_time",
            time(stall_time),
            "time in which no data of a body arrives that the service is reading, or no data of a response is accepted",
            [
                "the body fails; the connection ends",
                "the body fails; CANCEL, or GOAWAY if data is stuck below the stream",
                "the body fails; H3_REQUEST_CANCELLED",
            ],
        ),
        line(
            "requests",
            requests.to_string(),
            "requests on a connection",
            [
                "`connection: close` on the last",
                "GOAWAY, then REFUSED_STREAM",
                "GOAWAY, then H3_REQUEST_REJECTED",
            ],
        ),
        line(
            "cancelled",
            cancelled.to_string(),
            "requests cancelled in 10 s before their response began, in addition to one for each answered request",
            [
                "nothing: a client can cancel only by closing the connection",
                "REFUSED_STREAM; after as many refusals GOAWAY: responses in progress are completed, then the connection ends",
                "H3_REQUEST_REJECTED; after as many refusals GOAWAY: responses in progress are completed, then H3_EXCESSIVE_LOAD",
            ],
        ),
        line(
            "idle_time",
            time(idle_time),
            "time without a request in progress",
            ["the connection ends", "GOAWAY", "GOAWAY"],
        ),
        line(
            "drain_time",
            time(drain_time),
            "time that requests in progress may take after their connection was told to end",
            ["the connection ends"; 3],
        ),
        line(
            "tcp_connections",
            tcp_connections.to_string(),
            "TCP connections; for QUIC, `EndpointBuilder::max_connections`",
            ["reset", "reset", "refused"],
        ),
        line(
            "memory",
            match memory {
                u64::MAX => "none".to_owned(),
                bytes => kib(bytes),
            },
            "bytes that all clients together take",
            ["idle connections end, the oldest first; 503; no new connections"; 3],
        ),
        line(
            "early_methods",
            match early_methods {
                EarlyMethods::Safe => "safe".to_owned(),
                EarlyMethods::All => "all".to_owned(),
            },
            "methods allowed in 0-RTT packets",
            ["TLS tickets over TCP allow no 0-RTT", "the same", "425"],
        ),
    ]
}

fn table() -> String {
    let mut table = String::from(
        "| `Limits::` | default | bounds | beyond it, HTTP/1.1 | HTTP/2 | HTTP/3 |\n|---|---|---|---|---|---|\n",
    );
    for line in all() {
        let Line {
            name,
            default,
            bounds,
            beyond: [http1, http2, http3],
        } = line;
        let _ = writeln!(
            table,
            "| `{name}` | {default} | {bounds} | {http1} | {http2} | {http3} |"
        );
    }
    table
}

#[test]
fn the_page_has_the_table_of_limits() {
    let table = table();
    assert!(PAGE.contains(&table), "the table should be:\n{table}");
}
