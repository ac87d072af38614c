//! The addresses of a server in the order in which they are tried, those of its records first.

use std::{
    collections::VecDeque,
    io,
    net::SocketAddr,
    pin::{Pin, pin},
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use futures_util::{FutureExt as _, future::Shared as SharedFuture};
use hybriq::{
    happy_eyeballs::{MAX_ADDRESSES, first_found},
    tls::SupportedGroups,
};

use super::{
    addresses::Lookup,
    records::{HttpsResolver, Service, is_asked_for, services},
};
use crate::client::origin::Origin;

/// Time to wait for HTTPS records once there are addresses: the Resolution Delay of RFC 8305 §3.
const RESOLUTION_DELAY: Duration = Duration::from_millis(50);

/// Attempts that are kept for the server's own addresses, which come last.
const OWN: usize = 4;

/// A lookup of addresses that begins when it is first needed, and whose outcome several attempts use.
type Finding =
    SharedFuture<Pin<Box<dyn Future<Output = Result<Vec<SocketAddr>, Arc<io::Error>>> + Send>>>;

/// How connections reach a server.
#[derive(Clone)]
pub(super) struct Route {
    /// The addresses of the server's own name.
    own: Finding,
    /// Where its records lead, each with the lookup of its addresses.
    services: Vec<(Service, Finding)>,
}

impl Route {
    /// Finds the way to a server. If its records can be asked for, this waits for them until a moment after its
    /// addresses are known.
    pub(super) async fn to(lookup: &Arc<Lookup>, origin: &Origin) -> Self {
        let own = finding(lookup, origin);
        let is_fixed = lookup.fixed.contains_key(origin.host());
        let records = lookup.records.as_deref();
        let records = records.filter(|_| !is_fixed && is_asked_for(origin));
        let services = match records {
            Some(records) => soon(records, origin, own.clone()).await,
            None => Vec::new(),
        };
        let services = services.into_iter().map(|service| {
            let addresses = if service.place == *origin {
                own.clone()
            } else {
                finding(lookup, &service.place)
            };
            (service, addresses)
        });
        Self {
            services: services.collect(),
            own,
        }
    }

    /// Returns the way to a server by its own addresses alone.
    pub(super) fn without_records(lookup: &Arc<Lookup>, origin: &Origin) -> Self {
        Self {
            own: finding(lookup, origin),
            services: Vec::new(),
        }
    }

    /// Returns true if the records say that the server speaks HTTP/3.
    pub(super) fn offers_http3(&self) -> bool {
        self.services.iter().any(|(service, _)| service.http3)
    }

    /// Returns the groups that the records say the server accepts over QUIC.
    pub(super) fn groups(&self) -> Option<&SupportedGroups> {
        let mut services = self.services.iter().map(|(service, _)| service);
        services.find(|service| service.http3)?.groups.as_ref()
    }

    /// Returns the addresses for QUIC.
    pub(super) fn over_quic(&self) -> Candidates {
        self.candidates(|service| service.http3)
    }

    /// Returns the addresses for TCP.
    pub(super) fn over_tcp(&self) -> Candidates {
        self.candidates(|service| service.tcp)
    }

    fn candidates(&self, is_wanted: impl Fn(&Service) -> bool) -> Candidates {
        let services = self
            .services
            .iter()
            .filter(|(service, _)| is_wanted(service));
        let services =
            services.map(|(service, addresses)| (service.hints.clone(), addresses.clone()));
        // The records may lead nowhere (RFC 9460 §3).
        let own = (Vec::new(), self.own.clone());
        Candidates {
            lookups: services.chain([own]).collect(),
            ..Candidates::default()
        }
    }
}

/// Looks up the records of a server. Gives up if its addresses are known first, after a moment.
async fn soon(records: &dyn HttpsResolver, origin: &Origin, own: Finding) -> Vec<Service> {
    let found = tokio::select! {
        found = services(records, origin) => found,
        () = async {
            // Its outcome is looked at later.
            let _ = own.await;
            tokio::time::sleep(RESOLUTION_DELAY).await;
        } => {
            tracing::debug!(%origin, "connecting without HTTPS records: their lookup takes too long");
            return Vec::new();
        }
    };
    found.unwrap_or_else(|error| {
        tracing::debug!(%origin, %error, "connecting without HTTPS records: their lookup failed");
        Vec::new()
    })
}

fn finding(lookup: &Arc<Lookup>, place: &Origin) -> Finding {
    let (lookup, place) = (lookup.clone(), place.clone());
    let found = async move { lookup.find(&place).await.map_err(Arc::new) };
    let found: Pin<Box<dyn Future<Output = _> + Send>> = Box::pin(found);
    found.shared()
}

/// Addresses to try, some of which are still being looked up.
#[derive(Default)]
pub(super) struct Candidates {
    /// Lookups, each with the addresses to use until it is done.
    lookups: VecDeque<(Vec<SocketAddr>, Finding)>,
    found: VecDeque<SocketAddr>,
    tried: Vec<SocketAddr>,
    failed: Option<Arc<io::Error>>,
}

impl Candidates {
    /// Takes addresses that are known.
    pub(super) fn of(addresses: Vec<SocketAddr>) -> Self {
        Self {
            found: addresses.into(),
            ..Self::default()
        }
    }

    /// Connects to the first address that answers (RFC 8305).
    ///
    /// # Errors
    /// The first error, made of that of the lookup by `lookup` if there was no address.
    pub(super) async fn first<T, E, F>(
        mut self,
        delay: Duration,
        connect: impl Fn(SocketAddr) -> F,
        lookup: impl Fn(io::Error) -> E,
    ) -> Result<T, E>
    where
        F: Future<Output = Result<T, E>>,
    {
        let connected = first_found(|cx| self.poll_next(cx), delay, connect).await;
        connected.map_err(|error| {
            error.unwrap_or_else(|| {
                let failed = self.failed.take();
                let failed = failed.map(|failed| io::Error::new(failed.kind(), failed.to_string()));
                lookup(failed.unwrap_or(io::ErrorKind::NotFound.into()))
            })
        })
    }

    /// Returns the next address, each only once.
    fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<SocketAddr>> {
        loop {
            while let Some(address) = self.found.pop_front() {
                let own = if self.lookups.is_empty() { 0 } else { OWN };
                if self.tried.len() + own >= MAX_ADDRESSES {
                    self.found.clear();
                    let others = self.lookups.len().saturating_sub(1);
                    self.lookups.drain(..others);
                    break;
                }
                if !self.tried.contains(&address) {
                    self.tried.push(address);
                    return Poll::Ready(Some(address));
                }
            }
            let Some((hints, finding)) = self.lookups.front_mut() else {
                return Poll::Ready(None);
            };
            match pin!(finding).poll(cx) {
                Poll::Ready(found) => {
                    self.lookups.pop_front();
                    match found {
                        Ok(addresses) => self.found = addresses.into(),
                        Err(error) => _ = self.failed.get_or_insert(error),
                    }
                }
                Poll::Pending if hints.is_empty() => return Poll::Pending,
                Poll::Pending => self.found = std::mem::take(hints).into(),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{future::ready, task::Waker};

    use super::*;

    fn found(addresses: Vec<SocketAddr>) -> Finding {
        let found: Pin<Box<dyn Future<Output = _> + Send>> = Box::pin(ready(Ok(addresses)));
        found.shared()
    }

    #[test]
    fn the_servers_own_addresses_are_tried_whatever_its_records_say() {
        let at = |port: u16| SocketAddr::from(([127, 0, 0, 1], port));
        let of_records = (1..=40).map(at).collect();
        let lookups = [of_records, vec![at(99)]].map(|addresses| (Vec::new(), found(addresses)));
        let mut candidates = Candidates {
            lookups: lookups.into(),
            ..Candidates::default()
        };
        let mut cx = Context::from_waker(Waker::noop());
        let mut tried = Vec::new();
        while let Poll::Ready(Some(address)) = candidates.poll_next(&mut cx) {
            tried.push(address);
        }
        assert_eq!(tried.last(), Some(&at(99)));
        assert_eq!(tried.len(), MAX_ADDRESSES - OWN + 1);
    }
}
