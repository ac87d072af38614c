//! Options of our endpoint that the runner does not know.

use std::net::SocketAddr;

use hybriq::{Backend, Group, KeyExchange};

/// Options of our endpoint: words like `tls=s2n-tls groups=X25519MLKEM768,X25519`.
///
/// | option | contents |
/// |---|---|
/// | `tls` | `rustls` (default) or `s2n-tls` |
/// | `groups` | groups of key exchange by name, the preferred one first |
/// | `preferred` | addresses that clients are asked to move to in `connectionmigration` |
#[derive(Clone, Debug)]
pub struct Params {
    /// TLS library.
    pub backend: Backend,
    /// Policy for the key exchange, if it is not the default.
    pub key_exchange: Option<KeyExchange>,
    /// Addresses for [`TestCase::ConnectionMigration`](super::TestCase::ConnectionMigration).
    pub preferred: Vec<SocketAddr>,
}

impl Params {
    /// Reads the options.
    ///
    /// # Errors
    /// The word that is wrong, and what it may be.
    pub fn read(words: &str) -> Result<Self, String> {
        let mut params = Self {
            backend: Backend::Rustls,
            key_exchange: None,
            preferred: Vec::new(),
        };
        for word in words.split_whitespace() {
            match word.split_once('=') {
                Some(("tls", "rustls")) => params.backend = Backend::Rustls,
                Some(("tls", "s2n-tls")) => params.backend = Backend::S2nTls,
                Some(("tls", _)) => return Err(format!("'{word}': rustls or s2n-tls")),
                Some(("groups", names)) => {
                    let groups = names.split(',').map(|name| {
                        Group::from_name(name).ok_or_else(|| format!("no group is called '{name}'"))
                    });
                    let groups: Vec<_> = groups.collect::<Result<_, _>>()?;
                    params.key_exchange = Some(KeyExchange::Exactly(groups));
                }
                Some(("preferred", addresses)) => {
                    let addresses = addresses.split(',').map(|address| {
                        let wrong = |_| format!("'{address}' is not address:port");
                        address.parse::<SocketAddr>().map_err(wrong)
                    });
                    params.preferred = addresses.collect::<Result<_, _>>()?;
                }
                _ => return Err(format!("'{word}': tls=, groups= or preferred=")),
            }
        }
        Ok(params)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_read() {
        let params = Params::read(
            "tls=s2n-tls groups=X25519MLKEM768,X25519 preferred=192.0.2.1:444,[2001:db8::1]:444",
        )
        .expect("options");
        assert_eq!(params.backend, Backend::S2nTls);
        let groups = vec![Group::X25519MLKEM768, Group::X25519];
        assert_eq!(params.key_exchange, Some(KeyExchange::Exactly(groups)));
        assert_eq!(params.preferred.len(), 2);
        assert!(Params::read("").is_ok());
    }

    #[test]
    fn wrong_options_are_named() {
        for words in [
            "tls",
            "tls=openssl",
            "groups=X25519,nonsense",
            "preferred=192.0.2.1",
            "speed=high",
        ] {
            let problem = Params::read(words).expect_err(words);
            assert!(problem.contains('\''), "{problem}");
        }
    }
}
