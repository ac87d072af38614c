//! Records of one event, as texts of a JSON text sequence.

use std::{
    net::{IpAddr, SocketAddr},
    time::Duration,
};

use hybriq_proto::{
    events::{Cid, PacketKind},
    wire::error::By,
};

use crate::{
    json::Object,
    schema::{Addresses, Name, Schema},
};

/// Destination of the records of one event.
pub(crate) struct Sheet<'a> {
    pub(crate) out: &'a mut Vec<u8>,
    pub(crate) time: Duration,
    pub(crate) schema: Schema,
    pub(crate) group: Option<Cid>,
    pub(crate) count: u64,
}

impl Sheet<'_> {
    pub(crate) fn write(&mut self, name: Name, data: impl FnOnce(&mut Object<'_>)) {
        self.write_with(name, data, |_, ()| {});
    }

    /// Writes a record with fields outside of its data.
    pub(crate) fn write_with<T>(
        &mut self,
        name: Name,
        data: impl FnOnce(&mut Object<'_>) -> T,
        more: impl FnOnce(&mut Object<'_>, T),
    ) {
        self.count += 1;
        let (time, schema, group) = (self.time, self.schema, self.group);
        text_sequence(self.out, |event| {
            event.ms("time", time);
            event.text("name", name.of(schema));
            if let Some(group) = group {
                event.hex("group_id", group.as_bytes());
            }
            let mut told = None;
            event.object("data", |object| told = Some(data(object)));
            if let Some(told) = told {
                more(event, told);
            }
        });
    }
}

/// Writes one text of a JSON text sequence: a record separator, the text, a line feed (RFC 7464).
pub(crate) fn text_sequence(out: &mut Vec<u8>, fill: impl FnOnce(&mut Object<'_>)) {
    out.push(0x1e);
    Object::write(out, fill);
    out.push(b'\n');
}

pub(crate) const fn sheet_owner(schema: Schema) -> &'static str {
    match schema {
        Schema::V03 => "owner",
        Schema::Draft13 => "initiator",
    }
}

pub(crate) const fn owner(by: By) -> &'static str {
    match by {
        By::Local => "local",
        By::Peer => "remote",
    }
}

pub(crate) const fn packet_type(kind: PacketKind) -> &'static str {
    match kind {
        PacketKind::Initial => "initial",
        PacketKind::ZeroRtt => "0RTT",
        PacketKind::Handshake => "handshake",
        PacketKind::OneRtt => "1RTT",
    }
}

pub(crate) fn put_peer(object: &mut Object<'_>, peer: SocketAddr, addresses: Addresses) {
    if addresses == Addresses::Written {
        let (ip, port) = match peer {
            SocketAddr::V4(_) => ("ip_v4", "port_v4"),
            SocketAddr::V6(_) => ("ip_v6", "port_v6"),
        };
        object.shown(ip, peer.ip());
        object.uint(port, peer.port().into());
    }
}

pub(crate) fn put_local(object: &mut Object<'_>, local: Option<IpAddr>, addresses: Addresses) {
    if let Some(ip) = local.filter(|_| addresses == Addresses::Written) {
        let key = if ip.is_ipv4() { "ip_v4" } else { "ip_v6" };
        object.shown(key, ip);
    }
}
