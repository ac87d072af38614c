//! States of a connection, and the reason for its end.

use hybriq_proto::{
    events::{Change, ConnectionState},
    wire::error::{By, Code, ConnectionError},
};
use hybriq_tls::Alert;

use super::{
    frames::{self, NumberKey},
    sheet::{Sheet, owner, sheet_owner},
};
use crate::schema::{Name, Schema};

pub(crate) fn state(sheet: &mut Sheet<'_>, change: Change<ConnectionState>) {
    let name = |state| match state {
        ConnectionState::Complete => "handshake_complete",
        ConnectionState::Confirmed => "handshake_confirmed",
        ConnectionState::Closing => "closing",
        ConnectionState::Draining => "draining",
        ConnectionState::Closed => "closed",
        // Handshaking: the first packet is on its way.
        _ => "attempted",
    };
    sheet.write(Name::ConnectionStateUpdated, |data| {
        data.text("old", name(change.old));
        data.text("new", name(change.new));
    });
}

pub(crate) fn closed(sheet: &mut Sheet<'_>, error: &ConnectionError) {
    let schema = sheet.schema;
    let (transport, application) = match schema {
        Schema::V03 => ("connection_code", "application_code"),
        Schema::Draft13 => ("connection_error", "application_error"),
    };
    sheet.write(Name::ConnectionClosed, |data| {
        let mut by_end = |by| data.text(sheet_owner(schema), owner(by));
        let (trigger, reason) = match error {
            ConnectionError::Application { by, code, reason } => {
                by_end(*by);
                match schema {
                    Schema::V03 => data.uint(application, *code),
                    Schema::Draft13 => {
                        data.text(application, "unknown");
                        data.uint("error_code", *code);
                    }
                }
                ("application", frames::shortened(reason).into_owned())
            }
            ConnectionError::Transport {
                by, code, reason, ..
            } => {
                by_end(*by);
                frames::write_code(data, transport, *code, NumberKey::of(schema));
                let trigger = match (*code, schema) {
                    (Code::NO_ERROR, Schema::V03) => "clean",
                    (Code::NO_ERROR, Schema::Draft13) => "unspecified",
                    _ => "error",
                };
                (trigger, frames::shortened(reason).into_owned())
            }
            ConnectionError::KeyExchangeRefused { by, reason, .. } => {
                by_end(*by);
                let code = Code::crypto(Alert::HANDSHAKE_FAILURE.0);
                frames::write_code(data, transport, code, NumberKey::of(schema));
                ("error", reason.clone())
            }
            ConnectionError::Downgraded(downgrade) => {
                by_end(By::Local);
                let code = Code::crypto(downgrade.alert().0);
                frames::write_code(data, transport, code, NumberKey::of(schema));
                ("error", error.to_string())
            }
            ConnectionError::Reset => ("stateless_reset", String::new()),
            ConnectionError::VersionMismatch => ("version_mismatch", String::new()),
            ConnectionError::TimedOut => ("idle_timeout", String::new()),
            ConnectionError::HandshakeTimedOut => match schema {
                Schema::V03 => ("handshake_timeout", String::new()),
                Schema::Draft13 => ("idle_timeout", "handshake timeout".to_owned()),
            },
            ConnectionError::NoAnswer => match schema {
                Schema::V03 => ("handshake_timeout", String::new()),
                Schema::Draft13 => ("idle_timeout", "no answer".to_owned()),
            },
            other => ("error", other.to_string()),
        };
        if !reason.is_empty() {
            data.text("reason", &reason);
        }
        data.text("trigger", trigger);
    });
}
