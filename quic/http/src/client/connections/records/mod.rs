//! HTTPS records (RFC 9460): where a server is, and what it speaks, before the first connection.

mod follow;
mod params;
#[cfg(feature = "https-records")]
mod system;

use std::{io, pin::Pin};

use self::params::Params;
#[cfg(feature = "https-records")]
pub use self::system::SystemRecords;
pub(super) use self::{
    follow::{Service, services},
    params::is_asked_for,
};

/// Looks up HTTPS records (RFC 9460). Pass it to [`ClientBuilder::https_records`](crate::ClientBuilder::https_records).
/// With the feature `https-records`, `SystemRecords` asks the name servers of the system.
///
/// # Security
/// Records need no signature: whoever can forge one can lead the client elsewhere, as with a forged address. The server
/// must still present a certificate for the name of the URI.
///
/// # Examples
/// ```
/// use std::{future::Future, io, pin::Pin};
///
/// use hybriq_http::{HttpsRecord, HttpsResolver};
///
/// /// One record for all names: `1 . alpn=h3`.
/// struct AllSpeakHttp3;
///
/// impl HttpsResolver for AllSpeakHttp3 {
///     fn lookup(
///         &self,
///         name: String,
///     ) -> Pin<Box<dyn Future<Output = io::Result<Vec<HttpsRecord>>> + Send>> {
///         let record = HttpsRecord::from_rdata(&name, &[0, 1, 0, 0, 1, 0, 3, 2, b'h', b'3']);
///         Box::pin(async { Ok(vec![record.map_err(io::Error::other)?]) })
///     }
/// }
/// ```
pub trait HttpsResolver: Send + Sync + 'static {
    /// Returns the HTTPS records of a name without a dot at the end, such as `example.com` or
    /// `_8443._https.example.com`. CNAME records have been followed. A name without records has an empty list.
    ///
    /// # Errors
    /// The lookup failed, or one of the records is malformed (RFC 9460 §2.2). The client then connects as if there were
    /// none.
    fn lookup(
        &self,
        name: String,
    ) -> Pin<Box<dyn Future<Output = io::Result<Vec<HttpsRecord>>> + Send>>;
}

/// One HTTPS record of a name (RFC 9460 §2).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HttpsRecord {
    owner: String,
    /// 0 in AliasMode.
    priority: u16,
    /// Empty for the root, which stands for the owner in ServiceMode.
    target: String,
    params: Params,
}

/// Reason why an HTTPS record cannot be read (RFC 9460 §2.2). None of the records of its name is used then.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidHttpsRecord {
    /// It ends within a field.
    #[error("the HTTPS record is truncated; correct the zone, or the resolver")]
    Truncated,
    /// Its target is not the name of a host, or is compressed.
    #[error("the target of the HTTPS record is no host name in wire format; correct the zone")]
    Target,
    /// The keys are not in strictly increasing order: this key is not above the one before.
    #[error("key {0} of the HTTPS record is out of order; write the keys in increasing order")]
    Order(u16),
    /// The value of a key does not have the format of the key.
    #[error("the value of key {0} of the HTTPS record is malformed; correct the zone")]
    Value(u16),
}

impl HttpsRecord {
    /// Reads a record of this owner name from its RDATA in wire format, without name compression.
    ///
    /// # Errors
    /// The record is malformed.
    pub fn from_rdata(owner: &str, rdata: &[u8]) -> Result<Self, InvalidHttpsRecord> {
        let (priority, rest) = number(rdata)?;
        let (target, rest) = name(rest)?;
        Ok(Self {
            owner: owner.trim_end_matches('.').to_ascii_lowercase(),
            priority,
            target,
            // Those of an alias are ignored (RFC 9460 §2.4.2).
            params: match priority {
                0 => Params::default(),
                _ => Params::read(rest)?,
            },
        })
    }
}

/// Splits a number off the front.
fn number(bytes: &[u8]) -> Result<(u16, &[u8]), InvalidHttpsRecord> {
    let (number, rest) = bytes
        .split_first_chunk()
        .ok_or(InvalidHttpsRecord::Truncated)?;
    Ok((u16::from_be_bytes(*number), rest))
}

/// Splits the name of a host off the front, in lower case.
fn name(mut bytes: &[u8]) -> Result<(String, &[u8]), InvalidHttpsRecord> {
    let mut name = String::new();
    loop {
        let (len, rest) = bytes.split_first().ok_or(InvalidHttpsRecord::Truncated)?;
        if *len == 0 {
            let is_root = name.is_empty();
            if !is_root && !super::alt_svc::is_host(&name) {
                return Err(InvalidHttpsRecord::Target);
            }
            return Ok((name, rest));
        }
        let (label, rest) = rest
            .split_at_checked(usize::from(*len))
            .filter(|_| *len < 64)
            .ok_or(InvalidHttpsRecord::Target)?;
        // A dot within a label would end it.
        let label = std::str::from_utf8(label)
            .ok()
            .filter(|label| !label.contains('.'));
        let label = label.ok_or(InvalidHttpsRecord::Target)?;
        if !name.is_empty() {
            name.push('.');
        }
        name.push_str(&label.to_ascii_lowercase());
        if name.len() > 253 {
            return Err(InvalidHttpsRecord::Target);
        }
        bytes = rest;
    }
}

#[cfg(test)]
pub(super) mod tests;
