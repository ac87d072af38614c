//! Disk space that transfers in progress still need.

use std::{
    collections::HashMap,
    io,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use crate::error::Error;

/// Bytes that the transfers of this process have yet to write, by file system.
///
/// The system's figure for free space knows only what was written: without this sum, transfers that begin
/// together would each be told that the same space is theirs.
#[derive(Debug, Default)]
pub(crate) struct Room(Mutex<HashMap<u64, u64>>);

/// Space for one transfer, given back when it is dropped.
#[derive(Debug)]
pub(crate) struct Reserved {
    room: Arc<Room>,
    device: u64,
    /// Bytes that are not written yet.
    left: Mutex<u64>,
}

impl Room {
    fn lock(&self) -> MutexGuard<'_, HashMap<u64, u64>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reserves bytes of a file system. `free` returns what the system says is free there.
    ///
    /// # Errors
    /// The outer one is that of `free`; the inner one is [`Error::NoSpace`].
    pub(crate) fn reserve(
        self: &Arc<Self>,
        device: u64,
        needed: u64,
        free: impl FnOnce() -> io::Result<u64>,
    ) -> io::Result<Result<Reserved, Error>> {
        // Asked with the lock held: what another transfer writes meanwhile is in one of the two figures.
        let mut all = self.lock();
        let taken = all.get(&device).copied().unwrap_or(0);
        let free = free()?.saturating_sub(taken);
        if needed > free {
            return Ok(Err(Error::NoSpace { needed, free }));
        }
        all.insert(device, taken.saturating_add(needed));
        Ok(Ok(Reserved {
            room: Arc::clone(self),
            device,
            left: Mutex::new(needed),
        }))
    }
}

impl Reserved {
    /// Gives back bytes that were written: the system counts them now.
    pub(crate) fn on_written(&self, bytes: u64) {
        self.change(|left| left.saturating_sub(bytes));
    }

    /// Reserves bytes again whose file is removed and received once more. Call it before the removal, so that
    /// the space is never anybody's in between.
    pub(crate) fn again(&self, bytes: u64) {
        self.change(|left| left.saturating_add(bytes));
    }

    fn change(&self, change: impl FnOnce(u64) -> u64) {
        let mut all = self.room.lock();
        let mut left = self.left.lock().unwrap_or_else(PoisonError::into_inner);
        let new = change(*left);
        let taken = all.get(&self.device).copied().unwrap_or(0);
        match taken.saturating_sub(*left).saturating_add(new) {
            0 => all.remove(&self.device),
            taken => all.insert(self.device, taken),
        };
        *left = new;
    }
}

impl Drop for Reserved {
    fn drop(&mut self) {
        self.change(|_| 0);
    }
}
