//! Finds the addresses of servers, and tries them in turn (RFC 8305).

use std::{collections::HashMap, io, net::SocketAddr, pin::Pin, time::Duration};

use futures_util::{StreamExt as _, stream::FuturesUnordered};

use crate::client::origin::Origin;

/// Largest number of addresses that are tried for a server.
const MOST: usize = 16;

type Found = Pin<Box<dyn Future<Output = io::Result<Vec<SocketAddr>>> + Send>>;

/// Finds the addresses of hosts.
pub(in crate::client) struct Lookup {
    /// Addresses that need no lookup.
    pub(in crate::client) fixed: HashMap<String, Vec<SocketAddr>>,
    pub(in crate::client) resolver: Option<Resolver>,
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

/// Orders addresses so that the families alternate, IPv6 first (RFC 8305 §4).
fn in_turns(addresses: Vec<SocketAddr>) -> Vec<SocketAddr> {
    let (v6, v4): (Vec<_>, Vec<_>) = addresses.into_iter().partition(SocketAddr::is_ipv6);
    let (mut v6, mut v4) = (v6.into_iter(), v4.into_iter());
    let mut ordered = Vec::new();
    while ordered.len() < MOST {
        let before = ordered.len();
        ordered.extend(v6.next());
        ordered.extend(v4.next());
        if ordered.len() == before {
            break;
        }
    }
    ordered
}

/// Connects to the first address that answers. The next address is tried when one fails, or if none has answered for
/// `delay` (RFC 8305 §5). Losing attempts are dropped.
///
/// # Errors
/// All addresses failed; the error is that of the first failure.
pub(super) async fn first<T, E, F>(
    addresses: Vec<SocketAddr>,
    delay: Duration,
    connect: impl Fn(SocketAddr) -> F,
) -> Result<T, Option<E>>
where
    F: Future<Output = Result<T, E>>,
{
    let mut left = addresses.into_iter();
    let mut attempts = FuturesUnordered::new();
    let mut error = None;
    loop {
        attempts.extend(left.next().map(&connect));
        tokio::select! {
            ended = attempts.next() => match ended {
                Some(Ok(connected)) => return Ok(connected),
                Some(Err(failed)) => error = error.or(Some(failed)),
                None => return Err(error),
            },
            () = tokio::time::sleep(delay), if left.len() > 0 => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{cell::RefCell, future::pending};

    use tokio::time::{Instant, sleep};

    use super::*;

    fn address(text: &str) -> SocketAddr {
        text.parse().expect("an address")
    }

    const DELAY: Duration = Duration::from_millis(250);

    #[test]
    fn families_take_turns() {
        let given = ["1.1.1.1:1", "2.2.2.2:1", "[::1]:1", "3.3.3.3:1", "[::2]:1"];
        let ordered = in_turns(given.map(address).to_vec());
        let expected = ["[::1]:1", "1.1.1.1:1", "[::2]:1", "2.2.2.2:1", "3.3.3.3:1"];
        assert_eq!(ordered, expected.map(address));
        let many = (1..200).map(|port| SocketAddr::from(([127, 0, 0, 1], port)));
        assert_eq!(in_turns(many.collect()).len(), MOST);
    }

    /// The second address is tried after the delay, and wins.
    #[tokio::test(start_paused = true)]
    async fn a_silent_address_does_not_hold_up_the_next() {
        let (silent, good) = (address("[::1]:1"), address("1.1.1.1:1"));
        let start = Instant::now();
        let connected = first(vec![silent, good], DELAY, |address| async move {
            if address == silent {
                pending::<()>().await;
            }
            Ok::<_, ()>(address)
        });
        assert_eq!(connected.await, Ok(good));
        assert_eq!(start.elapsed(), DELAY);
    }

    /// An address that fails is followed by the next at once, and a slow one that started earlier may still
    /// win.
    #[tokio::test(start_paused = true)]
    async fn failures_do_not_wait() {
        let start = Instant::now();
        let tried = RefCell::new(Vec::new());
        let addresses = ["1.1.1.1:1", "2.2.2.2:2", "3.3.3.3:3"].map(address);
        let connected = first(addresses.to_vec(), DELAY, |address| {
            tried.borrow_mut().push(address.port());
            async move {
                match address.port() {
                    1 => Err("refused"),
                    2 => {
                        sleep(DELAY * 2).await;
                        Ok(2)
                    }
                    _ => pending().await,
                }
            }
        });
        assert_eq!(connected.await, Ok(2));
        assert_eq!(start.elapsed(), DELAY * 2);
        assert_eq!(*tried.borrow(), [1, 2, 3]);
    }

    #[tokio::test(start_paused = true)]
    async fn the_first_error_is_told() {
        let addresses = ["1.1.1.1:1", "2.2.2.2:2"].map(address);
        let failed = first(addresses.to_vec(), DELAY, |address| async move {
            Err::<(), _>(address.port())
        });
        assert_eq!(failed.await, Err(Some(1)));
        let none = first(Vec::new(), DELAY, |_| async { Err::<(), ()>(()) });
        assert_eq!(none.await, Err(None));
    }

    /// Fixed addresses need no resolver, and get the port of the URI if they have none.
    #[tokio::test]
    async fn fixed_addresses_come_first() {
        let resolver: Resolver = Box::new(|host, port| {
            assert_eq!(host, "other.test");
            Box::pin(async move { Ok(vec![SocketAddr::from(([192, 0, 2, 2], port))]) })
        });
        let fixed = vec![address("192.0.2.1:0"), address("192.0.2.1:9")];
        let lookup = Lookup {
            fixed: HashMap::from([("fixed.test".to_owned(), fixed)]),
            resolver: Some(resolver),
        };
        let found = lookup.find(&Origin::new("fixed.test", 8)).await.ok();
        let expected = ["192.0.2.1:8", "192.0.2.1:9"].map(address);
        assert_eq!(found.as_deref(), Some(&expected[..]));
        let found = lookup.find(&Origin::new("other.test", 8)).await.ok();
        assert_eq!(found, Some(vec![address("192.0.2.2:8")]));
    }
}
