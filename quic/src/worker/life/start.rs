//! Starting a worker, as a task or on its own thread.

use std::{
    io,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
};

use tokio::runtime::{Builder, Handle};

use crate::{
    config::Placement,
    errors::EndpointError,
    udp::{self, Prepared},
    worker::{Mailbox, Shared, Worker, WorkerSettings, shared::worker_thread, sockets::Sockets},
};

/// Everything that a worker starts with.
pub(crate) struct Start {
    pub(crate) index: u8,
    /// Core to bind the worker's own thread to, if it has one; the count wraps around.
    pub(crate) core: usize,
    pub(crate) shared: Arc<Shared>,
    pub(crate) mailbox: Arc<Mailbox>,
    /// Its sockets, and the options of sockets opened later.
    pub(crate) sockets: (Vec<Prepared>, udp::Options),
    pub(crate) settings: Arc<WorkerSettings>,
}

impl Start {
    /// Starts the worker.
    pub(crate) fn run(self, placement: Placement) -> Result<(), EndpointError> {
        let core = match placement {
            Placement::Runtime => {
                let runtime = Handle::try_current().map_err(|_| EndpointError::NoRuntime)?;
                self.mailbox.tasks().begin(runtime.clone());
                runtime.spawn(self.worker()?.run());
                return Ok(());
            }
            Placement::Threads => None,
            Placement::PinnedThreads => Some(self.core),
        };
        let runtime = Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(EndpointError::Thread)?;
        self.mailbox.tasks().begin(runtime.handle().clone());
        let running = self.mailbox.tasks().count();
        let mailbox = self.mailbox.clone();
        let (shared, index) = (self.shared.clone(), self.index);
        let worker = {
            let _entered = runtime.enter();
            self.worker()?
        };
        let work = move || {
            if let Some(core) = core {
                if let Err(error) = pin(core) {
                    tracing::warn!(%error, "cannot bind the thread of a worker to a core");
                }
            }
            worker_thread::begin(&*shared, index);
            drop(shared);
            runtime.block_on(async {
                Box::pin(worker.run()).await;
                mailbox.tasks().finish(running).await;
            });
        };
        thread::Builder::new()
            .name("hybriq-worker".into())
            .spawn(work)
            .map_err(EndpointError::Thread)?;
        Ok(())
    }

    /// Creates the worker. Its sockets belong to the current runtime.
    fn worker(self) -> Result<Worker, EndpointError> {
        let (opened, options) = self.sockets;
        let sockets = opened.into_iter().map(Prepared::register);
        let sockets = sockets.collect::<Result<_, _>>()?;
        Ok(Worker::new(
            self.index,
            self.shared,
            self.mailbox,
            Sockets::new(sockets, options),
            self.settings,
        ))
    }
}

/// Returns the first of the consecutive cores for the workers of one endpoint. The endpoints of one
/// process follow each other, and different processes start at different cores.
pub(crate) fn first_core(workers: usize) -> usize {
    static TAKEN: AtomicUsize = AtomicUsize::new(0);
    let before = TAKEN.fetch_add(workers, Ordering::Relaxed);
    before.wrapping_add(std::process::id() as usize)
}

/// Binds this thread to one of the cores that the process may use, counted from 0 and wrapping
/// around.
#[cfg(any(target_os = "linux", target_os = "android"))]
#[expect(unsafe_code, reason = "the affinity of threads has no safe interface")]
fn pin(core: usize) -> io::Result<()> {
    let size = size_of::<libc::cpu_set_t>();
    // SAFETY: the set is plain data, for which all-zero bytes are valid, and the pointers are valid
    // for the size given.
    let result = unsafe {
        let mut allowed: libc::cpu_set_t = std::mem::zeroed();
        if libc::sched_getaffinity(0, size, &raw mut allowed) != 0 {
            return Err(io::Error::last_os_error());
        }
        let cores = (0..libc::CPU_SETSIZE as usize).filter(|&cpu| libc::CPU_ISSET(cpu, &allowed));
        let cores: Vec<_> = cores.collect();
        let mut chosen: libc::cpu_set_t = std::mem::zeroed();
        let place = core.checked_rem(cores.len()).unwrap_or_default();
        libc::CPU_SET(cores.get(place).copied().unwrap_or_default(), &mut chosen);
        libc::sched_setaffinity(0, size, &raw const chosen)
    };
    if result == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}

/// Does nothing: other systems have no such call.
#[cfg(not(any(target_os = "linux", target_os = "android")))]
#[expect(clippy::unnecessary_wraps, reason = "it can fail on Linux")]
fn pin(_: usize) -> io::Result<()> {
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::first_core;

    #[test]
    fn endpoints_of_one_process_take_cores_one_after_another() {
        let first = first_core(3);
        // Other tests may have taken some meanwhile.
        assert!(first_core(2).wrapping_sub(first) >= 3);
    }
}
