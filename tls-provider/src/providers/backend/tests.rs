#[cfg(not(all(unix, feature = "rustls", feature = "s2n-tls")))]
use super::*;

#[cfg(not(feature = "rustls"))]
#[test]
fn a_backend_that_is_not_built_names_its_feature() {
    let error = Backend::Rustls
        .client(&ClientOptions::new())
        .err()
        .expect("not built");
    assert!(error.to_string().contains("feature `rustls`"), "{error}");
}

#[cfg(all(unix, not(feature = "s2n-tls")))]
#[test]
fn a_backend_that_is_not_built_names_its_feature_too() {
    let error = Backend::S2nTls
        .client(&ClientOptions::new())
        .err()
        .expect("not built");
    assert!(error.to_string().contains("feature `s2n-tls`"), "{error}");
}
