//! A client's TLS sessions in its memory of servers.

use std::{sync::Arc, time::SystemTime};

use hybriq_proto::remembered::server::{ServerKey, ServerStore};
use hybriq_tls::{SessionKey, SessionStore};

/// The sessions of a store of servers.
pub(in crate::config) struct Sessions(pub(in crate::config) Arc<dyn ServerStore>);

#[expect(
    clippy::disallowed_methods,
    reason = "what is remembered of servers ends by the wall clock"
)]
fn now() -> SystemTime {
    SystemTime::now()
}

impl SessionStore for Sessions {
    fn put(&self, key: SessionKey<'_>, session: &[u8]) {
        let server = ServerKey::new(key.server_name);
        self.0.change(now(), &server, &mut |record| {
            record.put_session(key.policy, session);
        });
    }

    fn take(&self, key: SessionKey<'_>) -> Option<Vec<u8>> {
        let server = ServerKey::new(key.server_name);
        let mut has_any = false;
        self.0
            .read(&server, &mut |record| has_any = record.sessions() > 0);
        let mut taken = None;
        if has_any {
            self.0.change(now(), &server, &mut |record| {
                taken = record.take_session(key.policy);
            });
        }
        taken
    }
}
