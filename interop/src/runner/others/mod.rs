//! The same endpoint on libraries that this program is built with: peers of the matrix, with HTTP/0.9 only.

#[cfg(feature = "quiche")]
mod quiche;
mod quinn;
mod s2n_quic;

use tokio::{
    io::{AsyncRead, AsyncWrite},
    task::JoinSet,
};

use super::{Download, Failure, Role, Task, TestCase, hq, params::Stack};

impl Stack {
    /// Returns the reason why it cannot do a case, if it cannot.
    pub(super) const fn lack(self, role: Role, case: TestCase) -> Option<&'static str> {
        if matches!(self, Self::Quiche) && !cfg!(feature = "quiche") {
            return Some("this program was built without the feature quiche");
        }
        match (self, case) {
            (Self::Hybriq, _)
            | (
                _,
                TestCase::Transfer
                | TestCase::MultiConnect
                | TestCase::Retry
                | TestCase::Resumption
                | TestCase::PostQuantum
                | TestCase::PostQuantumRetry,
            )
            | (Self::Quinn | Self::Quiche, TestCase::ZeroRtt)
            | (Self::Quinn | Self::S2nQuic, TestCase::Ecn)
            | (Self::Quinn, TestCase::ChaCha20) => None,
            // BoringSSL's clients offer all suites of TLS 1.3.
            (Self::Quiche, TestCase::ChaCha20) if matches!(role, Role::Server) => None,
            (Self::Quinn, TestCase::KeyUpdate) if matches!(role, Role::Client) => None,
            _ => Some("the library, or our program for it, cannot do the case"),
        }
    }
}

impl Task {
    /// Does the work with the library that was asked for.
    pub(super) async fn run_on(self, stack: Stack) -> Result<(), Failure> {
        match (stack, self.role) {
            (Stack::Hybriq, Role::Client) => self.download().await,
            (Stack::Hybriq, Role::Server) => self.serve().await,
            (Stack::Quinn, Role::Client) => self.download_by_quinn().await,
            (Stack::Quinn, Role::Server) => self.serve_by_quinn().await,
            #[cfg(feature = "quiche")]
            (Stack::Quiche, Role::Client) => self.download_by_quiche().await,
            #[cfg(feature = "quiche")]
            (Stack::Quiche, Role::Server) => self.serve_by_quiche().await,
            #[cfg(not(feature = "quiche"))]
            (Stack::Quiche, _) => Err("this program was built without the feature quiche".into()),
            (Stack::S2nQuic, Role::Client) => self.download_by_s2n_quic().await,
            (Stack::S2nQuic, Role::Server) => self.serve_by_s2n_quic().await,
        }
    }

    /// Returns the downloads as they are shared among connections.
    fn connections<'a>(&self, downloads: &'a [Download]) -> Vec<&'a [Download]> {
        match self.case {
            TestCase::MultiConnect => downloads.chunks(1).collect(),
            TestCase::Resumption | TestCase::ZeroRtt => {
                let (first, rest) = downloads.split_at(1.min(downloads.len()));
                vec![first, rest]
            }
            _ => vec![downloads],
        }
    }
}

/// Begins a download on a stream.
fn begin<S, R>(
    tasks: &mut JoinSet<Result<(), String>>,
    (mut send, recv): (S, R),
    download: &Download,
) where
    S: AsyncWrite + Unpin + Send + 'static,
    R: AsyncRead + Unpin + Send + 'static,
{
    let Download { uri, to } = download.clone();
    tasks.spawn(async move {
        let work = async {
            // s2n-quic waits for the acknowledgement of what was sent.
            hq::ask(&mut send, uri.path()).await?;
            hq::save(recv, &to).await
        };
        let done: Result<(), Failure> = work.await;
        done.map_err(|error| format!("{}: {error}", to.display()))
    });
}

/// Waits for all downloads.
async fn finish(mut tasks: JoinSet<Result<(), String>>) -> Result<(), Failure> {
    while let Some(saved) = tasks.join_next().await {
        saved??;
    }
    Ok(())
}
