//! The folder with this end's identity and the keys it knows.

use std::{
    env,
    fs::{self, DirBuilder, OpenOptions},
    io::{self, Write as _},
    os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _, PermissionsExt as _},
    path::{Path, PathBuf},
};

use hybriq::{Identity, error::ConfigError};
use rcgen::{CertificateParams, DnType, KeyPair, PKCS_ML_DSA_65};

use crate::{
    fingerprint::{Fingerprint, NotMlDsa65},
    keys::Keys,
};

/// The folder, of which each end has its own.
#[derive(Clone, Debug)]
pub(crate) struct Folder(PathBuf);

/// This end's certificate and key.
#[derive(Clone)]
pub(crate) struct Own {
    pub(crate) identity: Identity,
    pub(crate) fingerprint: Fingerprint,
}

/// A folder or an identity that cannot be used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum FolderError {
    #[error("neither XDG_CONFIG_HOME nor HOME is set; give --config FOLDER")]
    NoHome,
    #[error("{}: {error}", path.display())]
    Io { path: PathBuf, error: io::Error },
    #[error("others may read the private key in {0}; run: chmod 600 {0}")]
    Exposed(String),
    #[error("{}: {error}; move it away to get a new identity", path.display())]
    Unusable { path: PathBuf, error: ConfigError },
    #[error("{}: {error}; move it away to get a new identity", path.display())]
    OtherKey { path: PathBuf, error: NotMlDsa65 },
    #[error("cannot make a certificate: {0}")]
    Make(#[from] rcgen::Error),
}

impl Folder {
    /// Opens the folder, which is made if it is missing.
    pub(crate) fn open(given: Option<PathBuf>) -> Result<Self, FolderError> {
        let path = match given {
            Some(path) => path,
            None => default_folder().ok_or(FolderError::NoHome)?,
        };
        let made = DirBuilder::new().recursive(true).mode(0o700).create(&path);
        made.map_err(|error| FolderError::Io {
            path: path.clone(),
            error,
        })?;
        Ok(Self(path))
    }

    /// Returns the keys of servers by their host and port.
    pub(crate) fn known_hosts(&self) -> Keys {
        Keys::new(self.0.join("known_hosts"))
    }

    /// Returns the keys of clients that may use this server.
    pub(crate) fn authorized(&self) -> Keys {
        Keys::new(self.0.join("authorized"))
    }

    /// Returns this end's identity, which is made at the first call.
    pub(crate) fn own(&self) -> Result<Own, FolderError> {
        let path = self.0.join("identity.pem");
        if !path.exists() {
            self.make(&path)?;
        }
        let io = |error| FolderError::Io {
            path: path.clone(),
            error,
        };
        let mode = fs::metadata(&path).map_err(io)?.permissions().mode();
        if mode & 0o077 != 0 {
            return Err(FolderError::Exposed(path.display().to_string()));
        }
        let identity =
            Identity::from_pem_files(&path, &path).map_err(|error| FolderError::Unusable {
                path: path.clone(),
                error,
            })?;
        let own = identity.certificates().first().map(Fingerprint::of);
        let fingerprint = own
            .unwrap_or(Err(NotMlDsa65))
            .map_err(|error| FolderError::OtherKey { path, error })?;
        Ok(Own {
            identity,
            fingerprint,
        })
    }

    /// Writes a new identity, unless another process was faster.
    fn make(&self, path: &Path) -> Result<(), FolderError> {
        let mut params = CertificateParams::default();
        params
            .distinguished_name
            .push(DnType::CommonName, "file_transfer");
        let key = KeyPair::generate_for(&PKCS_ML_DSA_65)?;
        let text = params.self_signed(&key)?.pem() + &key.serialize_pem();
        let draft = self.0.join(format!("identity.{}", std::process::id()));
        let io = |error| FolderError::Io {
            path: path.to_owned(),
            error,
        };
        let mut options = OpenOptions::new();
        let file = options
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&draft);
        let written = file
            .and_then(|mut file| file.write_all(text.as_bytes()))
            // A link appears at once, and does not replace what is there.
            .and_then(|()| fs::hard_link(&draft, path));
        // It is no longer of any use.
        let _ = fs::remove_file(&draft);
        match written {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(io(error)),
            _ => Ok(()),
        }
    }
}

fn default_folder() -> Option<PathBuf> {
    let set = |name| {
        env::var_os(name)
            .filter(|value| !value.is_empty())
            .map(PathBuf::from)
    };
    let base = set("XDG_CONFIG_HOME").or_else(|| Some(set("HOME")?.join(".config")))?;
    Some(base.join("hybriq-file-transfer"))
}
