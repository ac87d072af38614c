//! Certificate compression (RFC 8879): both directions, its bounds, and where there is none.

use hybriq_tls::{CertificateCompression, ClientAuth, ConfigError};

use crate::support::{Authority, CONTENDERS, HOST, Pair, client_hello, options, pairings};

/// Both ends with certificates that compress well, and these algorithms.
fn compressing(
    client: &[CertificateCompression],
    server: &[CertificateCompression],
) -> (hybriq_tls::ClientOptions, hybriq_tls::ServerOptions) {
    let authority = Authority::new("root");
    let names: Vec<String> = (0..40).map(|n| format!("host-{n}.example.test")).collect();
    let names: Vec<&str> = [HOST]
        .into_iter()
        .chain(names.iter().map(String::as_str))
        .collect();
    (
        hybriq_tls::ClientOptions::new()
            .alpn(crate::support::ALPN)
            .trust(authority.trust())
            .identity(authority.issue(&names))
            .certificate_compression(client.iter().copied()),
        hybriq_tls::ServerOptions::new(authority.issue(&names))
            .alpn(crate::support::ALPN)
            .without_tickets()
            .client_auth(ClientAuth::Required(authority.trust()))
            .certificate_compression(server.iter().copied()),
    )
}

#[test]
fn nothing_is_compressed_unasked() {
    let options = compressing(&[], &[]);
    for pairing in pairings() {
        let pair = Pair::of(pairing, &options).complete();
        for end in [&pair.client, &pair.server] {
            let message = end.session.negotiated().certificate_message;
            assert_eq!(message.and_then(|it| it.compression), None);
        }
    }
    for contender in CONTENDERS {
        let client = (contender.client)(&options.0).expect("a client");
        let hello = client_hello(&*client);
        assert_eq!(hello.certificate_compression().count(), 0);
    }
}

#[test]
fn a_library_or_a_build_without_the_algorithm_says_what_to_do() {
    for contender in CONTENDERS {
        for algorithm in CertificateCompression::ALL {
            let (client, server) = options();
            let client = client.certificate_compression([algorithm]);
            let server = server.certificate_compression([algorithm]);
            let built = match algorithm {
                CertificateCompression::Brotli => cfg!(feature = "brotli"),
                _ => cfg!(feature = "zlib"),
            };
            let remedy = match contender.name {
                "rustls" if built => continue,
                "rustls" => format!("enable the feature `{algorithm}`"),
                _ => "use rustls".to_owned(),
            };
            let refusals = [
                (contender.client)(&client).map(drop).expect_err("a client"),
                (contender.server)(&server).map(drop).expect_err("a server"),
            ];
            for refusal in refusals {
                assert!(
                    matches!(refusal, ConfigError::Unsupported { .. }),
                    "{refusal}"
                );
                assert!(refusal.to_string().contains(&remedy), "{refusal}");
            }
        }
    }
}

#[cfg(all(feature = "rustls", feature = "brotli", feature = "zlib"))]
mod built {
    use std::sync::Arc;

    use bytes::BytesMut;
    use hybriq_tls::{
        Backend, CertificateCompression as Algorithm, CertificateDer, Provider, Side,
    };
    use rustls::compress::{BROTLI_COMPRESSOR, CertCompressor, CompressionLevel, ZLIB_COMPRESSOR};

    use super::compressing;
    use crate::support::{Failure, Pair, Slices, client_hello};

    const BROTLI: Algorithm = Algorithm::Brotli;
    const ZLIB: Algorithm = Algorithm::Zlib;

    fn providers(
        client: &[Algorithm],
        server: &[Algorithm],
    ) -> (Arc<dyn Provider>, Arc<dyn Provider>) {
        let options = compressing(client, server);
        let client = Backend::Rustls.client(&options.0).expect("a client");
        (
            client,
            Backend::Rustls.server(&options.1).expect("a server"),
        )
    }

    fn pair(client: &[Algorithm], server: &[Algorithm]) -> Pair {
        let (client, server) = providers(client, server);
        Pair::new(&*client, &*server)
    }

    #[test]
    fn both_ends_compress_by_the_first_choice_that_the_other_accepts() {
        for (client, server, of_server, of_client) in [
            (&[BROTLI][..], &[BROTLI][..], Some(BROTLI), Some(BROTLI)),
            (&[ZLIB], &[ZLIB], Some(ZLIB), Some(ZLIB)),
            (&[ZLIB, BROTLI], &[BROTLI, ZLIB], Some(BROTLI), Some(ZLIB)),
            (&[ZLIB], &[BROTLI, ZLIB], Some(ZLIB), Some(ZLIB)),
            (&[ZLIB], &[BROTLI], None, None),
            (&[], &[BROTLI], None, None),
            (&[BROTLI], &[], None, None),
        ] {
            let (provider, _) = providers(client, server);
            let hello = client_hello(&*provider);
            assert!(hello.certificate_compression().eq(client.iter().copied()));
            let pair = pair(client, server).complete();
            for (end, expected) in [(&pair.client, of_server), (&pair.server, of_client)] {
                let negotiated = end.session.negotiated();
                let message = negotiated.certificate_message.expect("a chain");
                assert_eq!(message.compression, expected, "{client:?} {server:?}");
                let certificates = end.session.peer_certificates();
                let plain: usize = certificates.iter().map(|it| 3 + it.len() + 2).sum();
                assert_eq!(message.uncompressed_len as usize, 4 + 1 + 3 + plain);
                let smaller = message.len < message.uncompressed_len;
                assert_eq!(smaller, expected.is_some(), "{message:?}");
            }
        }
    }

