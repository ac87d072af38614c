//! Tests of hybriq with itself, with both TLS providers crossed.

pair!(rustls_to_rustls: Hybriq(hybriq::Backend::Rustls) => Hybriq(hybriq::Backend::Rustls), [
    retries_for_ml_kem_under_prefer,
    retries_for_ml_kem_under_require,
    refuses_a_classical_client,
    early_data,
    updates_the_clients_keys,
    updates_the_servers_keys,
    carries_datagrams,
    migrates,
    survives_rebinding,
]);

pair!(rustls_to_s2n_tls: Hybriq(hybriq::Backend::Rustls) => Hybriq(hybriq::Backend::S2nTls), [
    retries_for_ml_kem_under_prefer,
    retries_for_ml_kem_under_require,
    refuses_a_classical_client,
    updates_the_clients_keys,
    updates_the_servers_keys,
    carries_datagrams,
    migrates,
    survives_rebinding,
]);

pair!(s2n_tls_to_rustls: Hybriq(hybriq::Backend::S2nTls) => Hybriq(hybriq::Backend::Rustls), [
    refuses_a_classical_client,
    updates_the_clients_keys,
    updates_the_servers_keys,
    carries_datagrams,
    migrates,
    survives_rebinding,
]);

pair!(s2n_tls_to_s2n_tls: Hybriq(hybriq::Backend::S2nTls) => Hybriq(hybriq::Backend::S2nTls), [
    refuses_a_classical_client,
    updates_the_clients_keys,
    updates_the_servers_keys,
    carries_datagrams,
    migrates,
    survives_rebinding,
]);
