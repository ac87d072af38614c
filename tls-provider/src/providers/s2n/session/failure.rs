//! Errors of s2n-tls as alerts.

use s2n_tls::error::{Error as S2nError, ErrorType};

use crate::{Alert, Error, Profile, Side, providers::s2n::policy};

/// Translates an error to the alert that the RFCs require. s2n-tls gives no alert for many errors,
/// 80 for some that are the peer's fault, and the same alert for an unknown authority and for a
/// wrong name.
pub(in crate::providers::s2n) fn of(error: &S2nError) -> Error {
    let of_signer = error.application_error().and_then(|it| it.downcast_ref());
    if let Some(error) = of_signer.cloned() {
        return error;
    }
    let alert = match error.name() {
        "S2N_ERR_STUFFER_OUT_OF_DATA" | "S2N_ERR_SAFETY" => Alert::DECODE_ERROR,
        "S2N_ERR_INVALID_SUPPORTED_GROUP_STATE"
        | "S2N_ERR_ECDHE_UNSUPPORTED_CURVE"
        | "S2N_ERR_CIPHER_NOT_SUPPORTED"
        | "S2N_ERR_INVALID_SIGNATURE_SCHEME"
        | "S2N_ERR_INVALID_SIGNATURE_ALGORITHM" => Alert::HANDSHAKE_FAILURE,
        "S2N_ERR_CERT_UNTRUSTED" => Alert::UNKNOWN_CA,
        "S2N_ERR_CERT_INVALID_HOSTNAME" | "S2N_ERR_CERT_INTENT_INVALID" => Alert::BAD_CERTIFICATE,
        "S2N_ERR_VERIFY_SIGNATURE" | "S2N_ERR_BAD_FINISHED" | "S2N_ERR_BAD_PSK_BINDER" => {
            Alert::DECRYPT_ERROR
        }
        "S2N_ERR_BAD_KEY_SHARE"
        | "S2N_ERR_PQ_CRYPTO"
        | "S2N_ERR_ECDHE_INVALID_PUBLIC_KEY"
        | "S2N_ERR_ECDHE_SHARED_SECRET"
        | "S2N_ERR_INVALID_HELLO_RETRY"
        | "S2N_ERR_DUPLICATE_EXTENSION" => Alert::ILLEGAL_PARAMETER,
        "S2N_ERR_SECURITY_POLICY_INCOMPATIBLE_CERT" => Alert::UNSUPPORTED_CERTIFICATE,
        // s2n-tls fails on the value that the missing extension would have set.
        "S2N_ERR_NULL" => Alert::MISSING_EXTENSION,
        "S2N_ERR_UNSUPPORTED_EXTENSION" => Alert::UNSUPPORTED_EXTENSION,
        "S2N_ERR_PROTOCOL_VERSION_UNSUPPORTED" => Alert::PROTOCOL_VERSION,
        "S2N_ERR_UNSUPPORTED_WITH_QUIC" => Alert::UNEXPECTED_MESSAGE,
        "S2N_ERR_NO_APPLICATION_PROTOCOL" => Alert::NO_APPLICATION_PROTOCOL,
        _ => error.alert().map_or_else(|| by_kind(error), Alert),
    };
    Error::told(alert, crate::providers::s2n::reason(error))
}

/// Translates an error of one side under a profile. The same s2n-tls error means at a server that
/// it knows none of the client's groups, and at a client that the server chose a group that the
/// client did not offer (RFC 8446 §4.2.8).
pub(in crate::providers::s2n) fn at(side: Side, profile: Profile, error: &S2nError) -> Error {
    match error.name() {
        "S2N_ERR_ECDHE_UNSUPPORTED_CURVE" if side.is_client() => Error::told(
            Alert::ILLEGAL_PARAMETER,
            crate::providers::s2n::reason(error),
        ),
        _ => under(profile, of(error)),
    }
}

/// Adds the certificates of a profile to an error about a certificate. Clients omit their
/// certificate if the server does not accept its signature, so a server sees none.
fn under(profile: Profile, mut error: Error) -> Error {
    let Some(taken) = policy::certificates(profile) else {
        return error;
    };
    let remedy = match error.alert {
        Alert::CERTIFICATE_REQUIRED => {
            "give the client an identity, make client certificates optional, or replace one that does not \
             comply"
        }
        Alert::UNSUPPORTED_CERTIFICATE => "have the peer give a certificate that complies",
        _ => return error,
    };
    let addition = format!("; {remedy}: under the profile `{profile}` s2n-tls accepts {taken}");
    error.detail.push_str(&addition);
    error
}

fn by_kind(error: &S2nError) -> Alert {
    match error.kind() {
        ErrorType::ProtocolError | ErrorType::Alert => Alert::DECODE_ERROR,
        _ => Alert::INTERNAL_ERROR,
    }
}
