//! Tickets of a server, with the lineage of their sessions.
//!
//! Without 0-RTT a ticket is the encrypted session itself, and the server stores nothing. With
//! 0-RTT a ticket is the name of a session, which the server stores until the ticket is first used:
//! rustls accepts 0-RTT data only in that case.

use std::sync::Arc;
use std::time::Instant;

use ::rustls::server::{ProducesTickets, StoresServerSessions};
use aws_lc_rs::digest;
use zeroize::Zeroizing;

use crate::options::Anchors;
use crate::providers::rustls::locals::ticket_facts::{self, Found};
use crate::tickets::sessions::{Audience, Session, Sessions};
use crate::{ClientAuth, ConfigError, KeyExchange, Lineage, Profile};

#[cfg(test)]
mod tests;

/// Digests how clients are asked for certificates, and the rules for sessions. A session that began
/// under other rules is not resumed.
pub(in crate::providers::rustls) fn audience(
    auth: &ClientAuth,
    profile: Profile,
) -> Result<Audience, ConfigError> {
    let mut digest = digest::Context::new(&digest::SHA256);
    if profile != Profile::Default {
        digest.update(b"profile");
        digest.update(profile.name().as_bytes());
    }
    let trust = match auth {
        ClientAuth::None => None,
        ClientAuth::Optional(trust) => Some((&b"optional"[..], trust)),
        ClientAuth::Required(trust) => Some((&b"required"[..], trust)),
    };
    if let Some((mode, trust)) = trust {
        digest.update(mode);
        match trust.anchors()? {
            #[cfg(feature = "platform-verifier")]
            Anchors::Platform => digest.update(b"platform"),
            Anchors::Anyone => digest.update(b"anyone"),
            Anchors::Roots(roots) => {
                for root in roots.iter() {
                    digest.update(&(root.len() as u64).to_be_bytes());
                    digest.update(root);
                }
            }
        }
        for list in trust.revocation() {
            digest.update(b"revocation");
            digest.update(&(list.len() as u64).to_be_bytes());
            digest.update(list);
        }
        for certificate in trust.known_intermediates().iter() {
            digest.update(b"intermediate");
            digest.update(&(certificate.len() as u64).to_be_bytes());
            digest.update(certificate);
        }
        if let Some(custom) = trust.custom() {
            digest.update(b"verifier");
            digest.update(&custom.id.to_be_bytes());
        }
    }
    let mut audience = Audience::default();
    for (to, from) in audience.iter_mut().zip(digest.finish().as_ref()) {
        *to = *from;
    }
    Ok(audience)
}

fn note(lineage: Lineage) {
    ticket_facts::found(Found {
        lineage,
        params: Vec::new(),
        alpn: Arc::default(),
    });
}

/// Tickets that carry their session, under one policy.
#[derive(Debug)]
pub(in crate::providers::rustls) struct Sealed {
    pub(in crate::providers::rustls) inner: Arc<dyn ProducesTickets>,
    pub(in crate::providers::rustls) policy: KeyExchange,
    pub(in crate::providers::rustls) audience: Audience,
}

const CLASSICAL: u8 = 0;
const POST_QUANTUM: u8 = 1;

impl ProducesTickets for Sealed {
    fn enabled(&self) -> bool {
        true
    }

    fn lifetime(&self) -> u32 {
        self.inner.lifetime()
    }

    fn encrypt(&self, plain: &[u8]) -> Option<Vec<u8>> {
        let issue = ticket_facts::issue();
        let lineage = match issue.lineage? {
            Lineage::Classical => CLASSICAL,
            Lineage::PostQuantum => POST_QUANTUM,
        };
        let scope_len = u8::try_from(issue.scope.len()).ok()?;
        let marks = 2 + self.audience.len() + issue.scope.len();
        let len = plain.len().saturating_add(marks);
        let mut marked = Zeroizing::new(Vec::with_capacity(len));
        marked.push(lineage);
        marked.extend_from_slice(&self.audience);
        marked.push(scope_len);
        marked.extend_from_slice(&issue.scope);
        marked.extend_from_slice(plain);
        self.inner.encrypt(&marked)
    }

    fn decrypt(&self, cipher: &[u8]) -> Option<Vec<u8>> {
        if !ticket_facts::may_look() {
            return None;
        }
        let marked = Zeroizing::new(self.inner.decrypt(cipher)?);
        let (mark, plain) = marked.split_first()?;
        let lineage = match *mark {
            CLASSICAL => Lineage::Classical,
            POST_QUANTUM => Lineage::PostQuantum,
            _ => return None,
        };
        let (scope_len, plain) = plain.strip_prefix(&self.audience)?.split_first()?;
        let (scope, plain) = plain.split_at_checked(usize::from(*scope_len))?;
        if *scope != *ticket_facts::issue().scope || !lineage.may_resume(&self.policy) {
            return None;
        }
        note(lineage);
        Some(plain.to_vec())
    }
}

/// Tickets that name a session of the server, under one policy.
#[derive(Debug)]
pub(in crate::providers::rustls) struct Kept {
    pub(in crate::providers::rustls) sessions: Arc<Sessions>,
    pub(in crate::providers::rustls) policy: KeyExchange,
    pub(in crate::providers::rustls) audience: Audience,
}

impl StoresServerSessions for Kept {
    fn put(&self, id: Vec<u8>, value: Vec<u8>) -> bool {
        let issue = ticket_facts::issue();
        let Some(lineage) = issue.lineage else {
            return false;
        };
        let session = Session {
            lineage,
            audience: self.audience,
            context: issue.context,
            scope: issue.scope,
            value: Zeroizing::new(value),
            since: Instant::now(),
        };
        self.sessions.put(&id, session)
    }

    fn get(&self, _: &[u8]) -> Option<Vec<u8>> {
        // Only TLS 1.2 asks for this.
        None
    }

    fn take(&self, id: &[u8]) -> Option<Vec<u8>> {
        if !ticket_facts::may_look() {
            return None;
        }
        let scope = ticket_facts::issue().scope;
        let mut session = self.sessions.take(id, Instant::now(), |session| {
            session.audience == self.audience
                && session.scope == scope
                && session.lineage.may_resume(&self.policy)
        })?;
        note(session.lineage);
        Some(std::mem::take(&mut *session.value))
    }

    fn can_cache(&self) -> bool {
        true
    }
}
