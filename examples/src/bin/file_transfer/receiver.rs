//! The receiving end of a transfer: asks for pieces and writes them.

use std::sync::Arc;

use hybriq::{Connection, PostQuantum};
use tokio::task::{JoinSet, spawn_blocking};

use crate::{
    error::Error,
    manifest::Manifest,
    message::{Piece, Report, Writer, fill},
    plan::{Plan, Task},
    progress::Progress,
    room::Room,
    root::Root,
    sender::{CHANGED, PRESENT},
    store::Store,
};

/// A transfer into a folder of this end.
#[derive(Debug)]
pub(crate) struct Receiver {
    plan: Arc<Plan>,
    wanted: u64,
}

impl Receiver {
    /// Prepares the folder, finds what is missing in it, and reserves the space for that.
    pub(crate) async fn prepare(
        root: Root,
        manifest: Manifest,
        room: &Arc<Room>,
    ) -> Result<Self, Error> {
        let room = Arc::clone(room);
        let prepare = move || Plan::new(Store::open(root, manifest)?, &room);
        let (plan, wanted) = spawn_blocking(prepare).await??;
        Ok(Self {
            plan: Arc::new(plan),
            wanted,
        })
    }

    /// Returns the number of bytes that are missing.
    pub(crate) fn wanted(&self) -> u64 {
        self.wanted
    }

    /// Downloads the missing files over at most this many streams at once.
    pub(crate) async fn run(
        self,
        connection: &PostQuantum<Connection>,
        streams: u8,
        progress: &Progress,
    ) -> Result<Report, Error> {
        let mut workers = JoinSet::new();
        for _ in 0..streams {
            let worker = Worker {
                plan: Arc::clone(&self.plan),
                connection: connection.clone(),
                progress: progress.clone(),
            };
            workers.spawn(worker.run());
        }
        // The first error ends all: dropping the set stops the others.
        while let Some(ended) = workers.join_next().await {
            ended??;
        }
        spawn_blocking(move || self.plan.finish()).await?
    }
}

/// One of the streams at a time.
struct Worker {
    plan: Arc<Plan>,
    connection: PostQuantum<Connection>,
    progress: Progress,
}

impl Worker {
    async fn run(self) -> Result<(), Error> {
        loop {
            let plan = Arc::clone(&self.plan);
            let tasks = spawn_blocking(move || plan.next()).await??;
            if tasks.is_empty() {
                return Ok(());
            }
            self.get(tasks).await?;
        }
    }

    async fn get(&self, tasks: Vec<Task>) -> Result<(), Error> {
        let (send, mut recv) = self.connection.open_bidi().await?;
        let request: Vec<Piece> = tasks.iter().map(|task| task.piece).collect();
        let mut writer = Writer::new(send);
        writer.write(&request).await?;
        writer.end();
        for task in &tasks {
            let mut status = [0];
            fill(&mut recv, &mut status).await?;
            match status {
                [PRESENT] => {}
                [CHANGED] => {
                    self.plan.on_unreadable(task);
                    continue;
                }
                _ => return Err(Error::Protocol("a piece of an unknown kind".to_owned())),
            }
            let mut bytes = vec![0; task.piece.len as usize];
            fill(&mut recv, &mut bytes).await?;
            self.progress.add(u64::from(task.piece.len));
            let (plan, task) = (Arc::clone(&self.plan), task.clone());
            spawn_blocking(move || plan.done(&task, &bytes)).await??;
        }
        match recv.read(&mut [0]).await? {
            0 => Ok(()),
            _ => Err(Error::Protocol("more bytes than were asked for".to_owned())),
        }
    }
}
