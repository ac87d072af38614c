//! Locks and atomic numbers that are scheduling points of a model, if they are made in one.
//!
//! The scheduler (shuttle) runs all tasks of a model on one thread and switches between them only
//! at these points. Its memory is sequentially consistent: it finds wrong orders of steps, but not
//! atomics whose `Ordering` is too weak. Outside of a model, the standard library's types are used.

use std::{
    cell::Cell,
    ops::{Deref, DerefMut},
    sync::{LockResult, PoisonError, atomic::Ordering},
};

thread_local! {
    static ACTIVE: Cell<bool> = const { Cell::new(false) };
}

/// A model that runs on this thread, until it is dropped.
pub(crate) struct Model(());

impl Model {
    pub(crate) fn enter() -> Self {
        ACTIVE.set(true);
        Self(())
    }
}

impl Drop for Model {
    fn drop(&mut self) {
        ACTIVE.set(false);
    }
}

/// Creates the scheduler's part of a lock or a number, inside a model.
fn in_model<T>(make: impl FnOnce() -> T) -> Option<T> {
    ACTIVE.get().then(make)
}

/// A lock.
#[derive(Debug)]
pub(crate) struct Mutex<T> {
    /// Locked first, so that waiting is left to the scheduler.
    turn: Option<shuttle::sync::Mutex<()>>,
    value: std::sync::Mutex<T>,
}

/// Access to the value behind a lock.
pub(crate) struct MutexGuard<'a, T> {
    value: std::sync::MutexGuard<'a, T>,
    _turn: Option<shuttle::sync::MutexGuard<'a, ()>>,
}

impl<T> Mutex<T> {
    pub(crate) fn new(value: T) -> Self {
        Self {
            turn: in_model(|| shuttle::sync::Mutex::new(())),
            value: std::sync::Mutex::new(value),
        }
    }

    #[expect(clippy::unnecessary_wraps, reason = "as the standard library's")]
    pub(crate) fn lock(&self) -> LockResult<MutexGuard<'_, T>> {
        let turn = self
            .turn
            .as_ref()
            .map(|turn| turn.lock().unwrap_or_else(PoisonError::into_inner));
        let value = self.value.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(MutexGuard { value, _turn: turn })
    }
}

impl<T: Default> Default for Mutex<T> {
    fn default() -> Self {
        Self::new(T::default())
    }
}

impl<T> Deref for MutexGuard<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.value
    }
}

impl<T> DerefMut for MutexGuard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.value
    }
}

/// A flag.
#[derive(Debug)]
pub(crate) struct AtomicBool {
    modelled: Option<shuttle::sync::atomic::AtomicBool>,
    value: std::sync::atomic::AtomicBool,
}

impl AtomicBool {
    pub(crate) fn new(value: bool) -> Self {
        Self {
            modelled: in_model(|| shuttle::sync::atomic::AtomicBool::new(value)),
            value: value.into(),
        }
    }

    pub(crate) fn load(&self, ordering: Ordering) -> bool {
        match &self.modelled {
            Some(modelled) => modelled.load(ordering),
            None => self.value.load(ordering),
        }
    }

    pub(crate) fn store(&self, value: bool, ordering: Ordering) {
        match &self.modelled {
            Some(modelled) => modelled.store(value, ordering),
            None => self.value.store(value, ordering),
        }
    }

    pub(crate) fn swap(&self, value: bool, ordering: Ordering) -> bool {
        match &self.modelled {
            Some(modelled) => modelled.swap(value, ordering),
            None => self.value.swap(value, ordering),
        }
    }
}

/// A number.
#[derive(Debug)]
pub(crate) struct AtomicUsize {
    modelled: Option<shuttle::sync::atomic::AtomicUsize>,
    value: std::sync::atomic::AtomicUsize,
}

impl AtomicUsize {
    pub(crate) fn new(value: usize) -> Self {
        Self {
            modelled: in_model(|| shuttle::sync::atomic::AtomicUsize::new(value)),
            value: value.into(),
        }
    }

    pub(crate) fn load(&self, ordering: Ordering) -> usize {
        match &self.modelled {
            Some(modelled) => modelled.load(ordering),
            None => self.value.load(ordering),
        }
    }

    pub(crate) fn fetch_add(&self, value: usize, ordering: Ordering) -> usize {
        match &self.modelled {
            Some(modelled) => modelled.fetch_add(value, ordering),
            None => self.value.fetch_add(value, ordering),
        }
    }

    pub(crate) fn fetch_sub(&self, value: usize, ordering: Ordering) -> usize {
        match &self.modelled {
            Some(modelled) => modelled.fetch_sub(value, ordering),
            None => self.value.fetch_sub(value, ordering),
        }
    }
}
