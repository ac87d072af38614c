//! Ctrl-C and SIGTERM: the first one ends the measurement and keeps the results so far, the second
//! one ends the program.

use std::process::exit;

use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;

use crate::system::failure::Failure;

/// Message of a measurement that the user ended early.
pub(crate) const INTERRUPTED: &str = "interrupted";

/// Exit code of a program that SIGINT ended.
const BY_SIGINT: i32 = 130;

/// Flag that is set when the user wants the run to end.
#[derive(Clone)]
pub(crate) struct Interrupt(watch::Receiver<bool>);

impl Interrupt {
    /// Listens for signals from now on, within a `LocalSet`.
    pub(crate) fn listen() -> Result<Self, Failure> {
        let (asked, receiver) = watch::channel(false);
        let (mut interrupt, mut terminate) = (
            signal(SignalKind::interrupt())?,
            signal(SignalKind::terminate())?,
        );
        tokio::task::spawn_local(async move {
            loop {
                tokio::select! {
                    _ = interrupt.recv() => {}
                    _ = terminate.recv() => {}
                }
                if asked.send_replace(true) {
                    // The children end with this process.
                    exit(BY_SIGINT);
                }
            }
        });
        Ok(Self(receiver))
    }

    pub(crate) fn is_asked(&self) -> bool {
        *self.0.borrow()
    }

    /// Waits until the user asks for the end.
    pub(crate) async fn asked(&self) {
        let mut receiver = self.0.clone();
        if receiver.wait_for(|asked| *asked).await.is_err() {
            // Nobody listens for signals any longer.
            std::future::pending::<()>().await;
        }
    }
}
