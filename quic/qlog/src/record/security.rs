//! The outcome of the key exchange.

use hybriq_proto::events::agreement::{EarlyData, Handshake};
use hybriq_tls::{GroupKind, Lineage};

use crate::json::Object;

/// Writes the outcome of the key exchange.
pub(crate) fn key_exchange(data: &mut Object<'_>, handshake: &Handshake) {
    let exchange = &handshake.key_exchange;
    data.shown("group", exchange.group);
    data.uint("group_id", exchange.group.0.into());
    let kind = match exchange.kind() {
        GroupKind::Classical => "classical",
        GroupKind::Hybrid => "hybrid",
        GroupKind::PostQuantum => "post_quantum",
        _ => "unknown",
    };
    data.text("kind", kind);
    data.flag("post_quantum", exchange.is_post_quantum());
    data.flag("hello_retry_request", exchange.hello_retry);
    data.uint("client_share_length", exchange.client_share as u64);
    data.uint("server_share_length", exchange.server_share as u64);
    data.shown("cipher_suite", handshake.suite);
    if let Some(scheme) = handshake.signature_scheme {
        match scheme.name() {
            Some(name) => data.text("signature_scheme", name),
            None => data.shown("signature_scheme", format_args!("{:#06x}", scheme.0)),
        }
    }
    data.flag("resumed", handshake.resumed);
    let lineage = match handshake.lineage {
        Lineage::PostQuantum => "post_quantum",
        Lineage::Classical => "classical",
    };
    data.text("lineage", lineage);
    let early = match handshake.early_data {
        EarlyData::None => "none",
        EarlyData::Accepted => "accepted",
        EarlyData::Rejected => "rejected",
    };
    data.text("early_data", early);
    if let Some(downgrade) = handshake.downgrade {
        data.shown("downgrade", downgrade);
    }
}
