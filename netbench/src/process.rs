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
    pub(crate) async fn start<S: Serialize>(name: &'static str, spec: &S) -> Result<Self, Failure> {
        let mut child = Command::new(std::env::current_exe()?)
            .arg(name)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()?;
        let (Some(to), Some(from)) = (child.stdin.take(), child.stdout.take()) else {
            return Err("a child process without its pipes".into());
        };
        let mut process = Self {
            name,
            child,
            to,
            from: BufReader::new(from).lines(),
        };
        process.tell(spec).await?;
        Ok(process)
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
        let Some(line) = self.from.next_line().await? else {
            let status = self.child.wait().await?;
            return Err(format!("the `{}` process ended early ({status})", self.name).into());
        };
        match serde_json::from_str::<Result<T, String>>(&line)? {
            Ok(message) => Ok(message),
            Err(failure) => Err(failure.into()),
        }
    }

    pub(crate) fn out_of_turn(&self) -> Failure {
        format!("the `{}` process spoke out of turn", self.name).into()
    }
}
