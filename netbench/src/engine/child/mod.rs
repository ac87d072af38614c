//! The hidden subcommands: a child process that plays one side, and talks to its parent over pipes.

pub(crate) mod orders;

use std::io;

use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use tokio::task::spawn_local;

use super::time::clock;
use super::{ClientSpec, FromClient, FromServer, ServerSpec, ToClient, ToServer, server};
use crate::system::failure::Failure;
use crate::system::os;
use crate::system::process::pipe::{FromParent, tell};

/// Plays the client that the parent's first line describes.
pub(crate) async fn client() -> Result<(), Failure> {
    let mut parent = FromParent::open()?;
    let spec: ClientSpec = parent.expect().await?;
    pin(spec.core)?;
    clock::sharpen()?;
    let received = read_orders(parent, || ToClient::Stop)?;
    orders::run(spec, received, answer::<FromClient>).await
}

/// Plays the server that the parent's first line describes.
pub(crate) async fn server() -> Result<(), Failure> {
    let mut parent = FromParent::open()?;
    let spec: ServerSpec = parent.expect().await?;
    pin(spec.core)?;
    clock::sharpen()?;
    let orders = read_orders(parent, || ToServer::Stop { after: 0 })?;
    server::run(spec, orders, answer::<FromServer>).await
}

fn pin(core: Option<usize>) -> io::Result<()> {
    core.map_or(Ok(()), os::pin_to_core)
}

fn answer<T: Serialize>(message: T) -> io::Result<()> {
    tell(&Ok::<_, String>(message))
}

/// Reads the parent's orders. Their end ends this process. A termination signal counts as the order
/// to report.
fn read_orders<T: DeserializeOwned + 'static>(
    mut parent: FromParent,
    stop: fn() -> T,
) -> Result<UnboundedReceiver<T>, Failure> {
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    let (orders, received) = unbounded_channel();
    spawn_local(async move {
        loop {
            let order = tokio::select! {
                order = parent.next() => match order {
                    Ok(Some(order)) => order,
                    Ok(None) | Err(_) => return,
                },
                _ = terminate.recv() => stop(),
                _ = interrupt.recv() => stop(),
            };
            if orders.send(order).is_err() {
                return;
            }
        }
    });
    Ok(received)
}
