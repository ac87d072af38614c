//! Checks of options one by one, so that every problem is found.

use std::sync::Arc;

use ::rustls::crypto::CryptoProvider;

use super::crypto::compress::Compression;
use super::{
    certificates::verify,
    crypto::{groups, keys, suites},
    quic::client,
};
use crate::admission::algorithms::Problems;
use crate::{ClientOptions, ServerOptions, Suite};

/// Notes what is wrong with a server's options.
pub(crate) fn server(options: &ServerOptions, problems: &mut Problems) {
    let options = &*options.resolved(problems);
    problems.note(groups::of_policy(&options.shared.key_exchange));
    for named in &options.key_exchange_for {
        problems.note(groups::of_policy(&named.policy));
    }
    problems.note(options.shared.key_log.open());
    problems.note(Compression::new(&options.shared.compression, 1));
    if let Some(crypto) = crypto(options.shared.suites.as_deref(), problems) {
        problems.note_identities(&options.identities, |identity| {
            keys::load(identity, &crypto)
        });
        problems.note(verify::of_clients(&options.client_auth, &crypto));
    }
}

/// Notes what is wrong with a client's options.
pub(crate) fn client(options: &ClientOptions, problems: &mut Problems) {
    let options = &*options.resolved(problems);
    problems.note(client::refuse_store(options));
    problems.note(groups::of_policy(&options.shared.key_exchange));
    problems.note(options.shared.key_log.open());
    problems.note(Compression::new(&options.shared.compression, 1));
    if let Some(crypto) = crypto(options.shared.suites.as_deref(), problems) {
        let identity = options.identity.as_slice();
        problems.note_identities(identity, |identity| keys::load(identity, &crypto));
        problems.note(verify::of_servers(&options.trust, &crypto));
    }
}

/// Returns crypto for checking the other options, with other suites if the configured ones cannot
/// be used.
fn crypto(suites: Option<&[Suite]>, problems: &mut Problems) -> Option<Arc<CryptoProvider>> {
    let crypto = problems.note(suites::crypto(suites, &[]));
    crypto
        .or_else(|| suites::crypto(None, &[]).ok())
        .map(Arc::new)
}
