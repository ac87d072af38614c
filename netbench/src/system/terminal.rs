//! Standard output and standard error, whose reader may be gone.
//!
//! Results and failures repeat what peers and other hosts wrote. Nothing else in this crate prints, so that
//! none of that steers the terminal.

use std::io::{self, ErrorKind, Write, stderr, stdout};

use hybriq::error::Printable;

use crate::system::failure::Failure;

/// Prints to standard output. It is no failure if a reader such as `head` has left.
pub(crate) fn print(text: impl FnOnce(&mut Vec<u8>) -> io::Result<()>) -> Result<(), Failure> {
    let mut bytes = Vec::new();
    text(&mut bytes)?;
    let mut out = stdout().lock();
    match write!(out, "{}", lines(&bytes)).and_then(|()| out.flush()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            Err(format!("cannot print the results: {error}").into())
        }
        _ => Ok(()),
    }
}

/// Writes one line to standard error, if anybody still reads it.
pub(crate) fn complain(line: &str) {
    let _ = writeln!(stderr(), "netbench: {}", Printable(line));
}

/// Returns text of several lines as it is printed.
fn lines(text: &[u8]) -> String {
    format!("{:#}", Printable(String::from_utf8_lossy(text)))
}

/// Returns the width of the terminal in columns; `None` if standard output is none.
pub(crate) fn width() -> Option<usize> {
    let (_, columns) = console::Term::stdout().size_checked()?;
    Some(columns.into())
}

#[cfg(test)]
mod tests {
    use super::lines;

    #[test]
    fn what_an_agent_says_of_its_machine_does_not_steer_the_terminal() {
        let told = "cpu\u{1b}]0;title\u{7}\r\nkernel\tload\n";
        let shown = "cpu\\u{1b}]0;title\\u{7}\\r\nkernel\tload\n";
        assert_eq!(lines(told.as_bytes()), shown);
    }
}
