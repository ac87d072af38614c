//! Options of our endpoint that the runner does not know.

use std::net::SocketAddr;

use hybriq::{Backend, ClientConfig, Group, KeyExchange, Trust};
use hybriq_netbench::stacks;

use super::{Role, TestCase, policies};

/// Options of our endpoint: words like `tls=s2n-tls groups=X25519MLKEM768,X25519`.
///
/// | option | contents |
/// |---|---|
/// | `tls` | `rustls` (default) or `s2n-tls` |
/// | `stack` | `hybriq` (default), `quinn`, `s2n-quic` or `quiche`: a peer that this program is built with |
/// | `alpn` | `h3`: all cases use HTTP/3, for peers without HTTP/0.9 |
/// | `groups` | groups of key exchange by name, the preferred one first |
/// | `peer-groups` | groups of the other end, by which s2n-tls finds a policy that shows the same |
/// | `preferred` | addresses that clients are asked to move to in `connectionmigration` |
#[derive(Clone, Debug)]
pub struct Params {
    /// TLS library.
    pub backend: Backend,
    /// Implementation of QUIC.
    pub stack: Stack,
    /// True if all cases use HTTP/3.
    pub only_http3: bool,
    /// Groups for the key exchange, if they are not the default.
    pub groups: Option<Vec<Group>>,
    /// Groups of the other end, if they are known.
    pub peer_groups: Vec<Group>,
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
            stack: Stack::Hybriq,
            only_http3: false,
            groups: None,
            peer_groups: Vec::new(),
            preferred: Vec::new(),
        };
        for word in words.split_whitespace() {
            match word.split_once('=') {
                Some(("tls", "rustls")) => params.backend = Backend::Rustls,
                Some(("tls", "s2n-tls")) => params.backend = Backend::S2nTls,
                Some(("tls", _)) => return Err(format!("'{word}': rustls or s2n-tls")),
                Some(("stack", "hybriq")) => params.stack = Stack::Hybriq,
                Some(("stack", "quinn")) => params.stack = Stack::Quinn,
                Some(("stack", "s2n-quic")) => params.stack = Stack::S2nQuic,
                Some(("stack", "quiche")) => params.stack = Stack::Quiche,
                Some(("stack", _)) => {
                    return Err(format!("'{word}': hybriq, quinn, s2n-quic or quiche"));
                }
                Some(("alpn", "h3")) => params.only_http3 = true,
                Some(("groups", names)) => params.groups = Some(read_groups(names)?),
                Some(("peer-groups", names)) => params.peer_groups = read_groups(names)?,
                Some(("preferred", addresses)) => {
                    let addresses = addresses.split(',').map(|address| {
                        let wrong = |_| format!("'{address}' is not address:port");
                        address.parse::<SocketAddr>().map_err(wrong)
                    });
                    params.preferred = addresses.collect::<Result<_, _>>()?;
                }
                _ => {
                    return Err(format!(
                        "'{word}': tls=, stack=, alpn=h3, groups=, peer-groups= or preferred="
                    ));
                }
            }
        }
        Ok(params)
    }

    /// Returns the reason why a case cannot be done with these options, if it cannot.
    pub(super) fn lack(&self, role: Role, case: TestCase) -> Option<&'static str> {
        if self.only_http3 && case == TestCase::KeyUpdate {
            return Some("the client of HTTP/3 updates no keys");
        }
        let groups = self.groups.clone()?;
        let is_known = match self.stack {
            Stack::Hybriq => self.policy(role, &groups).is_some(),
            Stack::Quinn => groups
                .iter()
                .all(|&group| stacks::rustls::group(group).is_ok()),
            Stack::S2nQuic => groups == [Group::SECP384R1],
            // BoringSSL lacks some hybrid groups, and its clients send the shares of two groups.
            Stack::Quiche => {
                let missing = [Group::SECP256R1MLKEM768, Group::SECP384R1MLKEM1024];
                !groups.iter().any(|group| missing.contains(group))
                    && (role == Role::Server || groups.len() == 1)
            }
        };
        let lack = match (self.stack, self.backend) {
            (Stack::Hybriq, Backend::S2nTls) => {
                "s2n-tls has no policy that comes to this group in this way"
            }
            _ => "the TLS library does not have these groups, or chooses the share itself",
        };
        (!is_known).then_some(lack)
    }

    /// Returns the policy of hybriq for groups; `None` if the TLS library does not have it.
    pub(super) fn policy(&self, role: Role, groups: &[Group]) -> Option<KeyExchange> {
        if self.backend == Backend::S2nTls {
            return policies::find(role, groups, &self.peer_groups);
        }
        let policy = KeyExchange::Exactly(groups.to_vec());
        let config = ClientConfig::new()
            .trust(Trust::dangerously_accept_any_certificate())
            .key_exchange(policy.clone());
        config.check().is_ok().then_some(policy)
    }
}

fn read_groups(names: &str) -> Result<Vec<Group>, String> {
    let groups = names
        .split(',')
        .map(|name| Group::from_name(name).ok_or_else(|| format!("no group is called '{name}'")));
    groups.collect()
}

/// Implementation of QUIC that an endpoint runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stack {
    /// hybriq.
    Hybriq,
    /// quinn.
    Quinn,
    /// s2n-quic.
    S2nQuic,
    /// quiche, with the feature `quiche`.
    Quiche,
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
        assert_eq!(params.groups, Some(groups));
        assert_eq!(params.preferred.len(), 2);
        assert!(Params::read("").is_ok());
    }

    #[test]
    fn groups_that_a_library_lacks_are_told_before_the_start() {
        let lacks = |words: &str, role| {
            let params = Params::read(words).expect(words);
            params.lack(role, TestCase::Transfer).is_some()
        };
        for (words, expected) in [
            ("groups=SecP384r1MLKEM1024", false),
            ("tls=s2n-tls groups=SecP384r1MLKEM1024", true),
            ("tls=s2n-tls groups=secp256r1 peer-groups=secp256r1", false),
            ("stack=quinn groups=X25519MLKEM768", false),
            ("stack=quinn groups=SecP384r1MLKEM1024", true),
            ("stack=s2n-quic groups=X25519", true),
            ("stack=quiche groups=X25519MLKEM768", false),
            ("stack=quiche groups=SecP256r1MLKEM768", true),
            ("", false),
        ] {
            assert_eq!(lacks(words, Role::Client), expected, "{words}");
        }
        let two = "stack=quiche groups=X25519MLKEM768,secp256r1";
        assert!(lacks(two, Role::Client) && !lacks(two, Role::Server));
        let http3 = Params::read("alpn=h3").expect("an option");
        assert!(http3.lack(Role::Client, TestCase::KeyUpdate).is_some());
    }

    #[test]
    fn wrong_options_are_named() {
        for words in [
            "tls",
            "tls=openssl",
            "groups=X25519,nonsense",
            "peer-groups=nonsense",
            "preferred=192.0.2.1",
            "speed=high",
            "alpn=h2",
            "stack=nonsense",
        ] {
            let problem = Params::read(words).expect_err(words);
            assert!(problem.contains('\''), "{problem}");
        }
    }
}
