//! Certificate compression in the types of rustls.

use std::sync::Arc;

use ::rustls::compress::{CertCompressor, CertDecompressor, CompressionCache, CompressionLevel};
use ::rustls::{ClientConfig, ServerConfig};

use crate::messages::flight::body_len;
#[cfg(not(all(feature = "brotli", feature = "zlib")))]
use crate::providers::rustls::unsupported;
use crate::values::compression::Compressed;
use crate::{CertificateCompression, CertificateDer, ConfigError};

/// Algorithms of one end, with the chains that were already compressed.
///
/// rustls takes its own defaults from the cargo features of the whole program. A configuration
/// therefore always gets these algorithms, even if there are none.
#[derive(Clone)]
pub(in crate::providers::rustls) struct Compression {
    compressors: Vec<&'static dyn CertCompressor>,
    decompressors: Vec<&'static dyn CertDecompressor>,
    cache: Arc<CompressionCache>,
}

impl Compression {
    /// Creates the algorithms, for an end with this many chains.
    pub(in crate::providers::rustls) fn new(
        algorithms: &[CertificateCompression],
        chains: usize,
    ) -> Result<Self, ConfigError> {
        let built = algorithms.iter().map(|algorithm| built(*algorithm));
        let (compressors, decompressors): (Vec<_>, Vec<_>) =
            built.collect::<Result<Vec<_>, _>>()?.into_iter().unzip();
        // The cache has room for every chain with every algorithm, so that no handshake compresses
        // one again.
        let cache = CompressionCache::new(chains.saturating_mul(compressors.len()));
        Ok(Self {
            compressors,
            decompressors,
            cache: Arc::new(cache),
        })
    }

    /// Returns the number of algorithms.
    pub(in crate::providers::rustls) fn algorithms(&self) -> usize {
        self.compressors.len()
    }

    /// Returns the size of a server's chain in bytes with each algorithm, without algorithms that
    /// fail.
    pub(in crate::providers::rustls) fn sizes(
        &self,
        chain: &[CertificateDer<'_>],
    ) -> Vec<Compressed> {
        let sized = self.compressors.iter().filter_map(|compressor| {
            let algorithm = CertificateCompression::from_iana(compressor.algorithm().into())?;
            // As rustls does for a chain that it caches.
            let level = CompressionLevel::Amortized;
            let compressed = compressor.compress(message_body(chain), level).ok()?;
            Some(Compressed {
                algorithm,
                len: compressed.len(),
            })
        });
        sized.collect()
    }

    pub(in crate::providers::rustls) fn apply_to_server(&self, config: &mut ServerConfig) {
        config.cert_compressors.clone_from(&self.compressors);
        config.cert_decompressors.clone_from(&self.decompressors);
        config.cert_compression_cache = self.cache.clone();
    }

    pub(in crate::providers::rustls) fn apply_to_client(&self, config: &mut ClientConfig) {
        config.cert_compressors.clone_from(&self.compressors);
        config.cert_decompressors.clone_from(&self.decompressors);
        config.cert_compression_cache = self.cache.clone();
    }
}

/// Returns the body of a Certificate message (RFC 8446 §4.4.2).
fn message_body(chain: &[CertificateDer<'_>]) -> Vec<u8> {
    let len = body_len(chain);
    let mut body = Vec::with_capacity(len);
    body.push(0);
    push_u24(&mut body, len - 4);
    for certificate in chain {
        push_u24(&mut body, certificate.len());
        body.extend_from_slice(certificate);
        body.extend_from_slice(&[0, 0]);
    }
    body
}

fn push_u24(to: &mut Vec<u8>, number: usize) {
    to.extend_from_slice(&[(number >> 16) as u8, (number >> 8) as u8, number as u8]);
}

type Both = (&'static dyn CertCompressor, &'static dyn CertDecompressor);

#[cfg_attr(
    all(feature = "brotli", feature = "zlib"),
    expect(clippy::unnecessary_wraps, reason = "an algorithm may not be built in")
)]
fn built(algorithm: CertificateCompression) -> Result<Both, ConfigError> {
    match algorithm {
        #[cfg(feature = "brotli")]
        CertificateCompression::Brotli => Ok((
            ::rustls::compress::BROTLI_COMPRESSOR,
            ::rustls::compress::BROTLI_DECOMPRESSOR,
        )),
        #[cfg(feature = "zlib")]
        CertificateCompression::Zlib => Ok((
            ::rustls::compress::ZLIB_COMPRESSOR,
            ::rustls::compress::ZLIB_DECOMPRESSOR,
        )),
        #[cfg(not(all(feature = "brotli", feature = "zlib")))]
        missing => Err(unsupported(format!(
            "certificate compression by {missing} is not built in; enable the feature `{missing}` \
             of hybriq, or leave it out of certificate_compression"
        ))),
    }
}
