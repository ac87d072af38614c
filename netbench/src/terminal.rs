//! Standard output and standard error, whose reader may be gone.

use std::io::{self, ErrorKind, StdoutLock, Write, stderr, stdout};

use crate::Failure;

/// Prints to standard output. A reader that has seen enough, as `head`, is no failure.
pub(crate) fn print(
    text: impl FnOnce(&mut StdoutLock<'static>) -> io::Result<()>,
) -> Result<(), Failure> {
    let mut out = stdout().lock();
    match text(&mut out).and_then(|()| out.flush()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            Err(format!("cannot print the results: {error}").into())
        }
        _ => Ok(()),
    }
}

/// Tells one line on standard error, if anybody still reads it.
pub(crate) fn complain(line: &str) {
    let _ = writeln!(stderr(), "netbench: {line}");
}

/// Columns of the terminal that standard output is; `None`: it is none.
pub(crate) fn width() -> Option<usize> {
    let (_, columns) = console::Term::stdout().size_checked()?;
    Some(columns.into())
}
