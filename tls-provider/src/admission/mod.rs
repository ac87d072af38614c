//! Decisions of a server about a raw ClientHello, before any TLS object or public-key work.

pub(crate) mod algorithms;
#[cfg(any(feature = "rustls", all(unix, feature = "s2n-tls")))]
pub(crate) mod compliance;

use std::collections::HashMap;

use crate::{
    Alert, ClientHello, ConfigError, Error, Group, GroupMismatch, KeyExchange, KeyShare,
    NamedPolicy, Profile, ShareSizes, Suite,
};

mod lists;
mod signatures;

#[cfg(test)]
mod tests;

use self::lists::with_lists;
#[cfg(all(unix, feature = "s2n-tls"))]
pub(crate) use signatures::{NO_COMMON_SCHEME, scheme_name, verifies_any};
pub(crate) use signatures::{check_signatures, schemes_of};

/// Values by the server name that clients ask for, with one for all other names.
pub(crate) struct ByServerName<T> {
    default: T,
    names: HashMap<String, T>,
}

impl<T> ByServerName<T> {
    /// Builds the value of each policy.
    pub(crate) fn build(
        default: &KeyExchange,
        names: &[NamedPolicy],
        mut make: impl FnMut(&KeyExchange) -> Result<T, ConfigError>,
    ) -> Result<Self, ConfigError> {
        let default = make(default)?;
        let names = names
            .iter()
            .map(|named| Ok((named.server_name.to_ascii_lowercase(), make(&named.policy)?)))
            .collect::<Result<_, ConfigError>>()?;
        Ok(Self { default, names })
    }

    pub(crate) fn default(&self) -> &T {
        &self.default
    }

    /// Returns the value of every policy.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &T> {
        std::iter::once(&self.default).chain(self.names.values())
    }

    pub(crate) fn get(&self, server_name: Option<&str>) -> &T {
        match server_name {
            Some(name) if !self.names.is_empty() => self
                .names
                .get(&name.to_ascii_lowercase())
                .unwrap_or(&self.default),
            _ => &self.default,
        }
    }
}

/// Refuses a ClientHello that can never become a QUIC connection here.
pub(crate) fn check(hello: &ClientHello, alpn: &[Vec<u8>]) -> Result<(), Error> {
    if !hello.supports_tls13() {
        return Err(Error::told(
            Alert::PROTOCOL_VERSION,
            "the client does not speak TLS 1.3",
        ));
    }
    // RFC 8446 §9.2 and RFC 9001 §8.2. A client that resumes may need no signature of ours, but its
    // ticket may be refused, so the schemes are required with a ticket as well.
    let missing = if hello.transport_params().is_none() {
        Some("quic_transport_parameters")
    } else if hello.signature_schemes().is_empty() {
        Some("signature_algorithms")
    } else if !hello.has_key_share_extension() {
        Some("key_share")
    } else {
        None
    };
    if let Some(missing) = missing {
        return Err(Error::told(
            Alert::MISSING_EXTENSION,
            format!("the ClientHello has no {missing} extension"),
        ));
    }
    check_shares(hello)?;
    // A client that offers protocols to a server without any is a mismatch as well; rustls reads
    // RFC 9001 §8.1 the same way.
    let offered = hello.alpn().next().is_some();
    let common = hello
        .alpn()
        .any(|offered| alpn.iter().any(|accepted| accepted == offered));
    if !common && (offered || !alpn.is_empty()) {
        return Err(Error::told(
            Alert::NO_APPLICATION_PROTOCOL,
            no_protocol(alpn, hello),
        ));
    }
    Ok(())
}

/// Refuses key shares that no client may send: two for a group, one for a group that it does not
/// support (RFC 8446 §4.2.8), or one of a wrong length. Both lists are bounded.
fn check_shares(hello: &ClientHello) -> Result<(), Error> {
    let shares = hello.key_shares();
    for (at, KeyShare { group, len }) in shares.iter().enumerate() {
        let has_length = |sizes: ShareSizes| sizes.client == *len;
        let problem = if !hello.groups().contains(group) {
            "a group that is not in its supported_groups"
        } else if shares
            .iter()
            .skip(at + 1)
            .any(|other| other.group == *group)
        {
            "a group twice"
        } else if !group.share_sizes().is_none_or(has_length) {
            "a wrong length"
        } else {
            continue;
        };
        let detail = format!("the client sent a key share of {problem}: {group}");
        return Err(Error::told(Alert::ILLEGAL_PARAMETER, detail));
    }
    Ok(())
}

/// Words before the suites of a server that has none in common with its client.
pub(crate) const NO_COMMON_SUITE: &str = "no cipher suite in common";

/// Refuses a client without any of our cipher suites, given by their IANA numbers. The alert shows
/// whether a profile asks for more than the client has.
pub(crate) fn check_suites(
    hello: &ClientHello,
    ours: impl Iterator<Item = u16> + Clone,
    profile: Profile,
) -> Result<(), Error> {
    if ours
        .clone()
        .any(|suite| hello.cipher_suites().contains(&suite))
    {
        return Ok(());
    }
    let alert = match profile {
        Profile::Default => Alert::HANDSHAKE_FAILURE,
        _ => Alert::INSUFFICIENT_SECURITY,
    };
    let theirs = hello.cipher_suites().iter().copied();
    let theirs = theirs.filter(|suite| !is_grease(*suite));
    let end = "; give both ends one in common with `suites`, or the same profile";
    let words = [NO_COMMON_SUITE, ": the server takes ", ", the client ", end];
    Err(Error::told(
        alert,
        with_lists(words, ours.map(suite_name), theirs.map(suite_name)),
    ))
}

/// Returns true for a number without meaning (RFC 8701).
const fn is_grease(number: u16) -> bool {
    number & 0x0f0f == 0x0a0a && number >> 8 == number & 0xff
}

/// Returns the name of a cipher suite, or its number if it has none.
fn suite_name(number: u16) -> String {
    match Suite::from_iana(number) {
        Some(suite) => suite.to_string(),
        None => format!("{number:#06x}"),
    }
}

/// Describes the protocols of two ends that have no application protocol in common.
fn no_protocol(ours: &[Vec<u8>], hello: &ClientHello) -> String {
    let words = [
        "no application protocol in common",
        ": the server speaks ",
        ", the client ",
        "; give both ends one in common with `alpn`",
    ];
    let ours = ours.iter().map(|name| protocol(name));
    with_lists(words, ours, hello.alpn().map(protocol))
}

/// Returns the name of a protocol, with unprintable bytes escaped.
fn protocol(name: &[u8]) -> String {
    name.get(..32).unwrap_or(name).escape_ascii().to_string()
}

/// Chooses the group of the handshake from `ours`, which is in order of preference.
///
/// If the first mutual group is post-quantum, so is the choice. Among post-quantum groups one with
/// a key share wins, because asking for another share costs a round trip; without any share, a
/// HelloRetryRequest asks for the first group.
pub(crate) fn choose_group(ours: &[Group], hello: &ClientHello) -> Result<Group, Error> {
    let mut mutual = ours
        .iter()
        .copied()
        .filter(|group| hello.groups().contains(group));
    let Some(first) = mutual.next() else {
        return Err(Error::no_common_group(GroupMismatch::new(
            ours.iter().copied(),
            hello.groups().iter().copied(),
        )));
    };
    let has_share = |group: Group| hello.key_shares().iter().any(|share| share.group == group);
    let with_share = std::iter::once(first)
        .chain(mutual)
        .filter(|group| group.is_post_quantum() == first.is_post_quantum())
        .find(|group| has_share(*group));
    Ok(with_share.unwrap_or(first))
}
