//! The guide: how to use hybriq, chapter by chapter. This module contains only text and examples.

#[doc = include_str!("../docs/guide/start.md")]
pub mod start {}

#[doc = include_str!("../docs/guide/from_quinn.md")]
pub mod from_quinn {}

#[doc = include_str!("../docs/guide/from_s2n_quic.md")]
pub mod from_s2n_quic {}

#[doc = include_str!("../docs/guide/tuning.md")]
pub mod tuning {}

#[doc = include_str!("../docs/guide/deployment.md")]
pub mod deployment {}

#[doc = include_str!("../docs/guide/restart.md")]
pub mod restart {}

#[doc = include_str!("../docs/operations.md")]
pub mod operations {}

#[cfg(feature = "qlog")]
#[doc = include_str!("../docs/guide/qlog.md")]
pub mod qlog {}

#[doc = include_str!("../docs/metrics.md")]
pub mod metrics {}

#[doc = include_str!("../docs/guide/security.md")]
pub mod security {}

#[doc = include_str!("../docs/guide/post_quantum.md")]
pub mod post_quantum {}
