//! The outcome of a handshake: transport parameters, and the key exchange.

use hybriq_proto::{
    events::agreement::{EarlyData, Handshake},
    wire::params::Params,
};
use hybriq_tls::{GroupKind, Lineage};

use crate::{json::Object, schema::Schema};

/// Writes the transport parameters of one end, without its stateless reset tokens: with one of them
/// anybody could end the connection. The preferred address also contains such a token.
pub(crate) fn parameters(data: &mut Object<'_>, params: &Params, schema: Schema) {
    let ids = [
        ("original_destination_connection_id", params.original_dcid),
        ("initial_source_connection_id", params.initial_scid),
        ("retry_source_connection_id", params.retry_scid),
    ];
    for (key, cid) in ids {
        if let Some(cid) = cid {
            data.hex(key, cid.as_bytes());
        }
    }
    let millis = |time: std::time::Duration| time.as_millis() as u64;
    data.flag("disable_active_migration", params.disable_active_migration);
    data.uint("max_idle_timeout", millis(params.max_idle_timeout));
    data.uint("max_udp_payload_size", params.max_udp_payload_size);
    data.uint("ack_delay_exponent", params.ack_delay_exponent.into());
    data.uint("max_ack_delay", millis(params.max_ack_delay));
    let limit = params.active_connection_id_limit;
    data.uint("active_connection_id_limit", limit.min(u32::MAX.into()));
    data.uint("initial_max_data", params.initial_max_data);
    data.uint(
        "initial_max_stream_data_bidi_local",
        params.initial_max_stream_data_bidi_local,
    );
    data.uint(
        "initial_max_stream_data_bidi_remote",
        params.initial_max_stream_data_bidi_remote,
    );
    data.uint(
        "initial_max_stream_data_uni",
        params.initial_max_stream_data_uni,
    );
    data.uint("initial_max_streams_bidi", params.initial_max_streams_bidi);
    data.uint("initial_max_streams_uni", params.initial_max_streams_uni);
    if schema == Schema::Draft13 {
        data.uint("max_datagram_frame_size", params.max_datagram_frame_size);
        data.flag("grease_quic_bit", params.grease_quic_bit);
        data.flag("reset_stream_at", params.reset_stream_at);
    }
}

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
