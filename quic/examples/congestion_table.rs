//! Writes `quic/evidence/congestion.md`: the results of every congestion controller on every path.
//!
//! `cargo run --release -p hybriq --example congestion_table`, or with another file as argument. A few
//! minutes on two cores; the same text every time.

use std::{
    env, fs, io,
    path::PathBuf,
    sync::{
        Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
};

use hybriq_sim::matrix::{CONTROLLERS, Outcome, Path, Row, document};

fn main() -> io::Result<()> {
    let default = || PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("evidence/congestion.md");
    let file = env::args_os().nth(1).map_or_else(default, PathBuf::from);
    let rows = run_all();
    if let Some(folder) = file.parent() {
        fs::create_dir_all(folder)?;
    }
    fs::write(&file, document(&rows))?;
    println!("{}: {} paths", file.display(), rows.len());
    Ok(())
}

/// One run: the index of a path, the path, and the index of a controller.
type Run = (usize, Path, usize);

/// Runs everything on all cores, the longest first.
fn run_all() -> Vec<Row> {
    let paths: Vec<_> = Path::all().collect();
    let mut runs: Vec<Run> = paths
        .iter()
        .enumerate()
        .flat_map(|(row, &path)| (0..CONTROLLERS.len()).map(move |column| (row, path, column)))
        .collect();
    runs.sort_by_key(|(_, path, _)| std::cmp::Reverse(path.datagrams()));
    let (next, done) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    thread::scope(|scope| {
        for _ in 0..thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(|| {
                while let Some(&(row, path, column)) =
                    runs.get(next.fetch_add(1, Ordering::Relaxed))
                {
                    let outcome = path.run(&CONTROLLERS[column].1);
                    let mut done = done.lock().expect("no thread panicked");
                    done.push((row, column, outcome));
                    if done.len() % 100 == 0 {
                        eprintln!("{} of {}", done.len(), runs.len());
                    }
                }
            });
        }
    });
    collect(&paths, &done.into_inner().expect("no thread panicked"))
}

fn collect(paths: &[Path], done: &[(usize, usize, Outcome)]) -> Vec<Row> {
    let mut rows: Vec<Row> = paths
        .iter()
        .map(|&path| (path, [Outcome::default(); CONTROLLERS.len()]))
        .collect();
    for &(row, column, outcome) in done {
        rows[row].1[column] = outcome;
    }
    rows
}
