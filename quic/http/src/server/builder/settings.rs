//! Settings of the QUIC endpoint that a server has as its own.

use std::sync::Arc;

use hybriq::{
    Workers,
    fleet::{CidGenerator, FleetKeys},
};

use super::ServerBuilder;

/// Writes setters that pass their value on to the builder of the endpoint, whose documentation says what it means.
macro_rules! endpoint_setters {
    ($($(#[$attribute:meta])* $name:ident($value:ident: $type:ty), $what:literal;)*) => {
        impl ServerBuilder {
            $(
                #[doc = $what]
                #[doc = ""]
                #[doc = concat!(
                    "The same as [`EndpointBuilder::", stringify!($name), "`](hybriq::EndpointBuilder::",
                    stringify!($name), "), which see."
                )]
                $(#[$attribute])*
                #[must_use]
                pub fn $name(mut self, $value: $type) -> Self {
                    self.endpoint = self.endpoint.$name($value);
                    self
                }
            )*
        }
    };
}

endpoint_setters! {
    workers(workers: impl Into<Workers>), "Sets the number of QUIC workers. Default: 1.";
    fleet_keys(keys: &FleetKeys), "Sets the keys of tokens and resets, which processes and machines of one service share. \
        Session tickets have theirs from [`ServerConfig::tickets`](hybriq::ServerConfig::tickets). Default: random keys.";
    cid_generator(generator: impl CidGenerator + 'static), "Sets the generator of QUIC connection ids. Default: random ids \
        of 8 bytes.";
    max_connections(connections: usize), "Sets the largest number of QUIC connections at once; \
        [`Limits::tcp_connections`](crate::Limits::tcp_connections) bounds those over TCP. Default: no limit.";
    name(name: impl Into<Arc<str>>), "Sets the name of the server in metrics (feature `metrics`) and traces. Default: \
        none.";
    #[cfg(feature = "qlog")]
    qlog(qlog: &hybriq::qlog::Qlog), "Logs the QUIC connections for tools such as qvis. Default: none.";
}
