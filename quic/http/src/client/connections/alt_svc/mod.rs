//! Where servers offer HTTP/3, as learned from the `alt-svc` fields of their responses (RFC 7838).

mod parse;
mod rules;
mod stored;

use std::{collections::HashMap, hash::Hash, net::IpAddr, sync::Arc, time::Duration};

use http::{
    HeaderMap,
    header::{AGE, ALT_SVC},
};
use hybriq::memory::ServerStore;
use tokio::time::Instant;

pub use self::rules::OfferedHosts;
pub(super) use self::rules::{Reach, allows_port, is_host};
use self::{parse::Advice, rules::allow, stored::Stored};
use crate::client::origin::Origin;

/// Longest time for which an alternative is valid, regardless of what the server says.
const LONGEST_AGE: Duration = Duration::from_secs(30 * 24 * 60 * 60);

/// Time for which a failed alternative is not used: the first time, and at most. It doubles with each failure.
const FIRST_PAUSE: Duration = Duration::from_secs(5 * 60);
const LONGEST_PAUSE: Duration = Duration::from_secs(2 * 24 * 60 * 60);

/// The alternatives of servers, and those that failed.
pub(super) struct AltSvc {
    most: usize,
    hosts: OfferedHosts,
    known: HashMap<Origin, Vec<Known>>,
    /// By server and alternative, so that no server affects the alternatives of another.
    broken: HashMap<(Origin, Origin), Broken>,
    stored: Option<Stored>,
}

/// An alternative.
struct Known {
    place: Origin,
    until: Instant,
    persist: bool,
    /// Who can reach the address that the server answered from.
    from: Reach,
}

/// Failures of an alternative.
struct Broken {
    until: Instant,
    failures: u32,
}

impl AltSvc {
    /// Creates a store for the alternatives of at most `most` servers.
    pub(super) fn new(most: usize, hosts: OfferedHosts) -> Self {
        Self {
            most,
            hosts,
            known: HashMap::new(),
            broken: HashMap::new(),
            stored: None,
        }
    }

    /// Keeps the alternatives in a memory of servers, too.
    pub(super) fn stored_in(mut self, servers: Arc<dyn ServerStore>) -> Self {
        self.stored = Some(Stored::new(servers));
        self
    }

    /// Reads what is stored of a server, before its first connection.
    pub(super) fn recall(&mut self, origin: &Origin, now: Instant) {
        let is_unknown = !self.known.contains_key(origin);
        if let Some(stored) = self.stored.as_ref().filter(|_| is_unknown) {
            let mut known = stored.read(origin, now);
            // The memory may be old, and the settings new.
            known.retain(|known| known.until > now && allow(origin, &known.place, self.hosts));
            self.put(origin, known);
        }
    }

    /// Returns the numbers of servers with alternatives, and of alternatives that failed.
    pub(super) fn entries(&self) -> (usize, usize) {
        (self.known.len(), self.broken.len())
    }

    /// Learns from a response of the server itself, whose certificate was verified. The response came from the
    /// address `from`.
    pub(super) fn learn(
        &mut self,
        origin: &Origin,
        fields: &HeaderMap,
        from: IpAddr,
        now: Instant,
    ) {
        let values = fields.get_all(ALT_SVC).iter();
        let mut values = values.map(http::HeaderValue::as_bytes).peekable();
        if values.peek().is_none() {
            return;
        }
        let Some(advice) = parse::parse(values) else {
            tracing::debug!(%origin, "ignored a malformed alt-svc field");
            return;
        };
        let Advice::Alternatives(alternatives) = advice else {
            self.forget(origin, now);
            return;
        };
        // The time that the response spent in a cache counts (RFC 7838 §3.1).
        let age = fields.get(AGE);
        let age = age.and_then(|age| age.to_str().ok()?.parse().ok());
        let age = Duration::from_secs(age.unwrap_or(0));
        let from = Reach::of(from).unwrap_or(Reach::Anybody);
        let known = alternatives.into_iter().map(|alternative| {
            let host = alternative.host.as_deref().unwrap_or(origin.host());
            let left = alternative.max_age.saturating_sub(age).min(LONGEST_AGE);
            Known {
                place: Origin::new(host, alternative.port),
                until: now + left,
                persist: alternative.persist,
                from,
            }
        });
        let is_allowed = |known: &Known| {
            let is_allowed = allow(origin, &known.place, self.hosts);
            if !is_allowed {
                // Quoted, because the place may be any text.
                let place = known.place.to_string();
                tracing::debug!(%origin, ?place, "ignored an alternative of alt-svc that the rules exclude");
            }
            is_allowed
        };
        let known = known.filter(|known| known.until > now && is_allowed(known));
        let known: Vec<_> = known.collect();
        let earlier = self.known.get(origin).map_or(&[][..], |known| known);
        let facts = |known: &Known| (known.place.clone(), known.persist, known.from);
        let changed = !earlier.iter().map(facts).eq(known.iter().map(facts));
        if let Some(stored) = &mut self.stored {
            stored.write(origin, &known, changed, now);
        }
        self.put(origin, known);
    }

