//! The first record of a log.

use hybriq_proto::events::{Cid, Meta};
use hybriq_tls::Side;

use super::sheet::text_sequence;
use crate::{
    clock::WallClock,
    schema::{EVENT_SCHEMAS, Schema},
};

/// Returns the name of an end.
pub(crate) const fn role(side: Side) -> &'static str {
    match side {
        Side::Client => "client",
        Side::Server => "server",
    }
}

/// Returns the first record of a log that begins now. In a log of several connections, each event
/// names its group.
pub(crate) fn header(meta: &Meta, schema: Schema, group: Option<Cid>) -> Vec<u8> {
    let clock = WallClock::now();
    let mut out = Vec::with_capacity(512);
    let title = concat!("hybriq ", env!("CARGO_PKG_VERSION"));
    text_sequence(&mut out, |file| {
        // qvis expects these at the beginning.
        match schema {
            Schema::V03 => {
                file.text("qlog_version", "0.3");
                file.text("qlog_format", "JSON-SEQ");
            }
            Schema::Draft13 => {
                file.text("file_schema", "urn:ietf:params:qlog:file:sequential");
                file.text("serialization_format", "application/qlog+json-seq");
            }
        }
        file.text("title", title);
        file.object("trace", |trace| {
            trace.object("vantage_point", |point| {
                point.text("name", "hybriq");
                point.text("type", role(meta.side));
            });
            if schema == Schema::Draft13 {
                trace.list("event_schemas", |list| {
                    for uri in EVENT_SCHEMAS {
                        list.text(uri);
                    }
                });
            }
            trace.object("common_fields", |common| {
                if group.is_none() {
                    common.hex("group_id", meta.original_dcid.as_bytes());
                }
                match schema {
                    Schema::V03 => {
                        common.list("protocol_type", |list| list.text("QUIC"));
                        common.text("time_format", "relative");
                        common.ms("reference_time", clock.since_1970());
                    }
                    Schema::Draft13 => {
                        common.text("time_format", "relative_to_epoch");
                        common.object("reference_time", |reference| {
                            reference.text("clock_type", "monotonic");
                            reference.text("epoch", "unknown");
                            reference.shown("wall_clock_time", clock);
                        });
                    }
                }
            });
        });
    });
    out
}
