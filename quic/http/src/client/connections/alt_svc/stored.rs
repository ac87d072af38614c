//! Alternatives in the client's memory of servers, where they outlive the process, as sessions and tokens do.

use std::{
    collections::HashMap,
    sync::Arc,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use hybriq::memory::{ServerKey, ServerStore};
use tokio::time::Instant;

use super::{Known, LONGEST_AGE, parse::MOST, rules::Reach};
use crate::client::origin::Origin;

/// Time for which unchanged alternatives are not written again: servers repeat them in each response.
const UNCHANGED: Duration = Duration::from_secs(10 * 60);

const PERSIST: u8 = 1;

/// The memory of servers.
pub(super) struct Stored {
    servers: Arc<dyn ServerStore>,
    /// A point in time by both clocks.
    clock: (Instant, SystemTime),
    /// When the alternatives of a server were last written.
    written: HashMap<Origin, Instant>,
    /// True once the network has changed.
    moved: bool,
}

impl Stored {
    #[expect(
        clippy::disallowed_methods,
        reason = "what is remembered of servers ends by the wall clock"
    )]
    pub(super) fn new(servers: Arc<dyn ServerStore>) -> Self {
        Self {
            servers,
            clock: (Instant::now(), SystemTime::now()),
            written: HashMap::new(),
            moved: false,
        }
    }

    fn time(&self, now: Instant) -> SystemTime {
        self.clock.1 + now.saturating_duration_since(self.clock.0)
    }

    /// Leaves out alternatives that do not survive a change of the network from now on.
    pub(super) fn on_network_change(&mut self) {
        self.moved = true;
    }

    /// Reads the alternatives of a server.
    pub(super) fn read(&self, origin: &Origin, now: Instant) -> Vec<Known> {
        let mut known = Vec::new();
        let (server, time) = (ServerKey::new(origin.host()), self.time(now));
        self.servers.read(&server, &mut |record| {
            let mut rest = record.alternatives(origin.port()).unwrap_or_default();
            let read = std::iter::from_fn(|| decode(&mut rest, time, now));
            known = read.take(MOST).collect();
        });
        known.retain(|known| known.persist || !self.moved);
        known
    }

    /// Writes the alternatives of a server, or that it has none. `changed` is false if it offered the same before.
    pub(super) fn write(&mut self, origin: &Origin, known: &[Known], changed: bool, now: Instant) {
        let is_new = |written: &Instant| now < *written + UNCHANGED;
        if !changed && self.written.get(origin).is_some_and(is_new) {
            return;
        }
        // Old entries say nothing more.
        self.written.retain(|_, written| is_new(written));
        self.written.insert(origin.clone(), now);
        let (server, time) = (ServerKey::new(origin.host()), self.time(now));
        let bytes = known.iter().flat_map(|known| encode(known, time, now));
        let bytes: Vec<u8> = bytes.collect();
        self.servers.change(time, &server, &mut |record| {
            record.put_alternatives(origin.port(), &bytes);
        });
    }
}

/// Writes an alternative: end in seconds since 1970, flags, port, length of the host, host.
fn encode(known: &Known, time: SystemTime, now: Instant) -> Vec<u8> {
    let end = time + known.until.saturating_duration_since(now);
    let end = end.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    let reach = match known.from {
        Reach::ThisHost => 0,
        Reach::OwnNetwork => 2,
        Reach::Anybody => 4,
    };
    let flags = reach | if known.persist { PERSIST } else { 0 };
    let host = known.place.host().as_bytes();
    // The rules allow no longer names of others. One's own is as long as the URI wants: its record is not kept.
    let len = u8::try_from(host.len()).unwrap_or(u8::MAX);
    let port = known.place.port().to_be_bytes();
    [&end.to_be_bytes()[..], &[flags], &port, &[len], host].concat()
}

