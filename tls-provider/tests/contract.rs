//! What every provider promises, over all pairings of the providers in `support::CONTENDERS`.
#![cfg(any(feature = "rustls", all(unix, feature = "s2n-tls")))]

#[path = "contract/bytes.rs"]
mod bytes;
#[cfg(feature = "rustls")]
#[path = "contract/change_rustls.rs"]
mod change_rustls;
#[path = "contract/check.rs"]
mod check;
#[cfg(feature = "rustls")]
#[path = "contract/crypto.rs"]
mod crypto;
#[path = "contract/early_data.rs"]
mod early_data;
#[path = "contract/exporter.rs"]
mod exporter;
#[path = "contract/groups.rs"]
mod groups;
#[path = "contract/identity.rs"]
mod identity;
#[path = "contract/key_log.rs"]
mod key_log;
#[path = "contract/lineage.rs"]
mod lineage;
#[path = "contract/negotiation.rs"]
mod negotiation;
#[path = "contract/resumption.rs"]
mod resumption;
#[path = "contract/sessions.rs"]
mod sessions;
#[path = "contract/signer.rs"]
mod signer;
#[path = "contract/support.rs"]
mod support;
#[path = "contract/verifier.rs"]
mod verifier;