    fn put(&mut self, origin: &Origin, known: Vec<Known>) {
        if known.is_empty() {
            self.known.remove(origin);
            return;
        }
        make_room(&mut self.known, self.most, origin, |known| {
            known.iter().map(|known| known.until).max()
        });
        self.known.insert(origin.clone(), known);
    }

    /// Returns the alternative to use, if there is one that did not fail recently.
    pub(super) fn find(&self, origin: &Origin, now: Instant) -> Option<Origin> {
        let mut known = self.known.get(origin)?.iter();
        let usable =
            known.find(|known| known.until > now && !self.is_broken(origin, &known.place, now));
        usable.map(|known| known.place.clone())
    }

    /// Returns how public an address of the alternative must be, so that it may be used.
    pub(super) fn reach(&self, origin: &Origin, place: &Origin) -> Reach {
        let mut known = self.known.get(origin).into_iter().flatten();
        let known = known.find(|known| known.place == *place);
        known.map_or(Reach::Anybody, |known| known.from)
    }

    /// Returns true if the alternative of a server failed recently.
    pub(super) fn is_broken(&self, origin: &Origin, place: &Origin, now: Instant) -> bool {
        if self.broken.is_empty() {
            return false;
        }
        let broken = self.broken.get(&(origin.clone(), place.clone()));
        broken.is_some_and(|broken| broken.until > now)
    }

    /// Notes that an alternative failed although TCP works. It is not used for a while (RFC 7838 §2.4).
    pub(super) fn on_failure(&mut self, origin: &Origin, place: &Origin, now: Instant) {
        let key = (origin.clone(), place.clone());
        let failures = self.broken.get(&key).map_or(0, |broken| broken.failures);
        let pause = FIRST_PAUSE.saturating_mul(1 << failures.min(16));
        make_room(&mut self.broken, self.most, &key, |broken| {
            Some(broken.until)
        });
        let broken = Broken {
            until: now + pause.min(LONGEST_PAUSE),
            failures: failures + 1,
        };
        self.broken.insert(key, broken);
    }

    /// Notes that an alternative works.
    pub(super) fn on_success(&mut self, origin: &Origin, place: &Origin) {
        if !self.broken.is_empty() {
            self.broken.remove(&(origin.clone(), place.clone()));
        }
    }

    /// Forgets the alternatives of a server, after one of them was not responsible for it (RFC 7838 §6).
    pub(super) fn forget(&mut self, origin: &Origin, now: Instant) {
        self.known.remove(origin);
        if let Some(stored) = &mut self.stored {
            stored.write(origin, &[], true, now);
        }
    }

    /// Forgets all failures, and the alternatives that do not survive a change of the network (RFC 7838 §2.2).
    pub(super) fn on_network_change(&mut self) {
        self.broken.clear();
        if let Some(stored) = &mut self.stored {
            stored.on_network_change();
        }
        self.known.retain(|_, known| {
            known.retain(|known| known.persist);
            !known.is_empty()
        });
    }
}

