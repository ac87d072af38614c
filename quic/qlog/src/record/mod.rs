//! Events of a connection as records of a qlog.

pub(crate) mod closing;
pub(crate) mod frames;
pub(crate) mod handshake;
pub(crate) mod header;
pub(crate) mod recovery;
pub(crate) mod sheet;

use std::{
    fmt,
    net::Ipv4Addr,
    time::{Duration, Instant},
};

use hybriq_proto::{
    events::{
        Change, Cid, DropTrigger, Event, KeyLevel, Meta, Packet, PacketDropped, PacketKind,
        Parameters, PathAddresses,
        agreement::{EarlyData, Handshake},
    },
    stats::PathStats,
    wire::{error::By, frame::FrameReader, udp::Ecn},
};
use hybriq_tls::Side;

use self::sheet::{Sheet, owner, packet_type, put_local, put_peer, sheet_owner};
use super::{
    json::Object,
    schema::{Addresses, Name, Schema},
};

/// State of a connection's log that later events need.
#[derive(Debug)]
pub(super) struct Recorder {
    pub(super) schema: Schema,
    pub(super) addresses: Addresses,
    /// Time from which event times are counted.
    pub(super) epoch: Instant,
    /// Id of the connection, in a log of several connections.
    pub(super) group: Option<Cid>,
    side: Side,
    path: Option<PathStats>,
    /// Exponents of ACK delays: ours and the peer's.
    exponents: [u8; 2],
    /// Versions that the ends support: ours and the peer's.
    versions: [Vec<u32>; 2],
    paths: u64,
    addressed: Option<PathAddresses>,
}

impl Recorder {
    pub(super) const fn new(
        schema: Schema,
        addresses: Addresses,
        epoch: Instant,
        side: Side,
    ) -> Self {
        Self {
            schema,
            addresses,
            epoch,
            group: None,
            side,
            path: None,
            exponents: [3; 2],
            versions: [const { Vec::new() }; 2],
            paths: 0,
            addressed: None,
        }
    }

    /// Appends the records of an event. Returns their number.
    pub(super) fn record(&mut self, out: &mut Vec<u8>, meta: &Meta, event: &Event<'_>) -> u64 {
        let mut sheet = Sheet {
            out,
            time: meta.time.saturating_duration_since(self.epoch),
            schema: self.schema,
            group: self.group,
            count: 0,
        };
        match event {
            Event::ConnectionStarted(at) => self.started(&mut sheet, at, meta.original_dcid),
            Event::ConnectionStateUpdated(change) => closing::state(&mut sheet, *change),
            Event::ConnectionClosed(error) => closing::closed(&mut sheet, error),
            Event::ParametersSet(set) => self.parameters(&mut sheet, set),
            Event::HandshakeCompleted(handshake) => self.completed(&mut sheet, handshake),
            Event::PacketSent(packet) => {
                self.packet(&mut sheet, Name::PacketSent, packet, self.exponents[0]);
            }
            Event::PacketReceived(packet) => {
                self.packet(&mut sheet, Name::PacketReceived, packet, self.exponents[1]);
            }
            Event::PacketDropped(dropped) => packet_dropped(&mut sheet, *dropped),
            Event::PacketBuffered(buffered) => sheet.write(Name::PacketBuffered, |data| {
                data.object("header", |header| {
                    header.text("packet_type", packet_type(buffered.kind));
                });
                data.object("raw", |raw| raw.uint("length", buffered.size as u64));
                data.text("trigger", "keys_unavailable");
            }),
            Event::PacketLost(lost) => recovery::packet_lost(&mut sheet, *lost),
            Event::SpuriousLosses(count) => {
                sheet.write(Name::SpuriousLosses, |data| data.uint("count", *count));
            }
            Event::MetricsUpdated(path) => self.metrics(&mut sheet, *path),
            Event::CongestionStateUpdated(change) => recovery::phase(&mut sheet, *change),
            Event::EcnStateUpdated(change) => recovery::ecn_state(&mut sheet, *change),
            Event::LossTimerUpdated(timer) => recovery::loss_timer(&mut sheet, *timer),
            Event::AckFrequencyUpdated(update) => recovery::ack_frequency(&mut sheet, *update),
            Event::KeyUpdated(count) => {
                self.keys(&mut sheet, Name::KeyUpdated, KeyLevel::OneRtt, Some(*count));
            }
            Event::KeysInstalled(level) => {
                let phase = (*level == KeyLevel::OneRtt).then_some(0);
                self.keys(&mut sheet, Name::KeyUpdated, *level, phase);
            }
            Event::KeysDiscarded(level) => {
                self.keys(&mut sheet, Name::KeyDiscarded, *level, None);
            }
            Event::PeerCidUpdated(change) => sheet.write(Name::ConnectionIdUpdated, |data| {
                data.text(sheet_owner(self.schema), "remote");
                data.hex("old", change.old.as_bytes());
                data.hex("new", change.new.as_bytes());
            }),
            Event::PathUpdated(change) => self.moved(&mut sheet, change),
            // The version in use is recorded when the handshake is complete.
            _ => {}
        }
        sheet.count
    }

