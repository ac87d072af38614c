//! Secrets and signature schemes, on their way from shared configuration to the running session.
//!
//! rustls calls the key log, the verifier and the signing key synchronously inside `read_hs` and
//! `new`. A thread-local collects what they see, and the session empties it right after the call.

use std::cell::RefCell;
use std::sync::Arc;

use ::rustls::KeyLog;
use ::rustls::sign::{Signer, SigningKey};
use ::rustls::{SignatureAlgorithm, SignatureScheme};
use arrayvec::ArrayVec;
use rustls_pki_types::SubjectPublicKeyInfoDer;
use zeroize::Zeroizing;

use crate::options::KeyLogSink;
use crate::{Level, Side};

/// Purpose of a secret.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::providers::rustls) enum Purpose {
    Traffic(Level, Side),
    Exporter,
}

/// A secret whose cipher suite is not known yet.
pub(in crate::providers::rustls) struct RawSecret {
    pub(in crate::providers::rustls) purpose: Purpose,
    bytes: Zeroizing<[u8; 48]>,
    len: usize,
}

impl RawSecret {
    pub(in crate::providers::rustls) fn as_bytes(&self) -> &[u8] {
        self.bytes.get(..self.len).unwrap_or_default()
    }
}

/// Secrets and signature schemes seen since the last [`take`].
#[derive(Default)]
pub(in crate::providers::rustls) struct Seen {
    pub(in crate::providers::rustls) secrets: ArrayVec<RawSecret, 6>,
    /// Schemes of the client's and of the server's signature.
    pub(in crate::providers::rustls) schemes: Schemes,
}

/// Schemes of the signatures in CertificateVerify.
#[derive(Clone, Copy, Default)]
pub(in crate::providers::rustls) struct Schemes {
    pub(in crate::providers::rustls) client: Option<u16>,
    pub(in crate::providers::rustls) server: Option<u16>,
}

thread_local! {
    static SEEN: RefCell<Seen> = const {
        RefCell::new(Seen {
            secrets: ArrayVec::new_const(),
            schemes: Schemes { client: None, server: None },
        })
    };
}

/// Takes everything that this thread has collected.
pub(in crate::providers::rustls) fn take() -> Seen {
    SEEN.with_borrow_mut(std::mem::take)
}

/// Notes the scheme of one end's signature.
pub(in crate::providers::rustls) fn note_scheme(signer: Side, scheme: SignatureScheme) {
    SEEN.with_borrow_mut(|seen| match signer {
        Side::Client => seen.schemes.client = Some(scheme.into()),
        Side::Server => seen.schemes.server = Some(scheme.into()),
    });
}

/// Key log that feeds the transport, and then the user's own log.
#[derive(Debug)]
pub(in crate::providers::rustls) struct Capture {
    pub(in crate::providers::rustls) user: Option<Arc<dyn KeyLog>>,
}

impl Capture {
    /// Returns a key log that also writes to the log of the options, if there is one.
    pub(in crate::providers::rustls) fn and(user: Option<Arc<KeyLogSink>>) -> Self {
        Self {
            user: user.map(|log| log as Arc<dyn KeyLog>),
        }
    }
}

impl KeyLog for KeyLogSink {
    fn log(&self, label: &str, client_random: &[u8], secret: &[u8]) {
        Self::log(self, label, client_random, secret);
    }
}

impl KeyLog for Capture {
    fn log(&self, label: &str, client_random: &[u8], secret: &[u8]) {
        if let Some(user) = self.user.as_ref().filter(|user| user.will_log(label)) {
            user.log(label, client_random, secret);
        }
        let purpose = match label {
            "CLIENT_EARLY_TRAFFIC_SECRET" => Purpose::Traffic(Level::ZeroRtt, Side::Client),
            "CLIENT_HANDSHAKE_TRAFFIC_SECRET" => Purpose::Traffic(Level::Handshake, Side::Client),
            "SERVER_HANDSHAKE_TRAFFIC_SECRET" => Purpose::Traffic(Level::Handshake, Side::Server),
            "CLIENT_TRAFFIC_SECRET_0" => Purpose::Traffic(Level::OneRtt, Side::Client),
            "SERVER_TRAFFIC_SECRET_0" => Purpose::Traffic(Level::OneRtt, Side::Server),
            "EXPORTER_SECRET" => Purpose::Exporter,
            _ => return,
        };
        let mut bytes = Zeroizing::new([0; 48]);
        let Some(room) = bytes.get_mut(..secret.len()) else {
            return;
        };
        room.copy_from_slice(secret);
        let raw = RawSecret {
            purpose,
            bytes,
            len: secret.len(),
        };
        // One handshake has six secrets; a seventh would displace one of them.
        SEEN.with_borrow_mut(|seen| {
            let _ = seen.secrets.try_push(raw);
        });
    }
}

/// A signing key of one end that notes the scheme requested from it.
#[derive(Debug)]
pub(in crate::providers::rustls) struct NotedKey {
    pub(in crate::providers::rustls) signer: Side,
    pub(in crate::providers::rustls) key: Arc<dyn SigningKey>,
}

impl SigningKey for NotedKey {
    fn choose_scheme(&self, offered: &[SignatureScheme]) -> Option<Box<dyn Signer>> {
        let signer = self.key.choose_scheme(offered)?;
        note_scheme(self.signer, signer.scheme());
        Some(signer)
    }

    fn public_key(&self) -> Option<SubjectPublicKeyInfoDer<'_>> {
        self.key.public_key()
    }

    fn algorithm(&self) -> SignatureAlgorithm {
        self.key.algorithm()
    }
}
