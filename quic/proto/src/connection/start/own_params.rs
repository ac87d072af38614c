//! Transport parameters of this end.

use std::time::Duration;

use crate::{
    config::{PeerMigration, TransportConfig},
    owners::{acks::frequency::AckFrequency, cids},
    wire::{
        limits,
        packet::{Cid, Version, header_bits::Grease},
        params::{ACK_DELAY_EXPONENT, Params, PreferredAddress, VersionInformation},
    },
};

/// Returns our transport parameters.
pub(in crate::connection) fn local_params(
    config: &TransportConfig,
    version: Version,
    local_cid: Cid,
    original_dcid: Option<Cid>,
) -> Params {
    Params {
        version_information: Some(VersionInformation::new(version, config.spoken.versions)),
        original_dcid,
        initial_scid: Some(local_cid),
        max_idle_timeout: config.timeouts.idle_timeout.unwrap_or(Duration::ZERO),
        initial_max_data: config.streams.first_receive_window(),
        initial_max_stream_data_bidi_local: config.streams.first_stream_receive_window(),
        initial_max_stream_data_bidi_remote: config.streams.first_stream_receive_window(),
        initial_max_stream_data_uni: config.streams.first_stream_receive_window(),
        initial_max_streams_bidi: config.streams.max_bidi,
        initial_max_streams_uni: config.streams.max_uni,
        max_ack_delay: config.acks.max_ack_delay,
        min_ack_delay: AckFrequency::new(config.acks.max_ack_delay).local_min_delay(),
        reset_stream_at: true,
        max_datagram_frame_size: config.datagrams.max_frame_size(),
        ack_delay_exponent: ACK_DELAY_EXPONENT,
        disable_active_migration: config.migration.of_peer == PeerMigration::Disabled,
        active_connection_id_limit: limits::PEER_CIDS as u64,
        grease_quic_bit: config.free_bits.grease == Grease::On,
        ..Params::default()
    }
}

/// Returns the preferred address that a server announces, with a connection id for it.
pub(in crate::connection) fn announced(
    config: &TransportConfig,
    issued: Option<cids::Issued>,
) -> Option<PreferredAddress> {
    issued.map(|(cid, reset_token)| PreferredAddress {
        v4: config.migration.preferred_v4,
        v6: config.migration.preferred_v6,
        cid,
        reset_token,
    })
}
