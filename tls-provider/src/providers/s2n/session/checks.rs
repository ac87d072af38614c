//! Checks that s2n-tls leaves out.

use super::Running;
use crate::{Alert, Error, KeyShare, PeerChain, Session, messages::framing};

impl Running {
    /// Asks the application's verifier, before any secret or byte of this flight is sent.
    pub(super) fn ask_verifier(&self) -> Result<(), Error> {
        let Some(verifier) = &self.common.verifier else {
            return Ok(());
        };
        let certificates = self.peer_certificates();
        if certificates.is_empty() {
            // The session is resumed, or the client may connect without a certificate.
            return Ok(());
        }
        verifier.verify(&PeerChain {
            owner: self.side.peer(),
            certificates: &certificates,
            server_name: self.side.is_client().then_some(&*self.peer.name),
            ocsp_response: &[],
        })
    }

    /// Refuses handshakes that s2n-tls accepts against RFC 9001 §8.
    pub(super) fn check_complete(&self) -> Result<(), Error> {
        if self.peer_params.is_none() {
            return Err(Error::told(
                Alert::MISSING_EXTENSION,
                "no quic_transport_parameters",
            ));
        }
        match self.connection.application_protocol() {
            None if self.common.alpn.is_empty() => Ok(()),
            None => Err(Error::told(
                Alert::NO_APPLICATION_PROTOCOL,
                "the peer chose no application protocol",
            )),
            Some(chosen) if self.common.alpn.iter().any(|ours| ours == chosen) => Ok(()),
            Some(_) => Err(Error::told(
                Alert::ILLEGAL_PARAMETER,
                "the peer chose an application protocol that was not offered",
            )),
        }
    }

    /// Refuses a server's share that is too long, which s2n-tls does not notice.
    pub(super) fn check_share(&self, next: &[u8]) -> Result<(), Error> {
        if self.side.is_server() || self.complete {
            return Ok(());
        }
        let Some(KeyShare { group, len }) = framing::server_share(next) else {
            return Ok(());
        };
        match group.share_sizes() {
            Some(sizes) if sizes.server != len => Err(Error::told(
                Alert::ILLEGAL_PARAMETER,
                format!("the server sent a key share of a wrong length: {group}"),
            )),
            _ => Ok(()),
        }
    }

    /// Refuses a client's share that s2n-tls cannot read: it would ask for another one of the same
    /// group.
    pub(super) fn refuse_retry(&mut self, before: usize) -> Result<(), Error> {
        let Some(group) = self.shared.take() else {
            return Ok(());
        };
        let answer = self.io.crypto.initial.get(before..).unwrap_or_default();
        if !framing::is_hello_retry(answer) {
            return Ok(());
        }
        Err(Error::told(
            Alert::ILLEGAL_PARAMETER,
            format!("the client sent a key share that is malformed: {group}"),
        ))
    }
}
