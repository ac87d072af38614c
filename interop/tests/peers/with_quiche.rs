//! Tests of hybriq and quiche in both roles with both TLS providers: a third TLS stack, BoringSSL.
#![cfg(feature = "quiche")]

pair!(rustls_to_quiche: Hybriq(hybriq::Backend::Rustls) => Quiche, [
    refuses_a_classical_client,
    early_data,
    updates_the_clients_keys,
    carries_datagrams,
    migrates,
]);

pair!(s2n_tls_to_quiche: Hybriq(hybriq::Backend::S2nTls) => Quiche, [
    refuses_a_classical_client,
    updates_the_clients_keys,
    carries_datagrams,
    migrates,
]);

pair!(quiche_to_rustls: Quiche => Hybriq(hybriq::Backend::Rustls), [
    refuses_a_classical_client,
    early_data,
    updates_the_servers_keys,
    carries_datagrams,
    migrates,
    survives_rebinding,
]);

pair!(quiche_to_s2n_tls: Quiche => Hybriq(hybriq::Backend::S2nTls), [
    refuses_a_classical_client,
    updates_the_servers_keys,
    carries_datagrams,
    migrates,
    survives_rebinding,
]);