    /// Appends a warning.
    pub(super) fn warn(&self, out: &mut Vec<u8>, time: Duration, message: fmt::Arguments<'_>) {
        let mut sheet = Sheet {
            out,
            time,
            schema: self.schema,
            group: self.group,
            count: 0,
        };
        sheet.write(Name::Warning, |data| {
            data.shown("message", message);
        });
    }

    fn started(&mut self, sheet: &mut Sheet<'_>, at: &PathAddresses, id: Cid) {
        let addresses = self.addresses;
        match self.schema {
            Schema::V03 => sheet.write(Name::ConnectionStarted, |data| {
                let version = if at.peer.is_ipv4() { "v4" } else { "v6" };
                data.text("ip_version", version);
                let local = at.local.unwrap_or(Ipv4Addr::UNSPECIFIED.into());
                match addresses {
                    Addresses::Written => {
                        data.shown("src_ip", local);
                        data.shown("dst_ip", at.peer.ip());
                        data.uint("dst_port", at.peer.port().into());
                    }
                    Addresses::Omitted => {
                        data.text("src_ip", "");
                        data.text("dst_ip", "");
                    }
                }
                data.text("protocol", "QUIC");
                // The client chose it; before the server's first packet it is the destination's.
                let side = if self.side.is_client() {
                    "dst_cid"
                } else {
                    "src_cid"
                };
                data.hex(side, id.as_bytes());
            }),
            Schema::Draft13 => {
                sheet.write(Name::ConnectionStarted, |data| {
                    data.object("local", |local| put_local(local, at.local, addresses));
                    data.object("remote", |remote| put_peer(remote, at.peer, addresses));
                });
            }
        }
        self.assign(sheet, at);
    }

    /// Assigns a name to a path, and records its addresses.
    fn assign(&mut self, sheet: &mut Sheet<'_>, at: &PathAddresses) {
        let addresses = self.addresses;
        let name = self.paths;
        self.paths += 1;
        self.addressed = Some(*at);
        sheet.write(Name::TupleAssigned, |data| {
            let (id, peer, local) = match self.schema {
                Schema::V03 => ("path_id", "path_remote", "path_local"),
                Schema::Draft13 => ("tuple_id", "tuple_remote", "tuple_local"),
            };
            data.shown(id, name);
            data.object(peer, |remote| put_peer(remote, at.peer, addresses));
            data.object(local, |object| put_local(object, at.local, addresses));
        });
    }

    fn moved(&mut self, sheet: &mut Sheet<'_>, change: &Change<PathAddresses>) {
        // The first datagram reveals the address that it was sent to.
        let learned = change.old.peer == change.new.peer && change.old.local.is_none();
        self.assign(sheet, &change.new);
        if learned {
            return;
        }
        let name = self.paths - 1;
        sheet.write(Name::PathUpdated, |data| {
            data.text("new", "migration_complete");
            let id = match self.schema {
                Schema::V03 => "path_id",
                Schema::Draft13 => "tuple_id",
            };
            data.shown(id, name);
        });
    }

    fn parameters(&mut self, sheet: &mut Sheet<'_>, set: &Parameters<'_>) {
        let by = usize::from(set.by == By::Peer);
        self.exponents[by] = set.params.ack_delay_exponent;
        if let Some(information) = &set.params.version_information {
            self.versions[by] = information.available.to_vec();
        }
        sheet.write(Name::ParametersSet, |data| {
            data.text(sheet_owner(self.schema), owner(set.by));
            handshake::parameters(data, set.params, self.schema);
        });
    }

    fn completed(&self, sheet: &mut Sheet<'_>, handshake: &Handshake) {
        let [ours, peers] = &self.versions;
        let (client, server) = match self.side {
            Side::Client => (ours, peers),
            Side::Server => (peers, ours),
        };
        sheet.write(Name::VersionInformation, |data| {
            for (key, versions) in [("server_versions", server), ("client_versions", client)] {
                if !versions.is_empty() {
                    data.list(key, |list| {
                        for version in versions {
                            list.hex(&version.to_be_bytes());
                        }
                    });
                }
            }
            let chosen = handshake.version.number().to_be_bytes();
            data.hex("chosen_version", &chosen);
        });
        if let Some(alpn) = &handshake.alpn {
            sheet.write(Name::AlpnInformation, |data| match self.schema {
                Schema::V03 => data.text("chosen_alpn", &String::from_utf8_lossy(alpn)),
                Schema::Draft13 => data.object("chosen_alpn", |chosen| {
                    chosen.hex("byte_value", alpn);
                    if let Ok(text) = std::str::from_utf8(alpn) {
                        chosen.text("string_value", text);
                    }
                }),
            });
        }
        sheet.write(Name::ParametersSet, |data| {
            data.flag("resumption_allowed", handshake.resumed);
            let early = handshake.early_data == EarlyData::Accepted;
            data.flag("early_data_enabled", early);
            let cipher = handshake.suite.to_string();
            data.text("tls_cipher", cipher.trim_start_matches("TLS_"));
        });
        sheet.write(Name::KeyExchange, |data| {
            handshake::key_exchange(data, handshake);
        });
    }

