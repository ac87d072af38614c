//! A handshake as a record for audits: IANA registry names, in the order of the fields.

use std::fmt::Display;

use hybriq_tls::{CertificateAlgorithms, GroupKind, Lineage, Side};
use serde::{
    Serialize, Serializer,
    ser::{SerializeSeq, SerializeStruct},
};

use super::{EarlyData, Handshake};
use crate::wire::packet::Version;

/// A value, written as its text.
struct Text<T>(T);

impl<T: Display> Serialize for Text<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&self.0)
    }
}

/// A certificate of the chain.
struct Certificate<'a>(&'a CertificateAlgorithms);

impl Serialize for Certificate<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut record = serializer.serialize_struct("Certificate", 3)?;
        record.serialize_field("key", &Text(self.0.key))?;
        record.serialize_field("signature", &Text(self.0.signature))?;
        record.serialize_field("post_quantum", &self.0.is_post_quantum())?;
        record.end()
    }
}

/// The certificates of a chain.
struct Chain<'a>(&'a [CertificateAlgorithms]);

impl Serialize for Chain<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut list = serializer.serialize_seq(Some(self.0.len()))?;
        for certificate in self.0 {
            list.serialize_element(&Certificate(certificate))?;
        }
        list.end()
    }
}

/// Returns names for values that no registry names.
const fn kind(kind: GroupKind) -> &'static str {
    match kind {
        GroupKind::Classical => "classical",
        GroupKind::Hybrid => "hybrid",
        GroupKind::PostQuantum => "pure",
        _ => "unknown",
    }
}

const fn lineage(lineage: Lineage) -> &'static str {
    match lineage {
        Lineage::Classical => "classical",
        Lineage::PostQuantum => "post_quantum",
    }
}

const fn early_data(outcome: EarlyData) -> &'static str {
    match outcome {
        EarlyData::None => "none",
        EarlyData::Accepted => "accepted",
        EarlyData::Rejected => "rejected",
    }
}

const fn role(side: Side) -> &'static str {
    match side {
        Side::Client => "client",
        Side::Server => "server",
    }
}

const fn version(version: Version) -> u32 {
    match version {
        Version::V1 => 1,
        Version::V2 => 2,
    }
}

impl Serialize for Handshake {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut record = serializer.serialize_struct("Handshake", 24)?;
        record.serialize_field("post_quantum", &self.is_post_quantum())?;
        record.serialize_field("group", &Text(self.key_exchange.group))?;
        record.serialize_field("group_kind", kind(self.key_exchange.kind()))?;
        record.serialize_field("hello_retry", &self.key_exchange.hello_retry)?;
        record.serialize_field("client_share_bytes", &self.key_exchange.client_share)?;
        record.serialize_field("server_share_bytes", &self.key_exchange.server_share)?;
        record.serialize_field("suite", &Text(self.suite))?;
        record.serialize_field("signature_scheme", &self.signature_scheme.map(Text))?;
        let of_client = self.client_signature_scheme.map(Text);
        record.serialize_field("client_signature_scheme", &of_client)?;
        record.serialize_field("peer_certificates", &Chain(&self.peer_certificates))?;
        let shown = self.certificate_message;
        record.serialize_field("certificate_bytes", &shown.map(|it| it.len))?;
        let compression = shown.and_then(|it| it.compression).map(Text);
        record.serialize_field("certificate_compression", &compression)?;
        let alpn = self.alpn.as_ref().map(|name| Text(name.escape_ascii()));
        record.serialize_field("alpn", &alpn)?;
        record.serialize_field("server_name", &self.server_name.as_deref())?;
        record.serialize_field("resumed", &self.resumed)?;
        record.serialize_field("lineage", lineage(self.lineage))?;
        record.serialize_field("early_data", early_data(self.early_data))?;
        record.serialize_field("quic_version", &version(self.version))?;
        record.serialize_field("role", role(self.role))?;
        record.serialize_field("tls_library", self.tls_library)?;
        record.serialize_field("profile", self.profile.name())?;
        record.serialize_field("fips", &self.fips)?;
        record.serialize_field("requires_post_quantum", &self.requires_post_quantum)?;
        record.serialize_field("downgrade", &self.downgrade.map(Text))?;
        record.end()
    }
}
