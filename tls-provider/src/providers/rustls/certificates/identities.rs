//! Certificates of a server, and the choice among them.

use std::sync::Arc;

use ::rustls::SignatureScheme;
use ::rustls::crypto::CryptoProvider;
use ::rustls::server::{ClientHello as OfferedHello, ResolvesServerCert};
use ::rustls::sign::CertifiedKey;
use rustls_pki_types::ServerName;

use super::hosts::covers;
use crate::messages::flight::{self, Answer};
use crate::options::Intermediates;
use crate::providers::rustls::crypto::compress::Compression;
use crate::providers::rustls::locals::capture::NotedKey;
use crate::providers::rustls::{crypto::keys, locals::ticket_facts};
use crate::values::compression::Compressed;
use crate::{ChainChoice, ClientHello, ConfigError, ServerFlight, ServerOptions, Side};

/// Certificates, chosen by the server name, the client's algorithms and the configured choice.
#[derive(Debug)]
pub(in crate::providers::rustls) struct Identities {
    known: Vec<Known>,
    choice: ChainChoice,
    intermediates: Intermediates,
    /// Application protocols, first choice first.
    alpn: Vec<Vec<u8>>,
}

/// One certificate with its key.
#[derive(Debug)]
struct Known {
    whole: Shown,
    /// The same without intermediates, if they are ever left out.
    leaf: Option<Shown>,
    post_quantum: bool,
}

/// A chain as a client sees it.
#[derive(Debug)]
struct Shown {
    key: Arc<CertifiedKey>,
    /// Bytes of the chain by each algorithm of the configuration, in its order.
    compressed: Vec<Compressed>,
}

impl Shown {
    fn new(key: CertifiedKey, compression: &Compression) -> Self {
        Self {
            compressed: compression.sizes(&key.cert),
            key: Arc::new(key),
        }
    }
}

impl Identities {
    pub(in crate::providers::rustls) fn new(
        options: &ServerOptions,
        alpn: &[Vec<u8>],
        crypto: &CryptoProvider,
        compression: &Compression,
    ) -> Result<Self, ConfigError> {
        let intermediates = options.shared.intermediates.clone();
        let load = |identity| {
            let mut certified = keys::load(identity, crypto)?;
            certified.key = Arc::new(NotedKey {
                signer: Side::Server,
                key: certified.key,
            });
            let mut leaf = certified.clone();
            leaf.cert.truncate(1);
            Ok(Known {
                post_quantum: flight::is_post_quantum(&certified.cert),
                whole: Shown::new(certified, compression),
                leaf: (intermediates != Intermediates::Sent).then(|| Shown::new(leaf, compression)),
            })
        };
        let known = options.identities.iter().map(load);
        Ok(Self {
            known: known.collect::<Result<_, ConfigError>>()?,
            choice: options.chain_choice,
            intermediates,
            alpn: alpn.to_vec(),
        })
    }

    /// Returns how to choose among the certificates.
    pub(in crate::providers::rustls) const fn choice(&self) -> ChainChoice {
        self.choice
    }

    /// Returns the sizes of the answers with each certificate that suits a client, first choice
    /// first.
    pub(in crate::providers::rustls) fn flights(&self, answer: &Answer<'_>) -> Vec<ServerFlight> {
        let hello = answer.hello;
        let schemes: Vec<SignatureScheme> = hello
            .signature_schemes()
            .iter()
            .map(|scheme| (*scheme).into())
            .collect();
        let suitable = self.suitable(hello.server_name(), &schemes).into_iter();
        let sized = suitable.filter_map(|at| {
            let shown = self.known.get(at)?.shown_to(self.leaves_out(&hello.alpn()));
            answer.with(at, &shown.key.cert, shown.compressed_for(hello))
        });
        sized.collect()
    }

    /// Returns the positions of the certificates that suit a client, first choice first.
    fn suitable(&self, name: Option<&str>, schemes: &[SignatureScheme]) -> Vec<usize> {
        let name = name.and_then(|name| ServerName::try_from(name).ok());
        let signing = |(_, known): &(usize, &Known)| known.can_sign(schemes);
        let candidates = self.known.iter().enumerate().filter(signing);
        let mut named: Vec<(usize, &Known)> = candidates
            .clone()
            .filter(|(_, known)| name.as_ref().is_some_and(|name| known.is_for(name)))
            .collect();
        if named.is_empty() {
            // The client decides whether it accepts another name.
            named = candidates.take(1).collect();
        }
        if self.choice == ChainChoice::PostQuantumFirst {
            named.sort_by_key(|(_, known)| !known.post_quantum);
        }
        named.into_iter().map(|(at, _)| at).collect()
    }

    /// Returns true if intermediates are left out for a client with these application protocols.
    fn leaves_out<'p>(&self, offered: &(impl Iterator<Item = &'p [u8]> + Clone)) -> bool {
        match &self.intermediates {
            Intermediates::Sent => false,
            Intermediates::LeftOut => true,
            Intermediates::LeftOutFor(protocols) => {
                let chosen = |ours: &&Vec<u8>| offered.clone().any(|theirs| theirs == **ours);
                let chosen = self.alpn.iter().find(chosen);
                chosen.is_some_and(|chosen| protocols.contains(chosen))
            }
        }
    }
}

impl Known {
    fn can_sign(&self, schemes: &[SignatureScheme]) -> bool {
        self.whole.key.key.choose_scheme(schemes).is_some()
    }

    fn is_for(&self, name: &ServerName<'_>) -> bool {
        let certificate = self.whole.key.end_entity_cert();
        certificate.is_ok_and(|certificate| covers(certificate, name) == Some(true))
    }

    fn shown_to(&self, leaves_out: bool) -> &Shown {
        let leaf = self.leaf.as_ref().filter(|_| leaves_out);
        leaf.unwrap_or(&self.whole)
    }
}

impl Shown {
    /// Returns the compressed chain if a client accepts it.
    fn compressed_for(&self, hello: &ClientHello) -> Option<Compressed> {
        let accepted = |wanted| hello.certificate_compression().any(|it| it == wanted);
        let mut sizes = self.compressed.iter().copied();
        sizes.find(|compressed| accepted(compressed.algorithm))
    }
}

impl ResolvesServerCert for Identities {
    fn resolve(&self, hello: OfferedHello<'_>) -> Option<Arc<CertifiedKey>> {
        let default = self.known.first()?;
        let known = if self.known.len() == 1 {
            default
        } else {
            let chosen = ticket_facts::chosen_identity().or_else(|| {
                let suitable = self.suitable(hello.server_name(), hello.signature_schemes());
                suitable.first().copied()
            });
            chosen.and_then(|at| self.known.get(at)).unwrap_or(default)
        };
        let leaves_out = known.leaf.is_some() && {
            let offered = hello.alpn().into_iter().flatten();
            let offered: Vec<&[u8]> = offered.collect();
            self.leaves_out(&offered.iter().copied())
        };
        Some(known.shown_to(leaves_out).key.clone())
    }
}