    /// rustls compresses with more effort where it keeps the result, which its size tells.
    #[test]
    fn a_compressed_chain_is_kept_for_later_handshakes() {
        let (client, server) = providers(&[BROTLI], &[BROTLI]);
        for _ in 0..2 {
            let pair = Pair::new(&*client, &*server).complete();
            let of_server = (&pair.client, Side::Server);
            for (receiver, of) in [of_server, (&pair.server, Side::Client)] {
                let message = receiver.session.negotiated().certificate_message;
                let plain = plain(&receiver.session.peer_certificates());
                let [kept, in_passing] =
                    [CompressionLevel::Amortized, CompressionLevel::Interactive]
                        .map(|level| BROTLI_COMPRESSOR.compress(plain.clone(), level))
                        .map(|compressed| 4 + 2 + 3 + 3 + compressed.expect("bytes").len() as u32);
                assert!(kept < in_passing, "{kept} and {in_passing} bytes");
                assert_eq!(message.expect("a chain").len, kept, "{of:?}");
            }
        }
    }

    /// The body of a Certificate message.
    fn plain(chain: &[CertificateDer<'static>]) -> Vec<u8> {
        let three = |number: usize| [(number >> 16) as u8, (number >> 8) as u8, number as u8];
        let mut list = Vec::new();
        for certificate in chain {
            list.extend_from_slice(&three(certificate.len()));
            list.extend_from_slice(certificate);
            list.extend_from_slice(&[0, 0]);
        }
        let mut body = vec![0];
        body.extend_from_slice(&three(list.len()));
        body.extend_from_slice(&list);
        body
    }

    fn compressed(by: &dyn CertCompressor, bytes: Vec<u8>) -> Vec<u8> {
        let result = by.compress(bytes, CompressionLevel::Interactive);
        result.expect("compressed bytes")
    }

    /// A CompressedCertificate message.
    fn message(algorithm: u16, announced: usize, compressed: &[u8]) -> Vec<u8> {
        let three = |number: usize| [(number >> 16) as u8, (number >> 8) as u8, number as u8];
        let mut message = vec![25];
        message.extend_from_slice(&three(2 + 3 + 3 + compressed.len()));
        message.extend_from_slice(&algorithm.to_be_bytes());
        message.extend_from_slice(&three(announced));
        message.extend_from_slice(&three(compressed.len()));
        message.extend_from_slice(compressed);
        message
    }

    /// Replaces the certificates of one end's flight, and returns how the other refuses them.
    fn refusal(of: Side, forged: &[u8]) -> Failure {
        let mut pair = pair(&[BROTLI, ZLIB], &[BROTLI, ZLIB]);
        pair.turn(Slices::Whole).expect("a server's flight");
        if of.is_client() {
            pair.client.drive().expect("a client's flight");
        }
        let flight = match of {
            Side::Server => &mut pair.client.inbox.handshake,
            Side::Client => &mut pair.client.outbox.crypto.handshake,
        };
        let whole = flight.split();
        let (mut rest, mut out) = (&whole[..], BytesMut::new());
        while let [kind, high, middle, low, ..] = *rest {
            let len = 4 + u32::from_be_bytes([0, high, middle, low]) as usize;
            let (first, behind) = rest.split_at(len);
            out.extend_from_slice(if kind == 25 { forged } else { first });
            rest = behind;
        }
        *flight = out;
        pair.fail()
    }

    #[test]
    fn a_chain_that_expands_beyond_its_bounds_is_refused() {
        const MIB: usize = 1024 * 1024;
        for (by, number) in [(ZLIB_COMPRESSOR, 1), (BROTLI_COMPRESSOR, 2)] {
            let bomb = compressed(by, vec![0; 15 * MIB]);
            assert!(bomb.len() < 64 * 1024, "{} bytes", bomb.len());
            let small = compressed(by, vec![0; 1000]);
            for (what, forged) in [
                ("announced as it is", message(number, 15 * MIB, &bomb)),
                ("just above the limit", message(number, 65_537, &bomb)),
                ("announced as at the limit", message(number, 65_536, &bomb)),
                ("announced as small", message(number, 100, &bomb)),
                ("announced too short", message(number, 999, &small)),
                ("announced too long", message(number, 1001, &small)),
                ("no chain in it", message(number, 1000, &small)),
                ("garbage", message(number, 1000, &[0xff; 100])),
                ("nothing", message(number, 1000, &[])),
                ("an algorithm that nobody offered", message(3, 1000, &small)),
            ] {
                for of in [Side::Server, Side::Client] {
                    let failure = refusal(of, &forged);
                    assert_eq!(failure.side, of.peer(), "{what}: {}", failure.error);
                    let alert = failure.error.alert.0;
                    let empty = what == "no chain in it" && matches!(alert, 50 | 116);
                    assert!(alert == 42 || empty, "{what}: {}", failure.error);
                }
            }
        }
    }
}
