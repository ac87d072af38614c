//! Servers that speak HTTP/3, as their answers say (RFC 7838).

mod parse;

use std::{collections::HashMap, hash::Hash, time::Duration};

use http::{
    HeaderMap,
    header::{AGE, ALT_SVC},
};
use tokio::time::Instant;

use self::parse::Advice;
use super::origin::Origin;

/// Longest time for which an alternative is good, whatever it says.
const LONGEST_AGE: Duration = Duration::from_secs(30 * 24 * 60 * 60);

/// Time for which an alternative that failed is left out: the first time, and at most. It doubles with
/// each failure.
const FIRST_PAUSE: Duration = Duration::from_secs(5 * 60);
const LONGEST_PAUSE: Duration = Duration::from_secs(2 * 24 * 60 * 60);

/// The alternatives of servers, and those that failed.
pub(super) struct AltSvc {
    most: usize,
    known: HashMap<Origin, Vec<Known>>,
    broken: HashMap<Origin, Broken>,
}

/// An alternative.
struct Known {
    place: Origin,
    until: Instant,
    persist: bool,
}

/// Failures of an alternative.
struct Broken {
    until: Instant,
    failures: u32,
}

impl AltSvc {
    /// Remembers the alternatives of at most so many servers.
    pub(super) fn new(most: usize) -> Self {
        Self {
            most,
            known: HashMap::new(),
            broken: HashMap::new(),
        }
    }

    /// Returns the numbers of servers with alternatives, and of alternatives that failed.
    pub(super) fn entries(&self) -> (usize, usize) {
        (self.known.len(), self.broken.len())
    }

    /// Learns from a response of the server itself, whose certificate was checked.
    pub(super) fn learn(&mut self, origin: &Origin, fields: &HeaderMap, now: Instant) {
        let values = fields.get_all(ALT_SVC).iter();
        let mut values = values.map(http::HeaderValue::as_bytes).peekable();
        if values.peek().is_none() {
            return;
        }
        let Some(advice) = parse::parse(values) else {
            tracing::debug!(%origin, "a malformed alt-svc field");
            return;
        };
        let Advice::Alternatives(alternatives) = advice else {
            self.known.remove(origin);
            return;
        };
        // The time that a cache has kept the response counts (RFC 7838 §3.1).
        let age = fields.get(AGE);
        let age = age.and_then(|age| age.to_str().ok()?.parse().ok());
        let age = Duration::from_secs(age.unwrap_or(0));
        let known = alternatives.into_iter().map(|alternative| {
            let host = alternative.host.as_deref().unwrap_or(origin.host());
            let left = alternative.max_age.saturating_sub(age).min(LONGEST_AGE);
            Known {
                place: Origin::new(host, alternative.port),
                until: now + left,
                persist: alternative.persist,
            }
        });
        let known: Vec<_> = known.filter(|known| known.until > now).collect();
        if known.is_empty() {
            self.known.remove(origin);
        } else {
            make_room(&mut self.known, self.most, origin, |known| {
                known.iter().map(|known| known.until).max()
            });
            self.known.insert(origin.clone(), known);
        }
    }

    /// Returns the alternative to use, if there is one that did not fail lately.
    pub(super) fn find(&self, origin: &Origin, now: Instant) -> Option<Origin> {
        let mut known = self.known.get(origin)?.iter();
        let usable = known.find(|known| known.until > now && !self.is_broken(&known.place, now));
        usable.map(|known| known.place.clone())
    }

    /// Returns true if the alternative failed lately.
    pub(super) fn is_broken(&self, place: &Origin, now: Instant) -> bool {
        let broken = self.broken.get(place);
        broken.is_some_and(|broken| broken.until > now)
    }

    /// Notes that an alternative failed where TCP works. It is left out for a while (RFC 7838 §2.4).
    pub(super) fn on_failure(&mut self, place: &Origin, now: Instant) {
        let failures = self.broken.get(place).map_or(0, |broken| broken.failures);
        let pause = FIRST_PAUSE.saturating_mul(1 << failures.min(16));
        make_room(&mut self.broken, self.most, place, |broken| {
            Some(broken.until)
        });
        let broken = Broken {
            until: now + pause.min(LONGEST_PAUSE),
            failures: failures + 1,
        };
        self.broken.insert(place.clone(), broken);
    }

    /// Notes that an alternative works.
    pub(super) fn on_success(&mut self, place: &Origin) {
        self.broken.remove(place);
    }

    /// Forgets the alternatives of a server, after one of them was not responsible for it (RFC 7838 §6).
    pub(super) fn forget(&mut self, origin: &Origin) {
        self.known.remove(origin);
    }

    /// Forgets the alternatives that do not outlast a change of the network, and all failures (RFC 7838
    /// §2.2).
    pub(super) fn on_network_change(&mut self) {
        self.broken.clear();
        self.known.retain(|_, known| {
            known.retain(|known| known.persist);
            !known.is_empty()
        });
    }
}

