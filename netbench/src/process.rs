//! A child process and the pipes to it.

use std::process::Stdio;

use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};

use crate::Failure;

/// A child process of this binary. Dropping it ends it.
pub(crate) struct Process {
    name: &'static str,
    child: Child,
    to: ChildStdin,
    from: Lines<BufReader<ChildStdout>>,
}

impl Process {
    /// Starts a child that is told its part as its first line.
    pub(crate) async fn start<S: Serialize>(name: &'static str, spec: &S) -> Result<Self, Failure> {
        let mut process = Self::spawn(name, &[])?;
        process.tell(spec).await?;
        Ok(process)
    }

    /// Starts a child that is told its part on its command line.
    pub(crate) fn spawn(name: &'static str, args: &[String]) -> Result<Self, Failure> {
        let mut child = Command::new(std::env::current_exe()?)
            .arg(name)
            .args(args)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()?;
        let (Some(to), Some(from)) = (child.stdin.take(), child.stdout.take()) else {
            return Err("a child process without its pipes".into());
        };
        Ok(Self {
            name,
            child,
            to,
            from: BufReader::new(from).lines(),
        })
    }

    pub(crate) async fn tell<T: Serialize>(&mut self, message: &T) -> Result<(), Failure> {
        let mut line = serde_json::to_vec(message)?;
        line.push(b'\n');
        if self.to.write_all(&line).await.is_err() {
            // It is gone; its last line says why.
            return Err(match self.hear::<serde_json::Value>().await {
                Ok(_) => self.out_of_turn(),
                Err(failure) => failure,
            });
        }
        Ok(())
    }

    pub(crate) async fn hear<T: DeserializeOwned>(&mut self) -> Result<T, Failure> {
        self.read::<Result<T, String>>().await?.map_err(Into::into)
    }

    /// The next line of a child that tells its failures on standard error.
    pub(crate) async fn read<T: DeserializeOwned>(&mut self) -> Result<T, Failure> {
        read(self.name, &mut self.child, &mut self.from).await
    }

    /// Ends the child's standard input, and reads what it says to that.
    pub(crate) async fn last_words<T: DeserializeOwned>(self) -> Result<T, Failure> {
        let Self {
            name,
            mut child,
            to,
            mut from,
        } = self;
        drop(to);
        read(name, &mut child, &mut from).await
    }

    pub(crate) fn out_of_turn(&self) -> Failure {
        format!("the `{}` process spoke out of turn", self.name).into()
    }
}

async fn read<T: DeserializeOwned>(
    name: &str,
    child: &mut Child,
    from: &mut Lines<BufReader<ChildStdout>>,
) -> Result<T, Failure> {
    let Some(line) = from.next_line().await? else {
        let status = child.wait().await?;
        return Err(format!("the `{name}` process ended early ({status})").into());
    };
    Ok(serde_json::from_str(&line)?)
}
