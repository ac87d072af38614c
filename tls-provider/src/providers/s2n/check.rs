//! Checks of options one by one, so that every problem is found.

use s2n_tls::config::Builder;

use super::{
    config::{self, Roots},
    keys_elsewhere, policy, server,
};
use crate::{
    ClientAuth, ClientOptions, ConfigError, ServerOptions, Trust, admission::algorithms::Problems,
};

/// Notes what is wrong with a server's options.
pub(crate) fn server(options: &ServerOptions, problems: &mut Problems) {
    let options = &*options.resolved(problems);
    problems.note(server::refuse_early_data(options));
    problems.note(server::refuse_choices(options));
    problems.note(config::refuse_compression(&options.shared.compression));
    #[cfg(feature = "rustls")]
    problems.note(config::refuse_change(
        options.change_rustls.as_ref().map(drop),
    ));
    let suites = options.shared.suites.as_deref();
    problems.note(policy::under(
        options.shared.profile,
        &options.shared.key_exchange,
        suites,
    ));
    for named in &options.key_exchange_for {
        problems.note(policy::under(options.shared.profile, &named.policy, suites));
    }
    check_alpn(&options.shared.alpn, problems);
    problems.note_identities(&options.identities, config::chain);
    problems.note(keys_elsewhere::check(&options.identities));
    problems.note(match &options.client_auth {
        ClientAuth::None => Ok(()),
        ClientAuth::Optional(trust) | ClientAuth::Required(trust) => roots(trust),
    });
    problems.note(options.shared.key_log.open());
}

/// Notes what is wrong with a client's options.
pub(crate) fn client(options: &ClientOptions, problems: &mut Problems) {
    let options = &*options.resolved(problems);
    problems.note(config::refuse_compression(&options.shared.compression));
    #[cfg(feature = "rustls")]
    problems.note(config::refuse_change(
        options.change_rustls.as_ref().map(drop),
    ));
    problems.note(config::refuse_shares_ahead(options.key_shares_ahead));
    problems.note(policy::under(
        options.shared.profile,
        &options.shared.key_exchange,
        options.shared.suites.as_deref(),
    ));
    check_alpn(&options.shared.alpn, problems);
    let identity = options.identity.as_slice();
    problems.note_identities(identity, config::chain);
    problems.note(roots(&options.trust));
    problems.note(options.shared.key_log.open());
}

/// Checks protocol names of possible length; the others were already noted.
fn check_alpn(alpn: &[Vec<u8>], problems: &mut Problems) {
    let possible = |protocol: &&Vec<u8>| !protocol.is_empty();
    let alpn: Vec<_> = alpn.iter().filter(possible).cloned().collect();
    problems.note(config::check_alpn(&alpn));
}

fn roots(trust: &Trust) -> Result<(), ConfigError> {
    Roots::new(trust)?.apply(&mut Builder::new())
}
