//! What layers share that call a function for each request.

use std::{sync::Arc, time::Duration};

use tokio::time::Instant;

/// What such a function gets.
pub(super) trait Entry {
    /// Notes how long it took until the entry is complete.
    fn end(&mut self, time: Duration);
}

/// A line of a log, which is written when this is dropped.
pub(super) struct Line<E: Entry, F: Fn(&E)> {
    pub(super) entry: E,
    begun: Instant,
    log: Arc<F>,
}

impl<E: Entry, F: Fn(&E)> Line<E, F> {
    /// Begins a line.
    pub(super) fn new(entry: E, log: &Arc<F>) -> Self {
        Self {
            entry,
            begun: Instant::now(),
            log: log.clone(),
        }
    }

    /// Returns the time since the line was begun.
    pub(super) fn elapsed(&self) -> Duration {
        self.begun.elapsed()
    }
}

impl<E: Entry, F: Fn(&E)> Drop for Line<E, F> {
    fn drop(&mut self) {
        self.entry.end(self.begun.elapsed());
        (self.log)(&self.entry);
    }
}

/// Makes a layer of a struct with the function in an `Arc`, and of its service with the fields `service` and `log`.
macro_rules! log_layer {
    ($layer:ident($entry:ty), $service:ident, $new:literal) => {
        impl<F: Fn(&$entry)> $layer<F> {
            #[doc = $new]
            pub fn new(log: F) -> Self {
                Self(::std::sync::Arc::new(log))
            }
        }

        impl<F> Clone for $layer<F> {
            fn clone(&self) -> Self {
                Self(self.0.clone())
            }
        }

        impl<F> ::std::fmt::Debug for $layer<F> {
            fn fmt(&self, f: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
                f.debug_struct(stringify!($layer)).finish_non_exhaustive()
            }
        }

        impl<S, F> ::tower_layer::Layer<S> for $layer<F> {
            type Service = $service<S, F>;

            fn layer(&self, service: S) -> $service<S, F> {
                let log = self.clone();
                $service { service, log }
            }
        }
    };
}

pub(super) use log_layer;
