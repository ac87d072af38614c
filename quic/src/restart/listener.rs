//! Path at which a process waits for its successor.

use std::{
    fs, io,
    os::unix::fs::{FileTypeExt as _, PermissionsExt as _},
    path::{Path, PathBuf},
    time::Duration,
};

use tokio::net::{UnixListener, UnixStream};

use crate::errors::RestartError;

/// Number of looks that must find a process listening at a path, and the time between them. A
/// successor that is dying may still listen when its predecessor notices.
const LOOKS: u32 = 10;
const INTERVAL: Duration = Duration::from_millis(50);

/// Path at which this process waits for a successor. Dropping it removes the file, unless the
/// endpoint was handed over: then the successor has put its own file in its place.
pub(crate) struct Listener {
    listener: UnixListener,
    path: Option<PathBuf>,
}

impl Listener {
    /// Listens at the path, and replaces a process that no longer listens there.
    pub(crate) async fn new(path: &Path) -> Result<Self, RestartError> {
        let mut looks = LOOKS;
        while UnixStream::connect(path).await.is_ok() {
            looks -= 1;
            if looks == 0 {
                return Err(RestartError::PathInUse);
            }
            tokio::time::sleep(INTERVAL).await;
        }
        // Renamed once it is ready, so that another user can never connect, and the path is never
        // missing.
        let mut name = path.file_name().unwrap_or_default().to_owned();
        name.push(format!(".{}", std::process::id()));
        let new = path.with_file_name(name);
        let listen = || {
            if ![path, &new].into_iter().all(is_socket_or_free) {
                let reason = "there is something else than a socket";
                return Err(io::Error::new(io::ErrorKind::AlreadyExists, reason));
            }
            match fs::remove_file(&new) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
            let listener = UnixListener::bind(&new)?;
            fs::set_permissions(&new, fs::Permissions::from_mode(0o600))?;
            fs::rename(&new, path)?;
            Ok(listener)
        };
        Ok(Self {
            listener: listen().map_err(RestartError::Path)?,
            path: Some(path.to_owned()),
        })
    }

    /// Waits for a process that wants to be the successor.
    pub(crate) async fn accept(&self) -> Result<UnixStream, RestartError> {
        let accepted = self.listener.accept().await;
        accepted
            .map(|(stream, _)| stream)
            .map_err(RestartError::Path)
    }

    /// Leaves the path to the successor.
    pub(crate) fn leave(mut self) {
        self.path = None;
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        if let Some(path) = self.path.as_ref().filter(|path| is_socket_or_free(path)) {
            // The file may be gone already.
            let _ = fs::remove_file(path);
        }
    }
}

/// Returns false if a path leads to anything but a socket, such as a file that must not be replaced.
fn is_socket_or_free(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|found| found.file_type().is_socket())
        || fs::symlink_metadata(path).is_err_and(|error| error.kind() == io::ErrorKind::NotFound)
}