/// Makes room for a new entry by removing those that expire first.
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
    use std::net::Ipv4Addr;

    use http::HeaderValue;

    use super::*;

    fn fields(value: &'static str) -> HeaderMap {
        HeaderMap::from_iter([(ALT_SVC, HeaderValue::from_static(value))])
    }

    fn origin() -> Origin {
        Origin::new("example.com", 443)
    }

    /// Address that the server answers from.
    const FROM: IpAddr = IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1));

    fn seconds(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[test]
    fn an_alternative_is_good_for_its_time() {
        let (mut alt_svc, now) = (AltSvc::new(10, OfferedHosts::Same), Instant::now());
        assert_eq!(alt_svc.find(&origin(), now), None);
        alt_svc.learn(&origin(), &fields("h3=\":8443\"; ma=60"), FROM, now);
        let place = Origin::new("example.com", 8443);
        let found = alt_svc.find(&origin(), now + seconds(59));
        assert_eq!(found, Some(place.clone()));
        assert_eq!(alt_svc.find(&origin(), now + seconds(60)), None);
        assert_eq!(alt_svc.find(&Origin::new("example.com", 8443), now), None);
        // Malformed fields change nothing.
        alt_svc.learn(&origin(), &fields("h3="), FROM, now);
        assert_eq!(alt_svc.find(&origin(), now), Some(place));
        alt_svc.learn(&origin(), &fields("clear"), FROM, now);
        assert_eq!(alt_svc.find(&origin(), now), None);
        // A new field replaces the old one.
        alt_svc.learn(&origin(), &fields("h3=\":5001\""), FROM, now);
        alt_svc.learn(&origin(), &fields("h3=\":5002\""), FROM, now);
        let place = Origin::new("example.com", 5002);
        assert_eq!(alt_svc.find(&origin(), now), Some(place));
        alt_svc.learn(&origin(), &fields("h3=\":5001\"; ma=0"), FROM, now);
        assert_eq!(alt_svc.find(&origin(), now), None);
        // However long it says.
        let long = fields("h3=\":5001\"; ma=18446744073709551615");
        alt_svc.learn(&origin(), &long, FROM, now);
        assert_eq!(alt_svc.find(&origin(), now + LONGEST_AGE), None);
    }

    /// A cache in front of the server has kept the response for a while.
    #[test]
    fn the_age_of_a_response_counts() {
        let (mut alt_svc, now) = (AltSvc::new(10, OfferedHosts::Same), Instant::now());
        let mut fields = fields("h3=\":8443\"; ma=60");
        fields.insert(AGE, HeaderValue::from_static("50"));
        alt_svc.learn(&origin(), &fields, FROM, now);
        assert!(alt_svc.find(&origin(), now + seconds(9)).is_some());
        assert!(alt_svc.find(&origin(), now + seconds(10)).is_none());
    }

    #[test]
    fn a_broken_alternative_is_left_out_for_longer_each_time() {
        let (mut alt_svc, mut now) = (AltSvc::new(10, OfferedHosts::Same), Instant::now());
        let value = "h3=\":5001\"; ma=2592000, h3=\":5002\"; ma=2592000";
        alt_svc.learn(&origin(), &fields(value), FROM, now);
        let [first, second] = [5001, 5002].map(|port| Origin::new("example.com", port));
        assert_eq!(alt_svc.find(&origin(), now), Some(first.clone()));
        for minutes in [5, 10, 20] {
            alt_svc.on_failure(&origin(), &first, now);
            assert_eq!(alt_svc.find(&origin(), now), Some(second.clone()));
            now += seconds(minutes * 60 - 1);
            assert_eq!(alt_svc.find(&origin(), now), Some(second.clone()));
            now += seconds(1);
            assert_eq!(alt_svc.find(&origin(), now), Some(first.clone()));
        }
        for _ in 0..100 {
            alt_svc.on_failure(&origin(), &first, now);
        }
        assert!(!alt_svc.is_broken(&origin(), &first, now + LONGEST_PAUSE));
        alt_svc.on_success(&origin(), &first);
        assert_eq!(alt_svc.find(&origin(), now), Some(first));
    }

    #[test]
    fn a_change_of_the_network_leaves_persistent_alternatives() {
        let (mut alt_svc, now) = (AltSvc::new(10, OfferedHosts::Same), Instant::now());
        let value = "h3=\":5001\", h3=\":5002\"; persist=1";
        alt_svc.learn(&origin(), &fields(value), FROM, now);
        let place = Origin::new("example.com", 5002);
        alt_svc.on_failure(&origin(), &place, now);
        alt_svc.on_network_change();
        assert_eq!(alt_svc.find(&origin(), now), Some(place));
        alt_svc.learn(&origin(), &fields("h3=\":5001\""), FROM, now);
        alt_svc.on_network_change();
        assert_eq!(alt_svc.find(&origin(), now), None);
    }

    /// A server, or many, cannot make the client remember without end.
    #[test]
    fn memory_is_bounded() {
        let (mut alt_svc, now) = (AltSvc::new(10, OfferedHosts::Same), Instant::now());
        for port in 1..1000 {
            let origin = Origin::new("example.com", port);
            alt_svc.learn(
                &origin,
                &fields("h3=\":5000\""),
                FROM,
                now + seconds(port.into()),
            );
            alt_svc.on_failure(&origin, &origin, now + seconds(port.into()));
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

    /// An offer that the rules exclude replaces those before it, as any other.
    #[test]
    fn what_the_rules_exclude_is_not_found() {
        let now = Instant::now();
        let value = "h3=\"other.test:443\", h3=\":53\", h3=\":1900\", h3=\":8443\"";
        let [other, own] = [("other.test", 443), ("example.com", 8443)];
        for (hosts, expected) in [(OfferedHosts::Same, own), (OfferedHosts::Any, other)] {
            let mut alt_svc = AltSvc::new(10, hosts);
            alt_svc.learn(&origin(), &fields(value), FROM, now);
            let (host, port) = expected;
            let expected = Some(Origin::new(host, port));
            assert_eq!(alt_svc.find(&origin(), now), expected, "{hosts:?}");
            alt_svc.learn(&origin(), &fields("h3=\":53\""), FROM, now);
            assert_eq!(alt_svc.find(&origin(), now), None);
        }
    }

    #[test]
    fn an_offer_is_as_public_as_the_answer_it_came_in() {
        let (mut alt_svc, now) = (AltSvc::new(10, OfferedHosts::Same), Instant::now());
        let place = Origin::new("example.com", 8443);
        for (from, reach) in [
            ("127.0.0.1", Reach::ThisHost),
            ("10.0.0.1", Reach::OwnNetwork),
            ("2001:db8::1", Reach::Anybody),
        ] {
            let from = from.parse().expect("an address");
            alt_svc.learn(&origin(), &fields("h3=\":8443\""), from, now);
            assert_eq!(alt_svc.reach(&origin(), &place), reach);
        }
        // Forgotten meanwhile.
        alt_svc.forget(&origin(), now);
        assert_eq!(alt_svc.reach(&origin(), &place), Reach::Anybody);
    }

    /// Neither a new network nor `persist` makes an alternative last longer.
    #[test]
    fn what_persists_ends_too() {
        let (mut alt_svc, now) = (AltSvc::new(10, OfferedHosts::Same), Instant::now());
        let value = "h3=\":5001\"; ma=18446744073709551615; persist=1";
        alt_svc.learn(&origin(), &fields(value), FROM, now);
        alt_svc.on_network_change();
        assert!(alt_svc.find(&origin(), now).is_some());
        assert!(alt_svc.find(&origin(), now + LONGEST_AGE).is_none());
        alt_svc.learn(&origin(), &fields("clear"), FROM, now);
        assert!(alt_svc.find(&origin(), now).is_none());
    }

    /// A server that offers the place of another one and refuses there does the other no harm.
    #[test]
    fn no_server_breaks_the_places_of_another() {
        let (mut alt_svc, now) = (AltSvc::new(10, OfferedHosts::Any), Instant::now());
        let hostile = Origin::new("hostile.test", 443);
        alt_svc.learn(&origin(), &fields("h3=\":443\""), FROM, now);
        alt_svc.learn(&hostile, &fields("h3=\"example.com:443\""), FROM, now);
        alt_svc.on_failure(&hostile, &origin(), now);
        assert_eq!(alt_svc.find(&hostile, now), None);
        assert_eq!(alt_svc.find(&origin(), now), Some(origin()));
        assert!(!alt_svc.is_broken(&origin(), &origin(), now));
    }
}
