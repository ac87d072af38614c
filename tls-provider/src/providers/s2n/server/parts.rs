//! What the configurations of a server are made of.

use std::{borrow::Cow, sync::Arc, time::SystemTime};

use s2n_tls::cert_chain::CertificateChain;
use s2n_tls::config::Config;
use s2n_tls::enums::ClientAuthType;

use crate::{
    ClientAuth, ConfigError, Identity, KeyExchange, Lineage, Profile, ServerOptions,
    SignatureScheme, Tickets, admission,
    options::Intermediates,
    providers::s2n::{
        config::{self, AnyName, Roots},
        keys_elsewhere,
        policy::Policy,
        reason,
        session::Lineages,
        unsupported,
    },
    tickets::s2n::Generation,
};

/// Parts that all configurations of one server share.
pub(super) struct Parts {
    pub(super) identities: Vec<Identity>,
    /// Schemes with which the identities sign, if they are known.
    pub(super) schemes: Option<Vec<SignatureScheme>>,
    chains: Vec<CertificateChain<'static>>,
    pub(super) clients: Option<(ClientAuthType, Roots)>,
    pub(super) alpn: Arc<[Vec<u8>]>,
    pub(super) tickets: Option<Tickets>,
    profile: Profile,
}

/// Configurations for each choice that a ClientHello can lead to, with their ticket keys. Without
/// tickets there is only one.
pub(super) struct Scope {
    pub(super) configs: Vec<(Lineages, Config)>,
    pub(super) keys: Option<Generation>,
}

impl Parts {
    pub(super) fn new(options: &ServerOptions) -> Result<Self, ConfigError> {
        let clients = match &options.client_auth {
            ClientAuth::None => None,
            ClientAuth::Optional(trust) => Some((ClientAuthType::Optional, trust)),
            ClientAuth::Required(trust) => Some((ClientAuthType::Required, trust)),
        };
        let clients = match clients {
            None => None,
            Some((auth, trust)) => Some((auth, Roots::new(trust)?)),
        };
        // A resumed session shows no certificates that a verifier could refuse.
        let no_tickets = options.no_tickets
            || match &options.client_auth {
                ClientAuth::None => false,
                ClientAuth::Optional(trust) | ClientAuth::Required(trust) => {
                    trust.custom().is_some()
                }
            };
        let identities: Vec<Identity> = if options.shared.intermediates == Intermediates::Sent {
            options.identities.clone()
        } else {
            let whole = options.identities.iter();
            whole.map(Identity::without_intermediates).collect()
        };
        Ok(Self {
            chains: identities
                .iter()
                .map(config::chain)
                .collect::<Result<_, _>>()?,
            schemes: admission::schemes_of(&identities, |_| None),
            identities,
            clients,
            alpn: options.shared.alpn.clone().into(),
            tickets: (!no_tickets).then(|| options.tickets.clone().unwrap_or_default()),
            profile: options.shared.profile,
        })
    }

    /// Returns the source of the ticket keys if tickets are issued.
    pub(super) fn keys(&self, now: SystemTime) -> Result<Option<Arc<Generation>>, ConfigError> {
        let tickets = self.tickets.as_ref();
        tickets.map(|tickets| tickets.s2n().at(now)).transpose()
    }

    pub(super) fn make(
        &self,
        key_exchange: &KeyExchange,
        policy: &Policy,
        keys: Option<&Generation>,
        scope: &[u8],
        now: SystemTime,
    ) -> Result<Scope, ConfigError> {
        // A session that began under other rules is not resumed.
        let bound = match self.profile {
            Profile::Default => Cow::Borrowed(scope),
            profile => Cow::Owned([b"profile ", profile.name().as_bytes(), b" ", scope].concat()),
        };
        let keys = keys.map(|keys| keys.bound_to(&bound));
        let mut configs = Vec::new();
        for issued in LINEAGES {
            if !policy.groups.iter().any(|it| Lineage::of(*it) == issued) {
                continue;
            }
            for accepted in LINEAGES {
                if !accepted.may_resume(key_exchange) || (keys.is_none() && !configs.is_empty()) {
                    continue;
                }
                let lineages = Lineages { issued, accepted };
                configs.push((lineages, self.build(policy, keys.as_ref(), lineages, now)?));
            }
        }
        Ok(Scope { configs, keys })
    }

    fn build(
        &self,
        policy: &Policy,
        keys: Option<&Generation>,
        Lineages { issued, accepted }: Lineages,
        now: SystemTime,
    ) -> Result<Config, ConfigError> {
        let mut builder = config::builder(policy, &self.alpn)?;
        for chain in &self.chains {
            config::add_chain(&mut builder, chain, policy)?;
        }
        keys_elsewhere::install(&mut builder, &self.identities)?;
        if let Some((auth, roots)) = &self.clients {
            roots.apply(&mut builder)?;
            builder
                .set_client_auth_type(*auth)
                .and_then(|builder| builder.set_verify_host_callback(AnyName))
                .map_err(|error| unsupported(reason(&error)))?;
        }
        let keyed = match keys {
            Some(keys) => keys.add_to(&mut builder, issued, accepted, now),
            None => Ok(()),
        };
        keyed
            .and_then(|()| builder.build())
            .map_err(|error| unsupported(reason(&error)))
    }
}

const LINEAGES: [Lineage; 2] = [Lineage::PostQuantum, Lineage::Classical];
