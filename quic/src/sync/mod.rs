//! Locks and atomic numbers that handles and workers share.
//!
//! They are the standard library's. In unit tests they can belong to a model, whose scheduler
//! decides at each of them which task goes on: see `crate::tests`.

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
