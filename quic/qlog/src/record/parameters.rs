//! Transport parameters in qlog.

use hybriq_proto::wire::params::Params;

use crate::{json::Object, schema::Schema};

/// Writes the transport parameters of one end, without its stateless reset tokens: with one of them
/// anybody could end the connection. The preferred address also contains such a token.
pub(crate) fn write(data: &mut Object<'_>, params: &Params, schema: Schema) {
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
