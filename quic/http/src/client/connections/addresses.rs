//! Finds the addresses of servers.

use std::{collections::HashMap, io, net::SocketAddr, pin::Pin, sync::Arc};

use hybriq::happy_eyeballs::in_turns;

use super::records::HttpsResolver;
use crate::client::origin::Origin;

type Found = Pin<Box<dyn Future<Output = io::Result<Vec<SocketAddr>>> + Send>>;

/// Finds the addresses of hosts.
pub(in crate::client) struct Lookup {
    /// Addresses that need no lookup.
    pub(in crate::client) fixed: HashMap<String, Vec<SocketAddr>>,
    pub(in crate::client) resolver: Option<Resolver>,
    /// Where HTTPS records come from.
    pub(in crate::client) records: Option<Arc<dyn HttpsResolver>>,
}

/// The application's resolver.
pub(in crate::client) type Resolver = Box<dyn Fn(String, u16) -> Found + Send + Sync>;

impl Lookup {
    /// Returns the addresses of a host, in the order in which they are tried.
    ///
    /// # Errors
    /// The host has no address, or the lookup failed.
    pub(in crate::client) async fn find(&self, origin: &Origin) -> io::Result<Vec<SocketAddr>> {
        let (host, port) = (origin.host(), origin.port());
        let found = if let Some(fixed) = self.fixed.get(host) {
            let with_port = |address: &SocketAddr| match address.port() {
                0 => SocketAddr::new(address.ip(), port),
                _ => *address,
            };
            fixed.iter().map(with_port).collect()
        } else if let Some(resolver) = &self.resolver {
            resolver(host.to_owned(), port).await?
        } else {
            tokio::net::lookup_host((host, port)).await?.collect()
        };
        if found.is_empty() {
            let error = format!("'{host}' has no address; check the name");
            return Err(io::Error::new(io::ErrorKind::NotFound, error));
        }
        Ok(in_turns(found))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(text: &str) -> SocketAddr {
        text.parse().expect("an address")
    }

    /// Fixed addresses need no resolver, and get the port of the URI if they have none.
    #[tokio::test]
    async fn fixed_addresses_come_first() {
        let resolver: Resolver = Box::new(|host, port| {
            assert_eq!(host, "other.test");
            Box::pin(async move { Ok(vec![SocketAddr::from(([192, 0, 2, 2], port))]) })
        });
        let fixed = vec![address("192.0.2.1:0"), address("192.0.2.1:9")];
        // Families alternate (RFC 8305 §4).
        let both = ["192.0.2.1:1", "192.0.2.2:2", "[2001:db8::1]:3"].map(address);
        let lookup = Lookup {
            fixed: HashMap::from([
                ("fixed.test".to_owned(), fixed),
                ("both.test".to_owned(), both.to_vec()),
            ]),
            resolver: Some(resolver),
            records: None,
        };
        let found = lookup.find(&Origin::new("fixed.test", 8)).await.ok();
        let expected = ["192.0.2.1:8", "192.0.2.1:9"].map(address);
        assert_eq!(found.as_deref(), Some(&expected[..]));
        let found = lookup.find(&Origin::new("both.test", 8)).await.ok();
        assert_eq!(found, Some(vec![both[2], both[0], both[1]]));
        let found = lookup.find(&Origin::new("other.test", 8)).await.ok();
        assert_eq!(found, Some(vec![address("192.0.2.2:8")]));
    }
}
