//! Parameters of HTTPS records (RFC 9460 §7 and §8).

use std::net::IpAddr;

use hybriq::tls::SupportedGroups;

use super::{InvalidHttpsRecord, number};
use crate::client::origin::Origin;

const MANDATORY: u16 = 0;
const ALPN: u16 = 1;
const NO_DEFAULT_ALPN: u16 = 2;
const PORT: u16 = 3;
const IPV4_HINT: u16 = 4;
const ECH: u16 = 5;
const IPV6_HINT: u16 = 6;
const GROUPS: u16 = SupportedGroups::SVC_PARAM_KEY;

/// Keys that a record may declare mandatory. Encrypted Client Hello is not supported.
const SUPPORTED: [u16; 6] = [ALPN, NO_DEFAULT_ALPN, PORT, IPV4_HINT, IPV6_HINT, GROUPS];

/// Largest number of address hints of each family that are kept.
const MOST_HINTS: usize = 8;

/// The parameters of a record, as far as they are known here.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Params {
    /// True if a mandatory key is not supported, or the parameters contradict each other (RFC 9460 §2.4.3, §8).
    pub(super) is_incompatible: bool,
    pub(super) http3: bool,
    /// True if the server speaks HTTP/2 or HTTP/1.1 over TCP.
    pub(super) tcp: bool,
    pub(super) port: Option<u16>,
    pub(super) hints: Vec<IpAddr>,
    /// Number of configurations for Encrypted Client Hello.
    pub(super) ech: usize,
    pub(super) groups: Option<SupportedGroups>,
}

impl Params {
    /// Reads the parameters of a record in ServiceMode.
    pub(super) fn read(mut bytes: &[u8]) -> Result<Self, InvalidHttpsRecord> {
        let mut params = Self::default();
        let (mut keys, mut mandatory) = (Vec::new(), Vec::new());
        let mut alpn = None;
        while !bytes.is_empty() {
            let (key, rest) = number(bytes)?;
            let (len, rest) = number(rest)?;
            let (value, rest) = rest
                .split_at_checked(usize::from(len))
                .ok_or(InvalidHttpsRecord::Truncated)?;
            if keys.last().is_some_and(|last| *last >= key) {
                return Err(InvalidHttpsRecord::Order(key));
            }
            keys.push(key);
            bytes = rest;
            let malformed = InvalidHttpsRecord::Value(key);
            match key {
                MANDATORY => mandatory = numbers(value).ok_or(malformed)?,
                ALPN => alpn = Some(protocols(value).ok_or(malformed)?),
                NO_DEFAULT_ALPN if value.is_empty() => {}
                NO_DEFAULT_ALPN => return Err(malformed),
                PORT => params.port = Some(one(value).ok_or(malformed)?),
                IPV4_HINT => params.add_hints::<4>(value).ok_or(malformed)?,
                IPV6_HINT => params.add_hints::<16>(value).ok_or(malformed)?,
                ECH => params.ech = configurations(value).ok_or(malformed)?,
                GROUPS => {
                    let groups = SupportedGroups::from_wire(value);
                    params.groups = Some(groups.map_err(|_| malformed)?);
                }
                _ => {}
            }
        }
        let has = |key: &u16| keys.binary_search(key).is_ok();
        let is_met = |key: &u16| SUPPORTED.contains(key) && has(key);
        params.is_incompatible =
            !mandatory.iter().all(is_met) || (has(&NO_DEFAULT_ALPN) && alpn.is_none());
        let alpn = alpn.unwrap_or_default();
        params.http3 = alpn.contains(&&b"h3"[..]);
        // HTTP/1.1 is the default of HTTPS records (RFC 9460 §9.1.1).
        let over_tcp = [&b"h2"[..], &b"http/1.1"[..]];
        params.tcp = !has(&NO_DEFAULT_ALPN) || over_tcp.iter().any(|name| alpn.contains(name));
        Ok(params)
    }

    /// Adds addresses of N bytes.
    fn add_hints<const N: usize>(&mut self, value: &[u8]) -> Option<()>
    where
        IpAddr: From<[u8; N]>,
    {
        let addresses = value.chunks_exact(N);
        if value.is_empty() || !addresses.remainder().is_empty() {
            return None;
        }
        let addresses = addresses.filter_map(|address| address.first_chunk::<N>());
        self.hints.extend(
            addresses
                .take(MOST_HINTS)
                .map(|address| IpAddr::from(*address)),
        );
        Some(())
    }
}

/// Reads one number.
fn one(value: &[u8]) -> Option<u16> {
    Some(u16::from_be_bytes(value.try_into().ok()?))
}

/// Reads the list of mandatory keys, in strictly increasing order and without their own key.
fn numbers(value: &[u8]) -> Option<Vec<u16>> {
    let numbers: Option<Vec<_>> = value.chunks(2).map(one).collect();
    numbers.filter(|keys| {
        let is_increasing = keys.is_sorted_by(|before, after| before < after);
        is_increasing && keys.first().is_some_and(|first| *first != MANDATORY)
    })
}

/// Reads a list of application protocols, each behind its length.
fn protocols(mut value: &[u8]) -> Option<Vec<&[u8]>> {
    let mut names = Vec::new();
    while let Some((len, rest)) = value.split_first() {
        let (name, rest) = rest.split_at_checked(usize::from(*len))?;
        if name.is_empty() {
            return None;
        }
        names.push(name);
        value = rest;
    }
    (!names.is_empty()).then_some(names)
}

/// Counts the configurations of an ECHConfigList (RFC 9849 §4).
fn configurations(value: &[u8]) -> Option<usize> {
    let (len, mut list) = number(value).ok()?;
    if usize::from(len) != list.len() {
        return None;
    }
    let mut count = 0;
    while !list.is_empty() {
        let (_version, rest) = number(list).ok()?;
        let (len, rest) = number(rest).ok()?;
        list = rest.split_at_checked(usize::from(len))?.1;
        count += 1;
    }
    (count > 0).then_some(count)
}

/// Returns true if the records of a server are looked up: it is named, and not this machine (RFC 6761 §6.3).
pub(in super::super) fn is_asked_for(origin: &Origin) -> bool {
    let host = origin.host();
    let is_local = host == "localhost" || host.ends_with(".localhost");
    !is_local && host.parse::<IpAddr>().is_err()
}
