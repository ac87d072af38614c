//! Locks and atomic numbers that handles and workers share.
//!
//! They are those of the standard library. In unit tests they can belong to a model, whose
//! scheduler decides at each of them which task runs next: see `crate::tests`.

pub(super) mod clock;
pub(super) mod tasks;
pub(super) mod timers;
pub(super) mod waiters;

#[cfg(test)]
mod modelled;
#[cfg(test)]
pub(crate) mod time;

#[cfg(test)]
pub(crate) use modelled::{AtomicBool, AtomicUsize, Model, Mutex, MutexGuard};
#[cfg(not(test))]
pub(crate) use std::sync::{
    Mutex, MutexGuard,
    atomic::{AtomicBool, AtomicUsize},
};
