//! Every pair of implementations against every case, as a table.

use std::io::{self, Write};

use hybriq::error::Printable;

use crate::{
    Peer,
    cases::{self, Case, Pair, Problem},
};

/// Runs `cases` for every pair of `peers` and writes a row per pair, then the reasons of failures.
/// Returns true if all passed.
///
/// # Errors
/// An error of `out`.
pub async fn run(
    peers: &[Box<dyn Peer>],
    cases: &[Case],
    out: &mut (dyn Write + Send),
) -> io::Result<bool> {
    let mut problems = Vec::new();
    for (number, case) in cases.iter().enumerate() {
        writeln!(out, "{:>3}  {}", number + 1, sentence(case))?;
    }
    write!(out, "\n{:<34}", "client → server")?;
    for number in 1..=cases.len() {
        write!(out, "{number:>3}")?;
    }
    writeln!(out)?;
    for client in peers {
        for server in peers {
            let pair = Pair {
                client: &**client,
                server: &**server,
            };
            let names = format!("{} → {}", client.name(), server.name());
            write!(out, "{names:<34}")?;
            for case in cases {
                let mark = match case.run(pair).await {
                    Ok(()) => "✓",
                    Err(Problem::NotApplicable(_)) => "·",
                    Err(problem) => {
                        problems.push(format!("{names}: {}: {problem}", sentence(case)));
                        "✗"
                    }
                };
                write!(out, "{mark:>3}")?;
                out.flush()?;
            }
            writeln!(out)?;
        }
    }
    for problem in &problems {
        writeln!(out, "✗ {}", Printable(problem))?;
    }
    Ok(problems.is_empty())
}

/// Returns the cases whose name contains `part`.
pub fn select(part: &str) -> Vec<Case> {
    cases::ALL
        .iter()
        .filter(|case| sentence(case).contains(part))
        .copied()
        .collect()
}

/// Returns the name of a case as it is printed.
pub fn sentence(case: &Case) -> String {
    case.name.to_lowercase().replace('_', " ")
}
