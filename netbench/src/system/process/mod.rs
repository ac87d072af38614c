//! A process that exchanges lines of JSON: a child over pipes, or one on another machine.

pub(crate) mod pipe;

use std::pin::Pin;
use std::process::Stdio;
use std::task::{Context, Poll};

use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncWrite, AsyncWriteExt, BufReader, Lines};
use tokio::process::{Child, Command};

use crate::system::failure::Failure;

type From = Lines<BufReader<Box<dyn AsyncRead + Unpin>>>;

/// A child process of this binary, or one on another host. Dropping it ends it.
pub(crate) struct Process {
    name: String,
    child: Option<Child>,
    to: Box<dyn AsyncWrite + Unpin>,
    from: From,
}

impl Process {
    /// Starts a child that gets its part as its first line.
    pub(crate) async fn start<S: Serialize>(name: &'static str, spec: &S) -> Result<Self, Failure> {
        let mut process = Self::spawn(name, &[])?;
        process.tell(spec).await?;
        Ok(process)
    }

    /// Starts a child that gets its part on its command line.
    pub(crate) fn spawn(name: &'static str, args: &[String]) -> Result<Self, Failure> {
        let mut command = Command::new(std::env::current_exe()?);
        command
            .arg(name)
            .args(args)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true);
        // Ctrl-C on a terminal reaches the whole group, but the parent decides.
        command.process_group(0);
        let mut child = command
            .spawn()
            .map_err(|error| format!("cannot start the `{name}` process: {error}"))?;
        let (Some(to), Some(from)) = (child.stdin.take(), child.stdout.take()) else {
            return Err("a child process without its pipes".into());
        };
        Ok(Self {
            child: Some(child),
            ..Self::over(format!("the `{name}` process"), from, to)
        })
    }

    /// Connects to a process that exists already; `name` is used in failures.
    pub(crate) fn over(
        name: String,
        from: impl AsyncRead + Unpin + 'static,
        to: impl AsyncWrite + Unpin + 'static,
    ) -> Self {
        let from: Box<dyn AsyncRead + Unpin> = Box::new(from);
        Self {
            name,
            child: None,
            to: Box::new(to),
            from: BufReader::new(from).lines(),
        }
    }

    pub(crate) async fn tell<T: Serialize>(&mut self, message: &T) -> Result<(), Failure> {
        let mut line = serde_json::to_vec(message)?;
        line.push(b'\n');
        let told = match self.to.write_all(&line).await {
            Ok(()) => self.to.flush().await,
            failed => failed,
        };
        if told.is_err() {
            // The process is gone; its last line gives the reason.
            return Err(match self.receive::<serde_json::Value>().await {
                Ok(_) => self.out_of_turn(),
                Err(failure) => failure,
            });
        }
        Ok(())
    }

    /// Waits for its next message. Cancel safe.
    pub(crate) async fn receive<T: DeserializeOwned>(&mut self) -> Result<T, Failure> {
        let line = self.from.next_line().await;
        self.understand(line).await
    }

    /// Polls for the next line, for callers that listen to several. Pass it to
    /// [`Self::understand`].
    pub(crate) fn poll_line(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<std::io::Result<Option<String>>> {
        Pin::new(&mut self.from).poll_next_line(cx)
    }

    /// Parses a line; `None` means that there are no more.
    pub(crate) async fn understand<T: DeserializeOwned>(
        &mut self,
        line: std::io::Result<Option<String>>,
    ) -> Result<T, Failure> {
        let Self { name, child, .. } = self;
        decode::<Result<T, String>>(name, child.as_mut(), line)
            .await?
            .map_err(Into::into)
    }

    /// Returns the next line of a child that reports failures on standard error.
    pub(crate) async fn read<T: DeserializeOwned>(&mut self) -> Result<T, Failure> {
        let line = self.from.next_line().await;
        decode(&self.name, self.child.as_mut(), line).await
    }

    pub(crate) fn out_of_turn(&self) -> Failure {
        format!("{} spoke out of turn", self.name).into()
    }
}

async fn decode<T: DeserializeOwned>(
    name: &str,
    child: Option<&mut Child>,
    line: std::io::Result<Option<String>>,
) -> Result<T, Failure> {
    match (line, child) {
        (Ok(Some(line)), _) => serde_json::from_str(&line)
            .map_err(|error| format!("{name} said what is not understood: {error}").into()),
        (Ok(None), Some(child)) => {
            let status = child.wait().await?;
            Err(format!("{name} ended early ({status})").into())
        }
        (Ok(None), None) => Err(format!("{name} ended the conversation").into()),
        (Err(error), _) => Err(format!("{name} is gone: {error}").into()),
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncWriteExt, BufReader, split};

    use super::Process;

    #[tokio::test(flavor = "current_thread")]
    async fn the_other_end_may_be_anything_that_carries_lines() {
        let (ours, mut theirs) = tokio::io::duplex(100);
        let (from, to) = split(ours);
        let mut process = Process::over("host:1".to_owned(), BufReader::new(from), to);
        process.tell(&7).await.unwrap();
        theirs
            .write_all(b"{\"Ok\":[1,2]}\n{\"Err\":\"no room\"}\n{\n")
            .await
            .unwrap();
        assert_eq!(process.receive::<(u8, u8)>().await.unwrap(), (1, 2));
        let refused = process.receive::<u8>().await.unwrap_err();
        assert_eq!(refused.to_string(), "no room");
        let garbled = process.receive::<u8>().await.unwrap_err();
        assert!(garbled.to_string().starts_with("host:1 said what is not"));
        drop(theirs);
        let gone = process.receive::<u8>().await.unwrap_err();
        assert_eq!(gone.to_string(), "host:1 ended the conversation");
    }
}
