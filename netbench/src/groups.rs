//! Which groups are measured, and which TLS provider and policy each end has for one.

use std::str::FromStr;

use hybriq::tls::{Backend, ClientOptions, Group, Identity, KeyExchange, ServerOptions, Trust};
use serde::{Deserialize, Serialize};

use crate::Failure;
use crate::certificate::Certificate;

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
    /// Has the server's provider accept the group, exactly where it can, and the client offer
    /// nothing else: with the same provider where that can, else with rustls.
    pub(crate) fn new(
        group: Group,
        server: Backend,
        certificate: &Certificate,
    ) -> Result<Self, Failure> {
        if server == Backend::S2nTls && group == Group::MLKEM768 {
            return Err("s2n-tls has no MLKEM768; use --tls rustls for it".into());
        }
        let exactly = Policy::Exactly(group.0);
        Ok(Self {
            group,
            server: Tls::new(server, server_policy(group, server, certificate)?),
            client: if client_can(server, exactly, certificate).is_ok() {
                Tls::new(server, exactly)
            } else {
                client_can(Backend::Rustls, exactly, certificate)?;
                Tls::new(Backend::Rustls, exactly)
            },
        })
    }
}

/// The narrowest policy that the provider can do and that has the group.
fn server_policy(
    group: Group,
    backend: Backend,
    certificate: &Certificate,
) -> Result<Policy, Failure> {
    let wanted = Policy::Exactly(group.0);
    let refusal = match server_can(backend, wanted, certificate) {
        Ok(()) => return Ok(wanted),
        Err(refusal) => refusal,
    };
    [Policy::PreferPostQuantum, Policy::RequirePostQuantum]
        .into_iter()
        .filter(|policy| policy.key_exchange().groups().contains(&group))
        .find(|&policy| server_can(backend, policy, certificate).is_ok())
        .ok_or(refusal)
}

fn server_can(backend: Backend, policy: Policy, certificate: &Certificate) -> Result<(), Failure> {
    let identity = Identity::from_pem(certificate.chain.as_bytes(), certificate.key.as_bytes())?;
    backend.server(&ServerOptions::new(identity).key_exchange(policy.key_exchange()))?;
    Ok(())
}

fn client_can(backend: Backend, policy: Policy, certificate: &Certificate) -> Result<(), Failure> {
    let options = ClientOptions::new()
        .trust(Trust::roots_pem(certificate.chain.as_bytes())?)
        .key_exchange(policy.key_exchange());
    backend.client(&options)?;
    Ok(())
}

/// Reads `--tls`.
pub(crate) fn backend(name: &str) -> Result<Backend, Failure> {
    Backend::from_str(name).map_err(|_| {
        let valid = Backend::ALL.map(Backend::name).join(", ");
        format!("unknown TLS provider '{name}'; valid: {valid}").into()
    })
}

/// Reads `--groups`: names separated by commas, or `all`.
pub(crate) fn parse(names: &str) -> Result<Selection, Failure> {
    if names.trim().eq_ignore_ascii_case("all") {
        return Ok(Selection::All);
    }
    let groups: Result<Vec<_>, _> = names.split(',').map(|name| group(name.trim())).collect();
    Ok(Selection::Named(groups?))
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
        certificate: &Certificate,
        mut skipped: impl FnMut(Group, Failure),
    ) -> Result<Vec<Plan>, Failure> {
        match self {
            Self::Named(groups) => groups
                .iter()
                .map(|&group| Plan::new(group, server, certificate))
                .collect(),
            Self::All => Ok(Group::ALL
                .into_iter()
                .filter_map(|group| {
                    Plan::new(group, server, certificate)
                        .map_err(|reason| skipped(group, reason))
                        .ok()
                })
                .collect()),
        }
    }
}

#[cfg(test)]
mod tests;
