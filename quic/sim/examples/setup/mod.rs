//! Certificates and configurations that the examples share.

use std::sync::Arc;

use hybriq_proto::{config::TransportConfig, endpoint::Setup};
use hybriq_tls::{
    Backend, ClientOptions, ConfigError, Identity, PrivateKeyDer, ServerOptions, Trust,
};

/// Returns the configurations of a client and of a server that it trusts.
pub(crate) fn both() -> Result<(Setup, Setup), Box<dyn std::error::Error>> {
    let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()])?;
    let key = PrivateKeyDer::try_from(made.signing_key.serialize_der())?;
    let root = made.cert.der().clone();
    let client = ClientOptions::new()
        .alpn(["example"])
        .trust(Trust::roots_pem(made.cert.pem().as_bytes())?);
    let server = ServerOptions::new(Identity::from_der(vec![root], key)).alpn(["example"]);
    let setup = |provider: Result<_, ConfigError>| {
        Ok::<_, ConfigError>(Setup {
            provider: provider?,
            transport: Arc::new(TransportConfig::new()),
        })
    };
    Ok((
        setup(Backend::Rustls.client(&client))?,
        setup(Backend::Rustls.server(&server))?,
    ))
}