/// Makes room for an entry: without it, the one that ends first goes.
fn make_room<K: Clone + Eq + Hash, V>(
    entries: &mut HashMap<K, V>,
    most: usize,
    new: &K,
    until: impl Fn(&V) -> Option<Instant>,
) {
    while entries.len() >= most.max(1) && !entries.contains_key(new) {
        let first = entries.iter().min_by_key(|(_, entry)| until(entry));
        let Some(first) = first.map(|(key, _)| key.clone()) else {
            return;
        };
        entries.remove(&first);
    }
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    fn fields(value: &'static str) -> HeaderMap {
        HeaderMap::from_iter([(ALT_SVC, HeaderValue::from_static(value))])
    }

    fn origin() -> Origin {
        Origin::new("example.com", 443)
    }

    fn seconds(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[test]
    fn an_alternative_is_good_for_its_time() {
        let (mut alt_svc, now) = (AltSvc::new(10), Instant::now());
        assert_eq!(alt_svc.find(&origin(), now), None);
        alt_svc.learn(&origin(), &fields("h3=\":8443\"; ma=60"), now);
        let place = Origin::new("example.com", 8443);
        let found = alt_svc.find(&origin(), now + seconds(59));
        assert_eq!(found, Some(place.clone()));
        assert_eq!(alt_svc.find(&origin(), now + seconds(60)), None);
        assert_eq!(alt_svc.find(&Origin::new("example.com", 8443), now), None);
        // Malformed fields change nothing.
        alt_svc.learn(&origin(), &fields("h3="), now);
        assert_eq!(alt_svc.find(&origin(), now), Some(place));
        alt_svc.learn(&origin(), &fields("clear"), now);
        assert_eq!(alt_svc.find(&origin(), now), None);
        // A new field replaces the old one.
        alt_svc.learn(&origin(), &fields("h3=\":1\""), now);
        alt_svc.learn(&origin(), &fields("h3=\"b:2\""), now);
        assert_eq!(alt_svc.find(&origin(), now), Some(Origin::new("b", 2)));
        alt_svc.learn(&origin(), &fields("h3=\":1\"; ma=0"), now);
        assert_eq!(alt_svc.find(&origin(), now), None);
        // However long it says.
        let long = fields("h3=\":1\"; ma=18446744073709551615");
        alt_svc.learn(&origin(), &long, now);
        assert_eq!(alt_svc.find(&origin(), now + LONGEST_AGE), None);
    }

    /// A cache in front of the server has kept the response for a while.
    #[test]
    fn the_age_of_a_response_counts() {
        let (mut alt_svc, now) = (AltSvc::new(10), Instant::now());
        let mut fields = fields("h3=\":8443\"; ma=60");
        fields.insert(AGE, HeaderValue::from_static("50"));
        alt_svc.learn(&origin(), &fields, now);
        assert!(alt_svc.find(&origin(), now + seconds(9)).is_some());
        assert!(alt_svc.find(&origin(), now + seconds(10)).is_none());
    }

    #[test]
    fn a_broken_alternative_is_left_out_for_longer_each_time() {
        let (mut alt_svc, mut now) = (AltSvc::new(10), Instant::now());
        let value = "h3=\":1\"; ma=2592000, h3=\":2\"; ma=2592000";
        alt_svc.learn(&origin(), &fields(value), now);
        let [first, second] = [1, 2].map(|port| Origin::new("example.com", port));
        assert_eq!(alt_svc.find(&origin(), now), Some(first.clone()));
        for minutes in [5, 10, 20] {
            alt_svc.on_failure(&first, now);
            assert_eq!(alt_svc.find(&origin(), now), Some(second.clone()));
            now += seconds(minutes * 60 - 1);
            assert_eq!(alt_svc.find(&origin(), now), Some(second.clone()));
            now += seconds(1);
            assert_eq!(alt_svc.find(&origin(), now), Some(first.clone()));
        }
        for _ in 0..100 {
            alt_svc.on_failure(&first, now);
        }
        assert!(!alt_svc.is_broken(&first, now + LONGEST_PAUSE));
        alt_svc.on_success(&first);
        assert_eq!(alt_svc.find(&origin(), now), Some(first));
    }

    #[test]
    fn a_change_of_the_network_leaves_persistent_alternatives() {
        let (mut alt_svc, now) = (AltSvc::new(10), Instant::now());
        let value = "h3=\":1\", h3=\":2\"; persist=1";
        alt_svc.learn(&origin(), &fields(value), now);
        let place = Origin::new("example.com", 2);
        alt_svc.on_failure(&place, now);
        alt_svc.on_network_change();
        assert_eq!(alt_svc.find(&origin(), now), Some(place));
        alt_svc.learn(&origin(), &fields("h3=\":1\""), now);
        alt_svc.on_network_change();
        assert_eq!(alt_svc.find(&origin(), now), None);
    }

    /// A server, or many, cannot make the client remember without end.
    #[test]
    fn memory_is_bounded() {
        let (mut alt_svc, now) = (AltSvc::new(10), Instant::now());
        for port in 1..1000 {
            let origin = Origin::new("example.com", port);
            alt_svc.learn(&origin, &fields("h3=\":5000\""), now + seconds(port.into()));
            alt_svc.on_failure(&origin, now + seconds(port.into()));
            assert!(alt_svc.find(&origin, now).is_some());
        }
        assert_eq!((alt_svc.known.len(), alt_svc.broken.len()), (10, 10));
        assert!(
            alt_svc
                .find(&Origin::new("example.com", 990), now)
                .is_some()
        );
        assert!(
            alt_svc
                .find(&Origin::new("example.com", 989), now)
                .is_none()
        );
    }
}
