//! What netbench writes for people and programs: reports, pages, JSON and manifests.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod browser;
mod kubernetes;
mod report;
mod reproduce;
mod schema;
mod synthetic;
