//! Built-in scenarios.

/// Names and texts, in the order of the list.
pub(crate) const ALL: [(&str, &str); 17] = [
    ("connect", include_str!("../../../scenarios/connect.json")),
    (
        "request-response",
        include_str!("../../../scenarios/request-response.json"),
    ),
    ("ping", include_str!("../../../scenarios/ping.json")),
    ("bulk", include_str!("../../../scenarios/bulk.json")),
    (
        "many-streams",
        include_str!("../../../scenarios/many-streams.json"),
    ),
    ("http", include_str!("../../../scenarios/http.json")),
    (
        "http-bulk",
        include_str!("../../../scenarios/http-bulk.json"),
    ),
    (
        "http-connect",
        include_str!("../../../scenarios/http-connect.json"),
    ),
    (
        "datagrams",
        include_str!("../../../scenarios/datagrams.json"),
    ),
    ("pool", include_str!("../../../scenarios/pool.json")),
    ("bursts", include_str!("../../../scenarios/bursts.json")),
    (
        "resumption",
        include_str!("../../../scenarios/resumption.json"),
    ),
    (
        "handshake-breakdown",
        include_str!("../../../scenarios/handshake-breakdown.json"),
    ),
    ("overload", include_str!("../../../scenarios/overload.json")),
    ("workers", include_str!("../../../scenarios/workers.json")),
    ("links", include_str!("../../../scenarios/links.json")),
    ("held", include_str!("../../../scenarios/held.json")),
];

/// Returns the names of the scenarios that are built in.
pub(crate) fn bundled() -> impl Iterator<Item = &'static str> {
    ALL.iter().map(|(name, _)| *name)
}

/// Returns the text of a scenario; `_` may stand for a dash.
pub(crate) fn text(name: &str) -> Option<&'static str> {
    let name = name.replace('_', "-");
    ALL.iter()
        .find(|(bundled, _)| *bundled == name)
        .map(|(_, text)| *text)
}
