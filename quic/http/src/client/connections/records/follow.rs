//! The way from the name of a server to the services of its records (RFC 9460 §3).

use std::{
    hash::{BuildHasher as _, RandomState},
    io,
    net::SocketAddr,
};

use hybriq::{happy_eyeballs::in_turns, tls::SupportedGroups};

use super::{HttpsRecord, HttpsResolver};
use crate::client::{
    connections::alt_svc::{Reach, allows_port},
    origin::Origin,
};

/// Largest number of aliases that are followed (RFC 9460 §3 step 2).
const MOST_ALIASES: usize = 8;

/// Largest number of services that are kept for a server, those of the best priority.
const MOST_SERVICES: usize = 8;

/// A place that a server's records lead to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in super::super) struct Service {
    /// Host whose addresses are looked up, and port.
    pub(in super::super) place: Origin,
    /// Addresses until those of the host are known.
    pub(in super::super) hints: Vec<SocketAddr>,
    pub(in super::super) http3: bool,
    pub(in super::super) tcp: bool,
    pub(in super::super) groups: Option<SupportedGroups>,
}

/// Reason why the records of a server lead nowhere.
#[derive(Debug, thiserror::Error)]
pub(in super::super) enum FollowError {
    #[error(transparent)]
    Lookup(#[from] io::Error),
    #[error("more than {MOST_ALIASES} aliases in a row")]
    Aliases,
}

/// Returns the services of a server by its records, first choice first.
pub(in super::super) async fn services(
    resolver: &dyn HttpsResolver,
    origin: &Origin,
) -> Result<Vec<Service>, FollowError> {
    let mut name = match origin.port() {
        443 => origin.host().to_owned(),
        // RFC 9460 §9.1.
        port => format!("_{port}._https.{}", origin.host()),
    };
    let mut aliases = 0;
    loop {
        let mut records = resolver.lookup(name.clone()).await?;
        if let Some(at) = records.iter().position(|record| record.priority == 0) {
            let alias = records.swap_remove(at);
            if alias.target.is_empty() {
                // The service does not exist (RFC 9460 §2.5.1), which is only advice.
                return Ok(Vec::new());
            }
            aliases += 1;
            if aliases > MOST_ALIASES {
                return Err(FollowError::Aliases);
            }
            name = alias.target;
            continue;
        }
        let is_alone = records.is_empty();
        let mut services = choose(records, origin);
        if is_alone && aliases > 0 {
            services.push(Service {
                place: Origin::new(&name, origin.port()),
                hints: Vec::new(),
                http3: false,
                tcp: true,
                groups: None,
            });
        }
        return Ok(services);
    }
}

/// Returns the services of the records that are compatible with this client.
fn choose(mut records: Vec<HttpsRecord>, origin: &Origin) -> Vec<Service> {
    let ech = records
        .iter()
        .map(|record| record.params.ech)
        .sum::<usize>();
    if ech > 0 {
        tracing::debug!(%origin, "ignored {ech} configurations of Encrypted Client Hello: it is not supported");
    }
    // Records of one priority share the load (RFC 9460 §2.4.1).
    let random = RandomState::new();
    records.sort_by_cached_key(|record| (record.priority, random.hash_one(&record.target)));
    let services = records.into_iter().filter_map(|record| {
        let params = record.params;
        let host = Some(record.target).filter(|target| !target.is_empty());
        let place = Origin::new(
            &host.unwrap_or(record.owner),
            params.port.unwrap_or(origin.port()),
        );
        let is_usable = !params.is_incompatible
            && (params.http3 || params.tcp)
            && allows_port(origin.port(), place.port());
        let hints = params.hints.into_iter();
        let hints = hints.filter(|hint| Reach::of(*hint).is_some());
        is_usable.then(|| Service {
            hints: in_turns(hints.map(|hint| SocketAddr::new(hint, place.port()))),
            place,
            http3: params.http3,
            tcp: params.tcp,
            groups: params.groups,
        })
    });
    services.take(MOST_SERVICES).collect()
}