    fn packet(&self, sheet: &mut Sheet<'_>, name: Name, packet: &Packet<'_>, exponent: u8) {
        let level = match packet.kind {
            PacketKind::Initial => KeyLevel::Initial,
            PacketKind::ZeroRtt => KeyLevel::ZeroRtt,
            PacketKind::Handshake => KeyLevel::Handshake,
            PacketKind::OneRtt => KeyLevel::OneRtt,
        };
        let exponent = frames::ack_delay_exponent(level, exponent);
        let mut omitted = 0;
        let fill = |data: &mut Object<'_>| {
            data.object("header", |header| {
                header.text("packet_type", packet_type(packet.kind));
                header.uint("packet_number", packet.number.get());
            });
            data.object("raw", |raw| {
                raw.uint("length", packet.size as u64);
                raw.uint("payload_length", packet.frames.payload().len() as u64);
            });
            data.list("frames", |list| {
                let frames = FrameReader::new(packet.frames.payload());
                omitted = frames::write(list, frames, self.schema, exponent);
            });
            omitted
        };
        sheet.write_with(name, fill, |event, omitted| {
            if omitted > 0 {
                event.uint("frames_omitted", omitted as u64);
            }
            if let Some(ecn) = packet.ecn {
                event.text("ecn", ecn_mark(ecn));
            }
        });
    }

    /// Writes the measurements that changed; before the first of them, the constants of loss
    /// detection.
    fn metrics(&mut self, sheet: &mut Sheet<'_>, new: PathStats) {
        let old = self.path.replace(new);
        if old.is_none() {
            sheet.write(Name::RecoveryParametersSet, |data| {
                data.uint("reordering_threshold", new.packet_threshold);
                data.float("time_threshold", 1.125);
                data.uint("timer_granularity", 1);
                data.ms("initial_rtt", new.smoothed_rtt);
                data.uint("max_datagram_size", new.datagram_size.into());
                data.uint("initial_congestion_window", new.congestion_window);
            });
        }
        if old.is_none_or(|old| recovery::metrics_differ(&old, &new)) {
            sheet.write(Name::MetricsUpdated, |data| {
                recovery::put_metrics(data, old.as_ref(), &new);
            });
        }
        if let Some(old) = old.filter(|old| old.datagram_size != new.datagram_size) {
            sheet.write(Name::MtuUpdated, |data| {
                data.uint("old", old.datagram_size.into());
                data.uint("new", new.datagram_size.into());
            });
        }
    }

    /// Writes an event for the keys of both directions, without the keys.
    fn keys(&self, sheet: &mut Sheet<'_>, name: Name, level: KeyLevel, phase: Option<u64>) {
        let both: &[&str] = match level {
            KeyLevel::Initial => &["server_initial_secret", "client_initial_secret"],
            KeyLevel::ZeroRtt => &["client_0rtt_secret"],
            KeyLevel::Handshake => &["server_handshake_secret", "client_handshake_secret"],
            KeyLevel::OneRtt => &["server_1rtt_secret", "client_1rtt_secret"],
        };
        for key in both {
            sheet.write(name, |data| {
                data.text("key_type", key);
                // qlog 0.3 requires the field; keys are never written.
                if self.schema == Schema::V03 && name == Name::KeyUpdated {
                    data.text("new", "");
                }
                if let Some(phase) = phase {
                    let key = match self.schema {
                        Schema::V03 => "generation",
                        Schema::Draft13 => "key_phase",
                    };
                    data.uint(key, phase);
                }
                if phase.is_none_or(|phase| phase == 0) && name == Name::KeyUpdated {
                    data.text("trigger", "tls");
                }
            });
        }
    }
}

fn packet_dropped(sheet: &mut Sheet<'_>, dropped: PacketDropped) {
    let schema = sheet.schema;
    sheet.write(Name::PacketDropped, |data| {
        data.object("raw", |raw| raw.uint("length", dropped.size as u64));
        let trigger = match dropped.trigger {
            DropTrigger::Unsupported => "unsupported",
            DropTrigger::ConnectionUnknown => "connection_unknown",
            DropTrigger::DecryptionFailure => "decryption_failure",
            DropTrigger::KeyUnavailable => "key_unavailable",
            DropTrigger::Duplicate => "duplicate",
            _ => "invalid",
        };
        // qlog 0.3 has no names for these two.
        let unnamed = matches!(
            dropped.trigger,
            DropTrigger::KeyUnavailable | DropTrigger::Duplicate
        );
        if schema == Schema::V03 && unnamed {
            data.object("details", |details| details.text("reason", trigger));
            data.text("trigger", "general");
        } else {
            data.text("trigger", trigger);
        }
    });
}

const fn ecn_mark(mark: Ecn) -> &'static str {
    match mark {
        Ecn::Ect0 => "ECT(0)",
        Ecn::Ect1 => "ECT(1)",
        Ecn::Ce => "CE",
    }
}
