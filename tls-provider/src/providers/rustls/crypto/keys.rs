//! Certificates with their keys, both local keys and those of a [`Signer`](crate::Signer).

use std::fmt;
use std::sync::Arc;

use ::rustls::crypto::CryptoProvider;
use ::rustls::sign::{CertifiedKey, Signer, SigningKey};
use ::rustls::{
    Error as TlsError, InconsistentKeys, OtherError, SignatureAlgorithm, SignatureScheme,
};
use rustls_pki_types::SubjectPublicKeyInfoDer;

use crate::options::Key;
use crate::providers::rustls::unusable;
use crate::{Alert, ConfigError, Error, Identity, policy::certificate};

/// Loads an identity and checks that key and certificate belong together.
pub(in crate::providers::rustls) fn load(
    identity: &Identity,
    crypto: &CryptoProvider,
) -> Result<CertifiedKey, ConfigError> {
    let chain = identity.certificates().to_vec();
    let loaded = match identity.key() {
        Key::Der(key) => CertifiedKey::from_der(chain, key.clone_key(), crypto),
        Key::Signer(signer) => {
            let public_key = signer.public_key().map(SubjectPublicKeyInfoDer::from);
            let key = External {
                signer: signer.clone(),
                public_key,
            };
            let loaded = CertifiedKey::new(chain, Arc::new(key));
            match loaded.keys_match() {
                Ok(()) | Err(TlsError::InconsistentKeys(InconsistentKeys::Unknown)) => Ok(loaded),
                Err(error) => Err(error),
            }
        }
    };
    let stapled = |mut loaded: CertifiedKey| {
        loaded.ocsp = identity.ocsp().map(<[u8]>::to_vec);
        loaded
    };
    loaded
        .map(stapled)
        .map_err(|error| match (error, identity.key()) {
            (TlsError::General(why), Key::Der(key)) => ConfigError::Identity(format!(
                "{why}; {}",
                certificate::key_remedy(key.secret_der())
            )),
            (error, _) => unusable(&error),
        })
}

/// A key of a [`crate::Signer`] as rustls sees it.
struct External {
    signer: Arc<dyn crate::Signer>,
    public_key: Option<SubjectPublicKeyInfoDer<'static>>,
}

impl fmt::Debug for External {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("External").finish_non_exhaustive()
    }
}

impl SigningKey for External {
    fn choose_scheme(&self, offered: &[SignatureScheme]) -> Option<Box<dyn Signer>> {
        let mut schemes = self.signer.schemes().iter();
        let scheme = schemes.find(|scheme| offered.contains(&scheme.0.into()))?;
        Some(Box::new(ExternalSigner {
            signer: self.signer.clone(),
            scheme: *scheme,
        }))
    }

    fn public_key(&self) -> Option<SubjectPublicKeyInfoDer<'_>> {
        self.public_key.clone()
    }

    fn algorithm(&self) -> SignatureAlgorithm {
        match self.signer.schemes().first().map(|scheme| scheme.0) {
            Some(0x0403 | 0x0503 | 0x0603) => SignatureAlgorithm::ECDSA,
            Some(0x0804..=0x0806 | 0x0809..=0x080b) => SignatureAlgorithm::RSA,
            Some(0x0807) => SignatureAlgorithm::ED25519,
            _ => SignatureAlgorithm::Unknown(0),
        }
    }
}

/// A key of a [`crate::Signer`] with the scheme of one handshake.
struct ExternalSigner {
    signer: Arc<dyn crate::Signer>,
    scheme: crate::SignatureScheme,
}

impl fmt::Debug for ExternalSigner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ExternalSigner")
            .field("scheme", &self.scheme)
            .finish_non_exhaustive()
    }
}

impl Signer for ExternalSigner {
    fn sign(&self, message: &[u8]) -> Result<Vec<u8>, TlsError> {
        self.signer.sign(self.scheme, message).map_err(|error| {
            let error = Error::new(Alert::INTERNAL_ERROR, error.to_string());
            TlsError::Other(OtherError(Arc::new(error)))
        })
    }

    fn scheme(&self) -> SignatureScheme {
        self.scheme.0.into()
    }
}
