//! `netbench run peers`: one table of our stack next to the others, with goals.
//!
//! ```text
//!  parts: scenario and axes ─► Results ─┐
//!         scenario and axes ─► Results ─┼─► Comparison ─► table, JSON, CSV, one chart
//!         scenario and axes ─► Results ─┘
//! ```
//! Within a part the stacks take turns, so that a disturbance affects all of them alike. Server and
//! client are pinned, and every stack is measured with the same windows in both directions and the
//! same socket buffers.

mod args;
mod chart;
mod comparison;
mod markdown;
mod parts;
mod rows;

use std::io::Write as _;
use std::process::ExitCode;
use std::time::Instant;

use crate::report::outputs;
use crate::report::results::Results;
use crate::system::failure::Failure;
use crate::system::files;
use crate::system::terminal::{complain, print};

pub(crate) use args::Args;
pub(crate) use parts::Part;

use comparison::Comparison;

/// Bytes of each socket buffer that every stack asks for. The system's default loses datagrams of
/// 256 hellos at once, and some stacks leave it to the application to ask for more.
pub(crate) const SOCKET_BUFFER: u32 = 4 << 20;

/// Measures all parts, prints the table, and writes the files. `measure` runs one part.
pub(crate) async fn run(
    args: Args,
    measure: impl AsyncFn(&Part) -> Result<Results, Failure>,
) -> Result<ExitCode, Failure> {
    let paths = args.paths();
    paths.check()?;
    let mut parts = parts::all(args.size())?;
    let mut comparison = Comparison::begin(args.limit().is_some());
    let count = parts.len();
    let mut weight: u32 = parts.iter().map(|part| part.weight).sum();
    let started = Instant::now();
    for (index, part) in parts.iter_mut().enumerate() {
        part.repetitions = args.repetitions();
        part.time = args.limit().map(|limit| {
            let left = limit.saturating_sub(started.elapsed());
            left * part.weight / weight.max(1)
        });
        weight -= part.weight;
        complain(&format!("{}/{count} {}", index + 1, part.title));
        let results = measure(part).await;
        let was_interrupted = comparison.add(part.id, results);
        if was_interrupted {
            break;
        }
    }
    comparison.sum_up();
    finish(&comparison, &paths)
}

/// Prints first, so that a full disk costs nothing, and writes all files that can be written.
fn finish(comparison: &Comparison, paths: &args::Paths) -> Result<ExitCode, Failure> {
    let table = markdown::page(comparison);
    let json = serde_json::to_vec_pretty(comparison)?;
    let printed = print(|out| write!(out, "{table}"));
    let contents = [
        (&paths.markdown, table.into_bytes()),
        (&paths.csv, markdown::csv(comparison)),
        (&paths.svg, chart::svg(comparison).into_bytes()),
        (&paths.json, json.clone()),
    ];
    let mut failures: Vec<Failure> = printed.err().into_iter().collect();
    for (path, content) in contents {
        if let Err(error) = files::write(path, &content) {
            failures.push(format!("cannot write {}: {error}", path.display()).into());
        }
    }
    if !failures.is_empty() {
        return Err(outputs::told(&failures, files::rescue(&json)));
    }
    for path in paths.all() {
        complain(&format!("written: {}", path.display()));
    }
    Ok(if comparison.interrupted {
        ExitCode::from(outputs::INTERRUPTED)
    } else if comparison.complete {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

#[cfg(test)]
mod tests;
