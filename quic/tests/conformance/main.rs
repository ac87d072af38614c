//! Requirements of the RFCs that are visible on the wire, one file per chapter.
//! `evidence/conformance.md` says which test proves which requirement; the lists are in
//! `requirements/`.
#![expect(
    clippy::unwrap_used,
    reason = "a scenario that cannot go on has failed"
)]

mod architecture_page;
mod boundaries;
mod duo;
mod error_causes;
mod fence;
mod flights;
mod forger;
mod h3spec;
mod invariants;
mod parameters;
mod pathtap;
mod quic_fuzz;
mod rfc8899;
mod rfc8999;
mod rfc9000_02_streams;
mod rfc9000_03_stream_states;
mod rfc9000_04_flow_control;
mod rfc9000_05_connections;
mod rfc9000_06_version_negotiation;
mod rfc9000_07_handshake;
mod rfc9000_08_address_validation;
mod rfc9000_08_path_validation;
mod rfc9000_09_migration;
mod rfc9000_10_termination;
mod rfc9000_13_reliability;
mod rfc9000_14_datagram_size;
mod rfc9000_14_path_mtu;
mod rfc9000_17_packet_formats;
mod rfc9000_18_parameters;
mod rfc9000_19_frames;
mod rfc9000_21_security;
mod rfc9001_04_tls;
mod rfc9001_05_protection;
mod rfc9001_06_key_update;
mod rfc9001_08_tls_of_quic;
mod rfc9001_09_security;
mod rfc9221;
mod rfc9287;
mod rfc9368;
mod rfc9369;
mod security;
mod security_page;
mod stalled;
mod table;
mod table_is_complete;
mod wiretap;
