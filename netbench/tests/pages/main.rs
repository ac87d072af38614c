//! What netbench writes for people and programs: reports, pages, JSON and manifests.

mod browser;
mod kubernetes;
mod report;
mod reproduce;
mod schema;
mod synthetic;
