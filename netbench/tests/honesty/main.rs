//! Is it true what `netbench run` says? Every number is held against somebody else's count of the
//! same thing, or against something that was done to the run on purpose.
//!
//! ```text
//!  traffic    the kernel's counters of a network that nobody else uses
//!  costs      the kernel's accounts of the processes
//!  latencies  a known delay, a slow answer now and then, a server that is stopped for a while
//!  outcomes   failures that happen at a known rate
//!  numbers    each number against those that it follows from; the JSON Schemas
//!  again      the same run twice
//! ```
//! The machine may be busy with anything else: what is compared with a clock is compared from the
//! side that no load can break.
#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod again;
mod costs;
mod instrument;
mod latencies;
mod numbers;
mod outcomes;
mod traffic;
