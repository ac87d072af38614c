//! Standard output and standard error, whose reader may be gone.

use std::io::{self, ErrorKind, StdoutLock, Write, stderr, stdout};

use crate::Failure;

/// Prints to standard output. It is no failure if a reader such as `head` has left.
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

/// Writes one line to standard error, if anybody still reads it.
pub(crate) fn complain(line: &str) {
    let _ = writeln!(stderr(), "netbench: {line}");
}

/// Returns the width of the terminal in columns; `None` if standard output is none.
pub(crate) fn width() -> Option<usize> {
    let (_, columns) = console::Term::stdout().size_checked()?;
    Some(columns.into())
}
