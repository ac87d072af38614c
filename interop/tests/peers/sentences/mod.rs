//! Names the cells of the matrix.

use hybriq_interop::{Case, Pair, Peer};

/// Runs one cell.
pub(crate) async fn holds(client: &dyn Peer, server: &dyn Peer, case: Case) {
    if let Err(problem) = case.run(Pair { client, server }).await {
        panic!("{} → {}: {problem}", client.name(), server.name());
    }
}

/// Defines tests for a client and a server: the promises for every pair, and those of the list.
#[macro_export]
macro_rules! pair {
    ($pair:ident: $client:expr => $server:expr, [$($also:ident),* $(,)?]) => {
        mod $pair {
            use hybriq_interop::peers::*;

            $crate::sentences! { $client => $server,
                agrees_on_x25519mlkem768: AGREES_ON_X25519MLKEM768,
                carries_32_mib_each_way: CARRIES_32_MIB_EACH_WAY,
                carries_200_streams: CARRIES_200_STREAMS,
                stops_at_the_limits: STOPS_AT_THE_LIMITS,
                retries_for_secp384r1: RETRIES_FOR_SECP384R1,
                serves_a_classical_client: SERVES_A_CLASSICAL_CLIENT,
                connects_to_a_classical_server: CONNECTS_TO_A_CLASSICAL_SERVER,
                refuses_a_classical_server: REFUSES_A_CLASSICAL_SERVER,
                resumes: RESUMES,
                follows_a_retry: FOLLOWS_A_RETRY,
            }
            $($crate::also! { $also, $client => $server })*
        }
    };
}

/// Lists the promises that some pairs do not support.
#[macro_export]
macro_rules! also {
    (refuses_a_classical_client, $client:expr => $server:expr) => {
        $crate::sentences! { $client => $server,
            refuses_a_classical_client: REFUSES_A_CLASSICAL_CLIENT,
        }
    };
    (retries_for_ml_kem_under_prefer, $client:expr => $server:expr) => {
        $crate::sentences! { $client => $server,
            retries_for_ml_kem_under_prefer: RETRIES_FOR_ML_KEM_UNDER_PREFER,
        }
    };
    (retries_for_ml_kem_under_require, $client:expr => $server:expr) => {
        $crate::sentences! { $client => $server,
            retries_for_ml_kem_under_require: RETRIES_FOR_ML_KEM_UNDER_REQUIRE,
        }
    };
    (early_data, $client:expr => $server:expr) => {
        $crate::sentences! { $client => $server,
            sends_early_data: SENDS_EARLY_DATA,
            loses_no_refused_early_data: LOSES_NO_REFUSED_EARLY_DATA,
            sends_early_data_past_a_retry: SENDS_EARLY_DATA_PAST_A_RETRY,
        }
    };
    (updates_the_clients_keys, $client:expr => $server:expr) => {
        $crate::sentences! { $client => $server,
            updates_the_clients_keys: UPDATES_THE_CLIENTS_KEYS,
        }
    };
    (updates_the_servers_keys, $client:expr => $server:expr) => {
        $crate::sentences! { $client => $server,
            updates_the_servers_keys: UPDATES_THE_SERVERS_KEYS,
        }
    };
    (carries_datagrams, $client:expr => $server:expr) => {
        $crate::sentences! { $client => $server,
            carries_datagrams: CARRIES_DATAGRAMS,
        }
    };
    (survives_rebinding, $client:expr => $server:expr) => {
        $crate::sentences! { $client => $server,
            survives_rebinding: SURVIVES_REBINDING,
        }
    };
    (migrates, $client:expr => $server:expr) => {
        $crate::sentences! { $client => $server,
            migrates: MIGRATES,
        }
    };
}

/// Defines one test per sentence.
#[macro_export]
macro_rules! sentences {
    ($client:expr => $server:expr, $($sentence:ident: $case:ident,)*) => {
        $(
            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $sentence() {
                let case = hybriq_interop::cases::$case;
                $crate::sentences::holds(&$client, &$server, case).await;
            }
        )*
    };
}
