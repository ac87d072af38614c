//! Hosts that a server's certificates cover.

use ::rustls::client::verify_server_name;
use ::rustls::server::ParsedCertificate;
use ::rustls::{CertificateError, Error};
use rustls_pki_types::ServerName;

use crate::{CertificateDer, Identity};

/// How the certificate that a client was shown relates to another host (RFC 9110 §7.4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Coverage {
    /// The certificate covers the host, or that cannot be determined: it has no names, or the host
    /// is an IP address, for which clients send no server name.
    Covered,
    /// Another certificate of the server covers the host: clients get it on a new connection.
    Elsewhere,
    /// No certificate of the server covers the host.
    Nowhere,
}

/// The certificates of a server, for questions about their names.
#[derive(Debug)]
pub(in crate::providers::rustls) struct Hosts(Vec<CertificateDer<'static>>);

impl Hosts {
    pub(in crate::providers::rustls) fn new(identities: &[Identity]) -> Self {
        let certificates = identities.iter().map(Identity::certificates);
        Self(
            certificates
                .filter_map(|chain| chain.first().cloned())
                .collect(),
        )
    }

    pub(in crate::providers::rustls) fn has_one(&self) -> bool {
        self.0.len() == 1
    }

    /// Returns how a host relates to the certificates that clients are shown for a server name.
    pub(in crate::providers::rustls) fn coverage(
        &self,
        server_name: Option<&str>,
        host: &str,
    ) -> Coverage {
        let host = ServerName::try_from(host).ok();
        let Some(host @ ServerName::DnsName(_)) = &host else {
            return Coverage::Covered;
        };
        let Self(certificates) = self;
        let asked = server_name.and_then(|name| ServerName::try_from(name).ok());
        let is_for_asked = |certificate: &&CertificateDer<'_>| {
            asked
                .as_ref()
                .is_some_and(|asked| covers(certificate, asked) == Some(true))
        };
        let mut shown: Vec<_> = certificates.iter().filter(is_for_asked).collect();
        if shown.is_empty() {
            shown.extend(certificates.first());
        }
        if shown
            .into_iter()
            .any(|certificate| covers(certificate, host) != Some(false))
        {
            Coverage::Covered
        } else if certificates
            .iter()
            .any(|certificate| covers(certificate, host) == Some(true))
        {
            Coverage::Elsewhere
        } else {
            Coverage::Nowhere
        }
    }
}

/// Returns true if a certificate covers a name, and `None` if it has no names or cannot be read.
pub(in crate::providers::rustls) fn covers(
    certificate: &CertificateDer<'_>,
    name: &ServerName<'_>,
) -> Option<bool> {
    let parsed = ParsedCertificate::try_from(certificate).ok()?;
    match verify_server_name(&parsed, name) {
        Ok(()) => Some(true),
        Err(Error::InvalidCertificate(CertificateError::NotValidForNameContext {
            presented,
            ..
        })) if presented.is_empty() => None,
        Err(_) => Some(false),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hosts(certificates: &[&[&str]]) -> Hosts {
        let make = |names: &&[&str]| {
            let names: Vec<_> = names.iter().map(|&name| name.to_owned()).collect();
            let made = rcgen::generate_simple_self_signed(names).expect("names");
            made.cert.der().clone()
        };
        Hosts(certificates.iter().map(make).collect())
    }

    #[test]
    fn a_host_is_covered_elsewhere_or_nowhere() {
        use Coverage::{Covered, Elsewhere, Nowhere};

        let several = hosts(&[
            &["a.test", "*.a.test"],
            &["b.test", "127.0.0.1"],
            &["shared.test", "a.test"],
        ]);
        for (server_name, host, expected) in [
            (Some("a.test"), "a.test", Covered),
            (Some("A.test"), "WWW.a.TEST", Covered),
            (Some("a.test"), "www.a.test.", Covered),
            (Some("a.test"), "x.www.a.test", Nowhere),
            (Some("a.test"), "b.test", Elsewhere),
            // Either certificate may have been shown.
            (Some("a.test"), "shared.test", Covered),
            (Some("b.test"), "a.test", Elsewhere),
            (Some("b.test"), "c.test", Nowhere),
            // The first certificate serves the others.
            (Some("c.test"), "c.test", Nowhere),
            (Some("c.test"), "a.test", Covered),
            (None, "www.a.test", Covered),
            (None, "b.test", Elsewhere),
            // Nobody can ask for these.
            (Some("a.test"), "127.0.0.1", Covered),
            (Some("a.test"), "192.0.2.1", Covered),
            (Some("a.test"), "[::1]", Covered),
            (Some("a.test"), "a b", Covered),
        ] {
            let found = several.coverage(server_name, host);
            assert_eq!(found, expected, "{server_name:?} {host}");
        }
        assert!(!several.has_one());
    }

    #[test]
    fn a_certificate_without_names_covers_everything() {
        let nameless = hosts(&[&[]]);
        assert_eq!(nameless.coverage(None, "a.test"), Coverage::Covered);
        assert_eq!(
            nameless.coverage(Some("b.test"), "a.test"),
            Coverage::Covered
        );
        let addresses = hosts(&[&["127.0.0.1"]]);
        assert_eq!(addresses.coverage(None, "a.test"), Coverage::Nowhere);
    }
}
