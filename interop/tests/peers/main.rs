//! Connections between hybriq, other stacks and themselves, in one process.

// Its macros are for the others.
#[macro_use]
mod sentences;

mod ack_frequency;
mod controls;
mod h3i;
mod peers_alone;
mod quinn_in_virtual_time;
mod retry;
mod with_itself;
mod with_quiche;
mod with_quinn;
mod with_s2n_quic;

#[cfg(not(feature = "quiche"))]
#[test]
fn quiche_is_left_out() {
    test_summary::skip(
        "quiche is not built in: --features hybriq-interop/quiche, with CMake and a C++ compiler",
    );
}
