//! Hosts that a connection may be used for.

use std::sync::{Arc, Mutex, PoisonError};

use http::{Method, Request, header::HOST, uri::Authority};
use hybriq::tls::rustls::{Coverage, TcpServer};

use crate::Tls;

/// Longest host for which the answer is kept: that of a DNS name.
const LONGEST: usize = 255;

/// Requests that a server answers with 421 (Misdirected Request, RFC 9110 §15.5.20) before the service sees them,
/// because their connection was made for another host. Clients use a connection for all hosts of its certificate
/// (RFC 9113 §9.1.1, RFC 9114 §3.3), and repeat such a request on another connection.
///
/// Hosts are compared without their ports, and IP addresses are always served: clients send no server name for them.
/// A server with a single certificate and a single key exchange policy answers no request with 421 by default.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Misdirected {
    /// None: the service decides.
    Never,
    /// Requests for a host that has another certificate on this server, or whose key exchange policy
    /// ([`ServerConfig::key_exchange_for`](hybriq::ServerConfig::key_exchange_for)) does not allow what the connection
    /// negotiated. Clients that send no server name get every certificate's hosts, since they cannot ask for another
    /// one. The default.
    #[default]
    Elsewhere,
    /// In addition, requests for hosts that no certificate of this server covers. This is not the default, because
    /// many proxies pass on the host that they were asked for, which the certificate behind them does not cover.
    NotCovered,
}

/// The hosts of a connection.
pub(in crate::server) struct Hosts {
    /// Certificates and policies of all hosts, unless every host is served.
    names: Option<Arc<TcpServer>>,
    misdirected: Misdirected,
    /// The last host that is not the server name, and whether it is served.
    last: Mutex<Option<(Box<str>, bool)>>,
}

impl Hosts {
    pub(in crate::server) fn new(names: Arc<TcpServer>, misdirected: Misdirected) -> Self {
        let is_open = match misdirected {
            Misdirected::Never => true,
            Misdirected::Elsewhere => !names.tells_hosts_apart(),
            Misdirected::NotCovered => false,
        };
        Self {
            names: (!is_open).then_some(names),
            misdirected,
            last: Mutex::default(),
        }
    }

    /// Returns true if a request may use a connection with this handshake.
    pub(in crate::server) fn serve<B>(&self, request: &Request<B>, tls: &Tls) -> bool {
        let Some(names) = &self.names else {
            return true;
        };
        let uri = request.uri();
        if request.method() == Method::CONNECT && uri.scheme().is_none() {
            // The target is the host behind a proxy.
            return true;
        }
        if let Some(host) = uri.host() {
            return self.serves(names, host, tls);
        }
        let authority = request.headers().get(HOST);
        let authority = authority.and_then(|host| Authority::try_from(host.as_bytes()).ok());
        authority.is_none_or(|authority| self.serves(names, authority.host(), tls))
    }

    fn serves(&self, names: &TcpServer, host: &str, tls: &Tls) -> bool {
        let is_same = |name: &str| name.eq_ignore_ascii_case(host);
        let asked = tls.server_name.as_deref();
        if self.misdirected != Misdirected::NotCovered && asked.is_some_and(is_same) {
            return true;
        }
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, served)) = last.as_ref().filter(|(host, _)| is_same(host)) {
            return *served;
        }
        let is_certified = match names.coverage(asked, host) {
            Coverage::Covered => true,
            // A client that sends no server name gets the same certificate again.
            Coverage::Elsewhere if asked.is_some() => false,
            _ => self.misdirected != Misdirected::NotCovered,
        };
        let policy = names.key_exchange(Some(host));
        let is_allowed = match tls.group {
            Some(group) => {
                let may_resume = |lineage: hybriq::tls::Lineage| lineage.may_resume(policy);
                policy.has(group) && tls.lineage.is_none_or(may_resume)
            }
            // Before the handshake is complete.
            None => policy == names.key_exchange(asked),
        };
        let served = is_certified && is_allowed;
        if tls.group.is_some() && host.len() <= LONGEST {
            *last = Some((host.into(), served));
        }
        served
    }
}

#[cfg(test)]
mod tests {
    use hybriq::{Group, Identity, KeyExchange, ServerConfig, tls::Lineage};

    use super::*;

    fn identity(host: &str) -> Identity {
        let made = rcgen::generate_simple_self_signed([host.to_owned()]).expect("a name");
        let key = made.signing_key.serialize_der().try_into().expect("a key");
        Identity::from_der(vec![made.cert.der().clone()], key)
    }

    fn get(uri: &str) -> Request<()> {
        Request::get(uri).body(()).expect("a request")
    }

    fn tls(server_name: Option<&str>, group: Option<Group>, lineage: Option<Lineage>) -> Tls {
        Tls {
            group,
            hello_retry: false,
            lineage,
            resumed: true,
            suite: None,
            server_name: server_name.map(str::to_owned),
            alpn: None,
            client_certificates: Vec::new(),
            server_certificates: Vec::new(),
        }
    }

    #[test]
    fn a_client_without_a_server_name_and_the_target_of_a_proxy_are_served() {
        let config = ServerConfig::new(identity("localhost")).add_identity(identity("other.test"));
        let names = Arc::new(config.tcp(["h2"]).expect("a configuration"));
        for (misdirected, server_name, expected) in [
            (Misdirected::Elsewhere, None, true),
            (Misdirected::Elsewhere, Some("localhost"), false),
            (Misdirected::NotCovered, None, false),
        ] {
            let hosts = Hosts::new(names.clone(), misdirected);
            let tls = tls(server_name, Some(Group::X25519), None);
            let served = hosts.serve(&get("https://other.test/"), &tls);
            assert_eq!(served, expected, "{misdirected:?} {server_name:?}");
            let connect = Request::connect("other.test:443").body(());
            let connect = connect.expect("a request");
            assert!(hosts.serve(&connect, &tls), "{misdirected:?}");
        }
    }

    /// Neither over a classical key exchange, nor in a session that began with one.
    #[test]
    fn a_host_that_requires_post_quantum_key_exchange_is_served_over_nothing_less() {
        let config = ServerConfig::new(identity("localhost"))
            .key_exchange_for("secret.test", KeyExchange::RequirePostQuantum);
        let names = Arc::new(config.tcp(["h2"]).expect("a configuration"));
        for (group, lineage, expected) in [
            (
                Some(Group::X25519MLKEM768),
                Some(Lineage::PostQuantum),
                true,
            ),
            (Some(Group::X25519MLKEM768), Some(Lineage::Classical), false),
            (Some(Group::X25519MLKEM768), None, true),
            (Some(Group::X25519), None, false),
            (None, None, false),
        ] {
            let tls = tls(Some("localhost"), group, lineage);
            let hosts = Hosts::new(names.clone(), Misdirected::Elsewhere);
            let served = hosts.serve(&get("https://secret.test/"), &tls);
            assert_eq!(served, expected, "{group:?} {lineage:?}");
        }
    }
}
