//! Which groups are measured, and which TLS provider and policy each end has for one.

use std::str::FromStr;

use hybriq::{Backend, Group, KeyExchange};
use serde::{Deserialize, Serialize};

use crate::Failure;

/// A key-exchange policy that can be told to another process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Policy {
    /// One group, by its code point.
    Exactly(u16),
    PreferPostQuantum,
    RequirePostQuantum,
}

impl Policy {
    pub(crate) fn key_exchange(self) -> KeyExchange {
        match self {
            Self::Exactly(code_point) => KeyExchange::Exactly(vec![Group(code_point)]),
            Self::PreferPostQuantum => KeyExchange::PreferPostQuantum,
            Self::RequirePostQuantum => KeyExchange::RequirePostQuantum,
        }
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Exactly(_) => "exactly the group",
            Self::PreferPostQuantum => "PreferPostQuantum",
            Self::RequirePostQuantum => "RequirePostQuantum",
        }
    }
}

/// The TLS of one end.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Tls {
    /// A name that [`Backend`] reads.
    pub(crate) provider: String,
    pub(crate) policy: Policy,
}

impl Tls {
    fn new(backend: Backend, policy: Policy) -> Self {
        Self {
            provider: backend.name().to_owned(),
            policy,
        }
    }

    pub(crate) fn backend(&self) -> Result<Backend, Failure> {
        backend(&self.provider)
    }
}

/// The TLS of both ends, such that a connection can only negotiate the group.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    pub(crate) group: Group,
    pub(crate) server: Tls,
    pub(crate) client: Tls,
}

impl Plan {
    /// Has the client offer nothing but the group, which only rustls can: no policy of s2n-tls is
    /// one group with the cipher suite and the certificate of the other rows. The server accepts
    /// the group alone, or with s2n-tls by the narrowest policy that has it.
    pub(crate) fn new(group: Group, server: Backend) -> Result<Self, Failure> {
        let exactly = Policy::Exactly(group.0);
        let policy = match server {
            Backend::Rustls => exactly,
            Backend::S2nTls => s2n_policy(group)?,
        };
        Ok(Self {
            group,
            server: Tls::new(server, policy),
            client: Tls::new(Backend::Rustls, exactly),
        })
    }
}

fn s2n_policy(group: Group) -> Result<Policy, Failure> {
    if group == Group::MLKEM768 {
        return Err("s2n-tls has no MLKEM768; use --tls rustls for it".into());
    }
    [Policy::PreferPostQuantum, Policy::RequirePostQuantum]
        .into_iter()
        .find(|policy| policy.key_exchange().groups().contains(&group))
        .ok_or_else(|| format!("no policy of s2n-tls has {group}; use --tls rustls for it").into())
}

/// Reads `--tls`.
pub(crate) fn backend(name: &str) -> Result<Backend, Failure> {
    Backend::from_str(name).map_err(|_| {
        let valid = Backend::ALL.map(Backend::name).join(", ");
        format!("unknown TLS provider '{name}'; valid: {valid}").into()
    })
}

/// Reads `--groups`: names separated by commas, or `all`. One named twice is measured once.
pub(crate) fn parse(names: &str) -> Result<Selection, Failure> {
    let mut all = false;
    let mut groups = Vec::new();
    for name in names.split(',').map(str::trim) {
        if name.eq_ignore_ascii_case("all") {
            all = true;
            continue;
        }
        let group = group(name)?;
        if !groups.contains(&group) {
            groups.push(group);
        }
    }
    Ok(if all {
        Selection::All
    } else {
        Selection::Named(groups)
    })
}

fn group(name: &str) -> Result<Group, Failure> {
    Group::from_name(name)
        .filter(|group| Group::ALL.contains(group))
        .ok_or_else(|| {
            let valid = Group::ALL.map(|group| group.to_string()).join(", ");
            format!("unknown group '{name}'; valid: all, {valid}").into()
        })
}

/// The groups that were asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Selection {
    /// All that the provider has.
    All,
    /// These and no fewer.
    Named(Vec<Group>),
}

impl Selection {
    /// One plan a group. A group that the provider lacks is told to `skipped` where all were asked
    /// for, and an error where it was asked for by name.
    pub(crate) fn plans(
        &self,
        server: Backend,
        mut skipped: impl FnMut(Group, Failure),
    ) -> Result<Vec<Plan>, Failure> {
        match self {
            Self::Named(groups) => groups
                .iter()
                .map(|&group| Plan::new(group, server))
                .collect(),
            Self::All => Ok(Group::ALL
                .into_iter()
                .filter_map(|group| {
                    Plan::new(group, server)
                        .map_err(|reason| skipped(group, reason))
                        .ok()
                })
                .collect()),
        }
    }
}

#[cfg(test)]
mod tests;
