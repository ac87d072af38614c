//! Logs of session secrets.

use std::{
    fmt,
    fs::{File, OpenOptions},
    io::Write,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
};

use zeroize::Zeroizing;

use crate::ConfigError;

/// A log of session secrets, with which a packet capture can be decrypted (NSS key log format, RFC
/// 9850).
///
/// # Security
/// Whoever reads the log can read the connections.
#[derive(Clone, Default)]
#[non_exhaustive]
pub enum KeyLog {
    /// No log.
    #[default]
    Off,
    /// The file that `SSLKEYLOGFILE` names when the provider is built, if it is set.
    Environment,
    /// This file, to which lines are appended.
    File(PathBuf),
    /// A function, called with one line at a time, without its line end.
    Callback(Arc<dyn Fn(&str) + Send + Sync>),
}

impl fmt::Debug for KeyLog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Off => f.write_str("Off"),
            Self::Environment => f.write_str("Environment"),
            Self::File(path) => f.debug_tuple("File").field(path).finish(),
            Self::Callback(_) => f.write_str("Callback"),
        }
    }
}

impl KeyLog {
    /// Opens the log; `None` if nothing is logged.
    pub(crate) fn open(&self) -> Result<Option<Arc<KeyLogSink>>, ConfigError> {
        let sink = match self {
            Self::Off => return Ok(None),
            Self::Environment => match std::env::var_os("SSLKEYLOGFILE") {
                Some(path) if !path.is_empty() => KeyLogSink::append(Path::new(&path))?,
                _ => return Ok(None),
            },
            Self::File(path) => KeyLogSink::append(path)?,
            Self::Callback(callback) => KeyLogSink::Callback(callback.clone()),
        };
        Ok(Some(Arc::new(sink)))
    }
}

/// An open key log.
pub(crate) enum KeyLogSink {
    File(Mutex<File>),
    Callback(Arc<dyn Fn(&str) + Send + Sync>),
}

impl fmt::Debug for KeyLogSink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("KeyLogSink")
    }
}

impl KeyLogSink {
    fn append(path: &Path) -> Result<Self, ConfigError> {
        let mut options = OpenOptions::new();
        options.append(true).create(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let file = options.open(path).map_err(|source| ConfigError::Write {
            path: path.to_owned(),
            cause: source,
        })?;
        Ok(Self::File(Mutex::new(file)))
    }

    /// Writes one line. An error does not end the handshake.
    pub(crate) fn log(&self, label: &str, client_random: &[u8], secret: &[u8]) {
        let hex_len = 2 * (client_random.len() + secret.len());
        let mut line = Zeroizing::new(String::with_capacity(label.len() + hex_len + 3));
        line.push_str(label);
        for field in [client_random, secret] {
            line.push(' ');
            push_hex(&mut line, field);
        }
        match self {
            Self::Callback(callback) => callback(&line),
            Self::File(file) => {
                line.push('\n');
                let mut file = file.lock().unwrap_or_else(PoisonError::into_inner);
                // One write per line, so that processes may share the file.
                let _ = file.write_all(line.as_bytes());
            }
        }
    }
}

fn push_hex(line: &mut String, bytes: &[u8]) {
    for byte in bytes {
        for nibble in [byte >> 4, byte & 15] {
            line.extend(char::from_digit(nibble.into(), 16));
        }
    }
}
