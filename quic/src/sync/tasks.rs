//! The runtime of a worker, and the application's tasks that run next to it.

use std::{future::Future, sync::OnceLock};

use tokio::{
    runtime::Handle,
    sync::mpsc::{self, Receiver, Sender},
    task::JoinHandle,
};

use super::waiters::lock;
use crate::sync::Mutex;

/// The runtime of a worker, and the application's tasks on it.
#[derive(Default)]
pub(crate) struct Tasks {
    runtime: OnceLock<Handle>,
    /// Held by each task, so that the worker's thread can wait for the last one. `None` when there is
    /// no such thread, and at its end.
    running: Mutex<Option<Sender<()>>>,
}

impl Tasks {
    /// Records the runtime of the worker.
    pub(crate) fn begin(&self, runtime: Handle) {
        let _ = self.runtime.set(runtime);
    }

    /// Counts tasks from now on, because the runtime ends with the worker. Returns a receiver that
    /// closes when the last task has ended.
    pub(crate) fn count(&self) -> Receiver<()> {
        let (sender, receiver) = mpsc::channel(1);
        *lock(&self.running) = Some(sender);
        receiver
    }

    /// Waits until the last task has ended.
    pub(crate) async fn finish(&self, mut running: Receiver<()>) {
        drop(lock(&self.running).take());
        while running.recv().await.is_some() {}
    }

    /// Returns the number of tasks, if the worker has its own thread.
    pub(crate) fn running(&self) -> usize {
        let running = lock(&self.running);
        // One of the senders starts the tasks.
        running
            .as_ref()
            .map_or(0, |sender| sender.strong_count() - 1)
    }

    /// Starts a task next to the worker.
    pub(crate) fn spawn<F>(&self, task: F) -> JoinHandle<F::Output>
    where
        F: Future<Output: Send> + Send + 'static,
    {
        let held = lock(&self.running).clone();
        let task = async move {
            let _held = held;
            task.await
        };
        match self.runtime.get() {
            Some(runtime) => runtime.spawn(task),
            None => tokio::spawn(task),
        }
    }
}
