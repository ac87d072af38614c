//! Implementations of the driver's traits for unit tests.

use std::{
    collections::HashMap,
    ops::RangeInclusive,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use aws_lc_rs::rand::SecureRandom as _;
use bytes::Bytes;

use crate::{
    config::{TokenStore, VersionMemory},
    random::Random,
    remembered::token::{Keys, Ring},
    wire::{
        frame::{FrameWriter, Owner, Timing},
        packet::{PacketNumber, Version},
    },
};

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

/// Tokens of all servers, the newest last.
#[derive(Default)]
pub(crate) struct MemoryTokenStore(Mutex<Vec<(String, u32, Bytes)>>);

impl MemoryTokenStore {
    pub(crate) fn new() -> Self {
        Self::default()
    }
}

impl TokenStore for MemoryTokenStore {
    fn put(&self, server_name: &str, version: u32, token: Bytes) {
        let entry = (server_name.to_owned(), version, token);
        let mut tokens = lock(&self.0);
        if !tokens.contains(&entry) {
            tokens.push(entry);
        }
    }

    fn take(&self, server_name: &str, version: u32) -> Option<Bytes> {
        let mut tokens = lock(&self.0);
        let place = tokens
            .iter()
            .rposition(|(name, of, _)| name == server_name && *of == version)?;
        Some(tokens.remove(place).2)
    }
}

/// The last version of each server.
#[derive(Debug, Default)]
pub(crate) struct KnownVersions(Mutex<HashMap<String, Version>>);

impl VersionMemory for KnownVersions {
    fn get(&self, server_name: &str) -> Option<Version> {
        lock(&self.0).get(server_name).copied()
    }

    fn put(&self, server_name: &str, version: Version) {
        lock(&self.0).insert(server_name.to_owned(), version);
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
