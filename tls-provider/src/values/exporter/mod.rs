//! Keying material for the application (RFC 8446 §7.5).

use std::fmt;

use aws_lc_rs::{digest, hkdf};

use crate::{Secret, Suite};

#[cfg(test)]
mod tests;

/// Prefix of every label (RFC 8446 §7.1).
const PREFIX: &[u8] = b"tls13 ";

/// Derives keying material that both ends of a connection share and nobody else knows.
///
/// It is created from the exporter secret, which each provider delivers once in
/// [`Flight::exporter`].
///
/// # Examples
/// ```
/// use hybriq_tls::{Exporter, Level, Secret, Side, Suite};
///
/// let secret = Secret::new(Level::OneRtt, Side::Client, Suite::Aes128GcmSha256, &[7; 32]).unwrap();
/// let exporter = Exporter::new(secret);
/// let mut key = [0; 32];
/// exporter.export(b"EXPORTER-my-protocol", b"", &mut key)?;
/// # Ok::<_, hybriq_tls::ExportError>(())
/// ```
///
/// [`Flight::exporter`]: crate::Flight::exporter
#[derive(Clone)]
pub struct Exporter(Secret);

/// A request for keying material that RFC 8446 does not allow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ExportError {
    /// The label is empty or too long.
    #[error("a label for exported keying material has 1 to 249 bytes; give another")]
    Label,
    /// More bytes were requested than HKDF can produce.
    #[error("at most 255 times the length of the suite's hash can be exported; ask for less")]
    Length,
}

/// Length of the output, in the form that HKDF expects.
struct Len(usize);

impl hkdf::KeyType for Len {
    fn len(&self) -> usize {
        self.0
    }
}

impl Exporter {
    /// Creates an exporter from the exporter secret of a session (`exporter_master_secret`).
    pub fn new(secret: Secret) -> Self {
        Self(secret)
    }

    /// Fills `out` with keying material for a label and a context.
    ///
    /// The peer gets the same bytes for the same label, context and length. The label should be
    /// registered with IANA or begin with `EXPERIMENTAL`. TLS 1.3 does not distinguish an empty
    /// context from none.
    ///
    /// # Errors
    /// [`ExportError::Label`] unless the label has 1 to 249 bytes, [`ExportError::Length`] if `out`
    /// is longer than 255 times the suite's hash. `out` is then left unchanged.
    pub fn export(&self, label: &[u8], context: &[u8], out: &mut [u8]) -> Result<(), ExportError> {
        let (hkdf, hash) = match self.0.suite() {
            Suite::Aes128GcmSha256 | Suite::ChaCha20Poly1305Sha256 => {
                (hkdf::HKDF_SHA256, &digest::SHA256)
            }
            Suite::Aes256GcmSha384 => (hkdf::HKDF_SHA384, &digest::SHA384),
        };
        let out_len = u16::try_from(out.len()).map_err(|_| ExportError::Length)?;
        if out.len() > 255 * hash.output_len() {
            return Err(ExportError::Length);
        }
        if label.is_empty() {
            return Err(ExportError::Label);
        }
        // Derive-Secret(Secret, label, "").
        let secret = hkdf::Prk::new_less_safe(hkdf, self.0.as_bytes());
        let label_len = u8::try_from(PREFIX.len() + label.len()).map_err(|_| ExportError::Label)?;
        let nothing = digest::digest(hash, b"");
        let hash_len = hash.output_len() as u16;
        let info: [&[u8]; 6] = [
            &hash_len.to_be_bytes(),
            &[label_len],
            PREFIX,
            label,
            &[hash_len as u8],
            nothing.as_ref(),
        ];
        let derived = secret
            .expand(&info, hkdf)
            .map(hkdf::Prk::from)
            .map_err(|_| ExportError::Length)?;
        // HKDF-Expand-Label(derived, "exporter", Hash(context), length).
        let context = digest::digest(hash, context);
        let info: [&[u8]; 6] = [
            &out_len.to_be_bytes(),
            &[(PREFIX.len() + b"exporter".len()) as u8],
            PREFIX,
            b"exporter",
            &[hash_len as u8],
            context.as_ref(),
        ];
        derived
            .expand(&info, Len(out.len()))
            .and_then(|okm| okm.fill(out))
            .map_err(|_| ExportError::Length)
    }
}

impl fmt::Debug for Exporter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Exporter").finish_non_exhaustive()
    }
}
