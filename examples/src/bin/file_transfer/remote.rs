//! A server and a path on it.

use std::{net::SocketAddr, str::FromStr};

use crate::{error::Error, path::RelativePath};

/// `HOST:PORT`, with `/PATH` behind it or without.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Remote {
    /// Name under which the server's key is known.
    pub(crate) authority: String,
    /// Host without brackets.
    pub(crate) host: String,
    port: u16,
    /// `None` is the folder that is served.
    pub(crate) path: Option<RelativePath>,
}

impl FromStr for Remote {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (authority, path) = text.split_once('/').unwrap_or((text, ""));
        let wanted = "give HOST:PORT or HOST:PORT/PATH, such as example.org:4433/photos";
        let (host, port) = authority.rsplit_once(':').ok_or(wanted)?;
        let port = port.parse().map_err(|_| wanted)?;
        let host = host
            .strip_prefix('[')
            .and_then(|host| host.strip_suffix(']'))
            .unwrap_or(host);
        if host.is_empty() || host.contains(char::is_whitespace) {
            return Err(wanted.to_owned());
        }
        let path = path.trim_end_matches('/');
        let path = match path {
            "" => None,
            path => Some(
                path.parse()
                    .map_err(|rule| format!("the path '{path}': {rule}"))?,
            ),
        };
        Ok(Self {
            authority: authority.to_owned(),
            host: host.to_owned(),
            port,
            path,
        })
    }
}

impl Remote {
    /// Returns the addresses of the host.
    pub(crate) async fn addresses(&self) -> Result<Vec<SocketAddr>, Error> {
        let found = tokio::net::lookup_host((self.host.as_str(), self.port)).await;
        let found = found.map_err(|error| Error::Io {
            what: self.host.clone(),
            error,
        })?;
        Ok(found.collect())
    }
}
