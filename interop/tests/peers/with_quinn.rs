//! Tests of hybriq and quinn in both roles with both TLS providers.

pair!(rustls_to_quinn: Hybriq(hybriq::Backend::Rustls) => Quinn, [
    retries_for_ml_kem_under_require,
    refuses_a_classical_client,
    early_data,
    updates_the_clients_keys,
    updates_the_servers_keys,
    carries_datagrams,
    migrates,
    survives_rebinding,
]);

pair!(s2n_tls_to_quinn: Hybriq(hybriq::Backend::S2nTls) => Quinn, [
    refuses_a_classical_client,
    updates_the_clients_keys,
    updates_the_servers_keys,
    carries_datagrams,
    migrates,
    survives_rebinding,
]);

pair!(quinn_to_rustls: Quinn => Hybriq(hybriq::Backend::Rustls), [
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

pair!(quinn_to_s2n_tls: Quinn => Hybriq(hybriq::Backend::S2nTls), [
    retries_for_ml_kem_under_prefer,
    retries_for_ml_kem_under_require,
    refuses_a_classical_client,
    updates_the_clients_keys,
    updates_the_servers_keys,
    carries_datagrams,
    migrates,
    survives_rebinding,
]);
