//! Tests of the other implementations among themselves: their failures here are not hybriq's.

pair!(quinn_to_quinn: Quinn => Quinn, [
    retries_for_ml_kem_under_require,
    refuses_a_classical_client,
    survives_rebinding,
]);

pair!(quinn_to_s2n_quic: Quinn => S2nQuic, [
    retries_for_ml_kem_under_prefer,
    retries_for_ml_kem_under_require,
    survives_rebinding,
]);

pair!(s2n_quic_to_quinn: S2nQuic => Quinn, [
    refuses_a_classical_client,
    survives_rebinding,
]);

pair!(s2n_quic_to_s2n_quic: S2nQuic => S2nQuic, [
    survives_rebinding,
]);
