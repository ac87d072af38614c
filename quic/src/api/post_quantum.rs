//! Proof that a connection is post-quantum, as a type.

use std::ops::Deref;

use hybriq_tls::{Group, Lineage};

use crate::api::connection::Connection;

/// A connection that a quantum computer cannot read.
///
/// A function that takes a `PostQuantum<Connection>` cannot be called with any other connection:
/// the only way to make one is to [prove](Self::prove) it. The key exchange of the connection must
/// be post-quantum, and so must that of a session that it resumes.
///
/// # Examples
/// ```
/// use hybriq::{Connection, PostQuantum};
///
/// /// Sends what has to stay secret for thirty years.
/// async fn send_records(connection: &PostQuantum<Connection>) -> Result<(), hybriq::ConnectionError> {
///     let (send, recv) = connection.open_bidi().await?;
///     # drop((send, recv));
///     Ok(())
/// }
///
/// async fn send(connection: Connection) -> Result<(), Box<dyn std::error::Error>> {
///     let proven = PostQuantum::prove(connection)?;
///     send_records(&proven).await?;
///     Ok(())
/// }
/// ```
#[derive(Clone, Debug)]
pub struct PostQuantum<C>(C);

impl PostQuantum<Connection> {
    /// Proves that a connection is post-quantum.
    ///
    /// # Errors
    /// The connection is not post-quantum; the error returns it.
    pub fn prove(connection: Connection) -> Result<Self, NotPostQuantum> {
        if connection.handshake().is_post_quantum() {
            Ok(Self(connection))
        } else {
            Err(NotPostQuantum(Box::new(connection)))
        }
    }
}

impl<C> PostQuantum<C> {
    /// Returns the connection without its proof.
    pub fn into_inner(self) -> C {
        self.0
    }
}

impl<C> Deref for PostQuantum<C> {
    type Target = C;

    fn deref(&self) -> &C {
        &self.0
    }
}

impl TryFrom<Connection> for PostQuantum<Connection> {
    type Error = NotPostQuantum;

    fn try_from(connection: Connection) -> Result<Self, NotPostQuantum> {
        Self::prove(connection)
    }
}

/// A connection whose recorded traffic a quantum computer can read.
#[derive(Clone, Debug, thiserror::Error)]
#[error(
    "the connection is not post-quantum: {}; require it with KeyExchange::RequirePostQuantum at either end",
    self.why()
)]
pub struct NotPostQuantum(Box<Connection>);

impl NotPostQuantum {
    fn why(&self) -> String {
        let group = self.group();
        if group.is_post_quantum() {
            "it resumes a session that began with a classical group".to_owned()
        } else {
            format!("its key exchange is {group}")
        }
    }

    /// Returns the group of the key exchange.
    pub fn group(&self) -> Group {
        self.0.handshake().key_exchange.group
    }

    /// Returns the lineage of the session.
    pub fn lineage(&self) -> Lineage {
        self.0.handshake().lineage
    }

    /// Returns the connection.
    pub fn into_connection(self) -> Connection {
        *self.0
    }
}
