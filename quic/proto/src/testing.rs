//! Implementations of the driver's traits for unit tests.

use std::{
    collections::HashMap,
    ops::RangeInclusive,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant, SystemTime},
};

use crate::{
    config::TransportConfig,
    random::Random,
    remembered::{
        origin::Origins,
        server::{Epoch, ServerKey, ServerRecord, ServerStore, Servers},
        token::{Keys, Ring},
    },
    wire::{
        frame::{FrameWriter, Owner, Timing},
        packet::PacketNumber,
    },
};
use aws_lc_rs::rand::SecureRandom as _;

/// Returns the packet number `number`.
pub(crate) const fn pn(number: u64) -> PacketNumber {
    PacketNumber::saturating(number)
}

/// Returns the packet numbers of `range`.
pub(crate) fn pns(range: RangeInclusive<u64>) -> RangeInclusive<PacketNumber> {
    pn(*range.start())..=pn(*range.end())
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The system's generator.
#[derive(Default)]
pub(crate) struct SystemRandom;

impl SystemRandom {
    pub(crate) const fn new() -> Self {
        Self
    }
}

impl Random for SystemRandom {
    fn fill(&mut self, bytes: &mut [u8]) {
        let system = aws_lc_rs::rand::SystemRandom::new();
        system.fill(bytes).expect("the system has randomness");
    }
}

/// Records of all servers.
#[derive(Clone, Default)]
pub(crate) struct MemoryServers(Arc<Mutex<HashMap<ServerKey, ServerRecord>>>);

impl MemoryServers {
    pub(crate) fn new() -> Self {
        Self::default()
    }

    /// Returns a configuration with this memory.
    pub(crate) fn of(&self, transport: TransportConfig) -> TransportConfig {
        let epoch = Epoch {
            instant: Instant::now(),
            time: SystemTime::now(),
        };
        let origins = Origins::default();
        transport.remember_servers(Servers::new(Arc::new(self.clone()), origins, epoch))
    }

    /// Changes a record at no particular time.
    pub(crate) fn with<T>(&self, name: &str, change: impl FnOnce(&mut ServerRecord) -> T) -> T {
        change(lock(&self.0).entry(ServerKey::new(name)).or_default())
    }
}

impl ServerStore for MemoryServers {
    fn read(&self, server: &ServerKey, read: &mut dyn FnMut(&ServerRecord)) {
        self.with(server.as_str(), |record| read(record));
    }

    fn change(&self, _: SystemTime, server: &ServerKey, change: &mut dyn FnMut(&mut ServerRecord)) {
        self.with(server.as_str(), change);
    }
}

/// Keys that are rotated while endpoints use them.
#[derive(Clone, Debug)]
pub(crate) struct TokenKeys(Arc<Mutex<Ring>>);

impl TokenKeys {
    pub(crate) fn from_secret(secret: [u8; 32]) -> Self {
        Self(Arc::new(Mutex::new(Ring::new(&secret))))
    }

    pub(crate) fn rotate_to(&self, secret: [u8; 32]) {
        lock(&self.0).rotate(&secret);
    }

    pub(crate) fn also_accept(&self, secret: [u8; 32]) {
        lock(&self.0).accept(&secret);
    }
}

impl Keys for TokenKeys {
    fn ring(&self) -> Arc<Ring> {
        Arc::new(lock(&self.0).clone())
    }
}

/// Lets an owner write its frames, and returns the record of them.
pub(crate) fn write_frames<O: Owner<Sent: Default>>(
    owner: &mut O,
    out: &mut FrameWriter<'_>,
) -> O::Sent {
    let timing = Timing {
        now: Instant::now(),
        rtt: Duration::ZERO,
    };
    let mut sent = O::Sent::default();
    owner.write_frames(timing, out, &mut sent);
    sent
}
