//! Keys of s2n-netbench's scenario files.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Scenario {
    /// Unused: our id is a digest of the file's content.
    #[serde(default, rename = "id")]
    pub(super) _id: String,
    pub(super) clients: Vec<Client>,
    pub(super) servers: Vec<Server>,
    #[serde(default)]
    pub(super) routers: Vec<Value>,
    /// Labels, by the numbers in operations.
    #[serde(default)]
    pub(super) traces: Vec<String>,
    /// Unused: netbench makes its own certificates.
    #[serde(default, rename = "certificates")]
    pub(super) _certificates: Vec<Value>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Client {
    #[serde(default)]
    pub(super) name: String,
    pub(super) scenario: Vec<ClientOp>,
    pub(super) connections: Vec<Connection>,
    #[serde(default, rename = "configuration")]
    pub(super) _configuration: BTreeMap<String, String>,
    #[serde(default, rename = "certificate_authorities")]
    pub(super) _certificate_authorities: Vec<u64>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Server {
    #[serde(default, rename = "name")]
    pub(super) _name: String,
    pub(super) connections: Vec<Connection>,
    #[serde(default, rename = "configuration")]
    pub(super) _configuration: BTreeMap<String, String>,
    #[serde(default, rename = "private_key")]
    pub(super) _private_key: u64,
    #[serde(default, rename = "certificate")]
    pub(super) _certificate: u64,
    #[serde(default, rename = "certificate_authority")]
    pub(super) _certificate_authority: u64,
}

/// One side of a connection.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Connection {
    #[serde(default)]
    pub(super) ops: Vec<Op>,
    /// Scripts for the streams opened by the other side, by their number.
    #[serde(default)]
    pub(super) peer_streams: Vec<Vec<Op>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub(super) enum ClientOp {
    Sleep {
        timeout_ms: u64,
    },
    Connect {
        server_id: usize,
        #[serde(default)]
        router_id: Option<u64>,
        server_connection_id: usize,
        client_connection_id: usize,
    },
    Park {
        checkpoint: u64,
    },
    Unpark {
        checkpoint: u64,
    },
    Trace {
        #[serde(rename = "trace_id")]
        _trace_id: usize,
    },
    Scope {
        threads: Vec<Vec<ClientOp>>,
    },
}

#[derive(Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub(super) enum Op {
    Sleep {
        amount_ms: u64,
    },
    OpenBidirectionalStream {
        stream_id: u64,
    },
    OpenSendStream {
        stream_id: u64,
    },
    Send {
        stream_id: u64,
        bytes: u64,
    },
    SendFinish {
        stream_id: u64,
    },
    SendRate {
        stream_id: u64,
        bytes: u64,
        period_ms: u64,
    },
    Receive {
        stream_id: u64,
        bytes: u64,
    },
    ReceiveAll {
        stream_id: u64,
    },
    ReceiveFinish {
        stream_id: u64,
    },
    ReceiveRate {
        stream_id: u64,
        bytes: u64,
        period_ms: u64,
    },
    Park {
        checkpoint: u64,
    },
    Unpark {
        checkpoint: u64,
    },
    Trace {
        #[serde(rename = "trace_id")]
        _trace_id: usize,
    },
    Profile {
        trace_id: usize,
        operations: Vec<Op>,
    },
    Iterate {
        value: Turns,
        operations: Vec<Op>,
        #[serde(default)]
        trace_id: Option<usize>,
    },
    Scope {
        threads: Vec<Vec<Op>>,
    },
}

/// Length of a loop.
#[derive(Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub(super) enum Turns {
    Time { amount_ms: u64 },
    Count { amount: u64 },
}
