//! The table in the docs is what the code gives today.

use hybriq_sim::{
    Rng,
    matrix::{CONTROLLERS, Path, row, title},
};

const DOCUMENT: &str = include_str!("../../evidence/congestion.md");

/// Paths compared. Those that carry many datagrams are left to the command that writes the table.
const SAMPLES: usize = 12;
const MOST_DATAGRAMS: u64 = 10_000;

#[test]
fn a_sample_of_the_documented_table_is_what_the_code_gives() {
    let mut affordable: Vec<_> = Path::all()
        .filter(|path| path.datagrams() <= MOST_DATAGRAMS)
        .collect();
    let mut rng = Rng::new(2);
    for _ in 0..SAMPLES {
        let path = affordable.swap_remove(rng.below(affordable.len() as u64) as usize);
        let outcomes = CONTROLLERS
            .iter()
            .map(|(_, congestion)| path.run(congestion))
            .collect::<Vec<_>>();
        let wanted = row(path, &outcomes);
        let (_, section) = DOCUMENT.split_once(&title(path)).unwrap();
        let section = section.split("\n#").next().unwrap();
        assert!(
            section.lines().any(|line| line == wanted),
            "{path:?} gives\n{wanted}\nand evidence/congestion.md has\n{section}\n\
             Generate it anew: cargo run --release -p hybriq --example congestion_table"
        );
    }
}

#[test]
fn every_path_has_its_line() {
    let lines = DOCUMENT.lines().filter(|line| {
        let cells = line.matches('|').count();
        line.contains("bit/s, ") && cells == CONTROLLERS.len() + 2
    });
    assert_eq!(lines.count(), Path::all().count());
}