/// Splits an alternative off the front.
fn decode(rest: &mut &[u8], time: SystemTime, now: Instant) -> Option<Known> {
    let (end, after) = rest.split_first_chunk()?;
    let ([flags, high, low, len], after) = after.split_first_chunk()?;
    let (host, after) = after.split_at_checked(usize::from(*len))?;
    *rest = after;
    let host = std::str::from_utf8(host).ok()?;
    let end = UNIX_EPOCH.checked_add(Duration::from_secs(u64::from_be_bytes(*end)))?;
    let left = end.duration_since(time).unwrap_or_default();
    Some(Known {
        place: Origin::new(host, u16::from_be_bytes([*high, *low])),
        until: now + left.min(LONGEST_AGE),
        persist: flags & PERSIST != 0,
        from: match flags & !PERSIST {
            0 => Reach::ThisHost,
            2 => Reach::OwnNetwork,
            _ => Reach::Anybody,
        },
    })
}

#[cfg(test)]
mod tests {
    use http::{HeaderMap, HeaderValue, header::ALT_SVC};
    use hybriq::memory::ServerMemory;

    use super::*;
    use crate::client::connections::alt_svc::{AltSvc, OfferedHosts};

    fn origin() -> Origin {
        Origin::new("example.com", 443)
    }

    fn client(memory: &ServerMemory, hosts: OfferedHosts) -> AltSvc {
        AltSvc::new(10, hosts).stored_in(Arc::new(memory.clone()))
    }

    /// Clients with one memory, one after the other.
    #[test]
    fn alternatives_outlive_the_client() {
        let (memory, now) = (ServerMemory::new(), Instant::now());
        let (any, same) = (OfferedHosts::Any, OfferedHosts::Same);
        let learn = |value| {
            let fields = HeaderMap::from_iter([(ALT_SVC, HeaderValue::from_static(value))]);
            let home = "10.0.0.1".parse().expect("an address");
            client(&memory, any).learn(&origin(), &fields, home, now);
        };
        let found = |hosts, seconds| {
            let (mut later, at) = (client(&memory, hosts), now + Duration::from_secs(seconds));
            later.recall(&origin(), at);
            let found = later.find(&origin(), at)?;
            assert_eq!(later.reach(&origin(), &found), Reach::OwnNetwork);
            Some(found)
        };
        learn("h3=\"other.test:443\"; ma=60, h3=\":8443\"; ma=90; persist=1");
        let (own, other) = (
            Origin::new("example.com", 8443),
            Origin::new("other.test", 443),
        );
        assert_eq!(found(any, 30), Some(other));
        // The rules of this client, and the time.
        assert_eq!(found(same, 30), Some(own.clone()));
        assert_eq!(found(any, 80), Some(own.clone()));
        assert_eq!(found(any, 100), None);
        // Another port is another origin.
        let mut later = client(&memory, any);
        later.recall(&own, now);
        assert_eq!(later.find(&own, now), None);
        // In another network what does not persist is gone.
        let mut moved = client(&memory, any);
        moved.on_network_change();
        moved.recall(&origin(), now);
        assert_eq!(moved.find(&origin(), now), Some(own));
        learn("clear");
        assert_eq!(found(any, 0), None);
        assert!(memory.is_empty());
    }

    /// A memory that somebody else wrote is read within bounds.
    #[test]
    fn a_strange_memory_does_no_harm() {
        let now = Instant::now();
        let entry = |end: u64, host: &[u8]| {
            let rest = [4, 0x20, 0xfb, host.len() as u8];
            [&end.to_be_bytes()[..], &rest, host].concat()
        };
        let name = b"example.com";
        for (bytes, expected) in [
            (entry(1 << 40, name), true),
            (entry(1 << 40, name).repeat(9), true),
            (entry(u64::MAX, name), false),
            (entry(1, name), false),
            (entry(1 << 40, b"\xff"), false),
            (entry(1 << 40, b"other.test"), false),
            (vec![0; 11], false),
        ] {
            let memory = ServerMemory::new();
            let key = ServerKey::new("example.com");
            memory.change(UNIX_EPOCH, &key, &mut |record| {
                record.put_alternatives(443, &bytes);
            });
            let mut alt_svc = client(&memory, OfferedHosts::Same);
            alt_svc.recall(&origin(), now);
            let late = now + LONGEST_AGE;
            let found = alt_svc.find(&origin(), late - Duration::from_secs(1));
            assert_eq!(found.is_some(), expected, "{bytes:?}");
            assert_eq!(alt_svc.find(&origin(), late), None);
        }
    }
}
