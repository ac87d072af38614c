//! Tests of hybriq and s2n-quic in both roles with both TLS providers.

pair!(rustls_to_s2n_quic: Hybriq(hybriq::Backend::Rustls) => S2nQuic, [
    retries_for_ml_kem_under_prefer,
    retries_for_ml_kem_under_require,
    updates_the_clients_keys,
    migrates,
    survives_rebinding,
]);

pair!(s2n_tls_to_s2n_quic: Hybriq(hybriq::Backend::S2nTls) => S2nQuic, [
    updates_the_clients_keys,
    migrates,
    survives_rebinding,
]);

pair!(s2n_quic_to_rustls: S2nQuic => Hybriq(hybriq::Backend::Rustls), [
    refuses_a_classical_client,
    updates_the_servers_keys,
    survives_rebinding,
]);

pair!(s2n_quic_to_s2n_tls: S2nQuic => Hybriq(hybriq::Backend::S2nTls), [
    refuses_a_classical_client,
    updates_the_servers_keys,
    survives_rebinding,
]);
