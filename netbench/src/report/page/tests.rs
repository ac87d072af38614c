//! Tests of the HTML page.

use super::{Chapter, render};
use crate::report::results::Results;
use crate::synthetic;

fn parse(results: &serde_json::Value) -> Results {
    Results::parse(&results.to_string()).unwrap()
}

fn page(results: &Results) -> String {
    render("netbench", &[Chapter::new(results)]).into_string()
}

/// Every text in the file is as hostile as possible.
#[test]
fn nothing_in_a_file_becomes_markup() {
    let evil = "<script>alert(1)</script>\"'&";
    let mut results = parse(&synthetic::groups());
    results.scenario.name = evil.to_owned();
    results.scenario.description = evil.to_owned();
    results.scenario_id = evil.to_owned();
    results.problems = vec![evil.to_owned()];
    results.about.command = vec![evil.to_owned()];
    results.about.started = evil.to_owned();
    results.about.build = evil.to_owned();
    results.about.git = Some(evil.to_owned());
    results.about.machine.cpu = evil.to_owned();
    results
        .about
        .crates
        .insert(evil.to_owned(), evil.to_owned());
    for (index, cell) in results.cells.iter_mut().enumerate() {
        cell.name = format!("{evil}{index}");
        cell.cell.link = format!("{evil}{index}");
        cell.cell.params.insert(evil.to_owned(), 1);
        cell.left_out = Some(evil.to_owned());
        for repetition in &mut cell.repetitions {
            repetition.error = Some(evil.to_owned());
            repetition.negotiated.group = evil.to_owned();
            for kind in repetition.kinds.values_mut() {
                kind.outcomes.insert(evil.to_owned(), 3);
                kind.details.insert(evil.to_owned(), evil.to_owned());
            }
        }
    }
    for breakdown in &mut results.breakdowns {
        breakdown.certificate = evil.to_owned();
        breakdown.mode = evil.to_owned();
        for part in &mut breakdown.messages {
            part.name = evil.to_owned();
        }
    }
    let page = page(&results);
    assert_eq!(page.matches("<script").count(), 1, "the page's own");
    assert!(page.contains("&lt;script&gt;alert(1)&lt;/script&gt;"));
}

#[test]
fn problems_and_debug_builds_stand_before_everything_else() {
    let mut results = parse(&synthetic::groups());
    assert!(!page(&results).contains("class=\"warning"));
    results.about.build = "debug".to_owned();
    results.complete = false;
    results.problems = vec!["the server of MLKEM1024 died".to_owned()];
    let page = page(&results);
    let headline = page.find("<h1").unwrap();
    for text in [
        "without optimisation",
        "incomplete",
        "the server of MLKEM1024 died",
    ] {
        let place = page.find(text);
        assert!(place.is_some_and(|place| place < headline), "{text}");
    }
}

#[test]
fn the_headline_says_what_the_hybrid_costs() {
    let page = page(&parse(&synthetic::groups()));
    let headline = page
        .split("<h1")
        .nth(1)
        .and_then(|rest| rest.split("</h1>").next())
        .unwrap();
    assert!(
        headline.contains("X25519MLKEM768 costs this server"),
        "{headline}"
    );
    assert!(
        headline.contains("more CPU a connection than X25519 ("),
        "{headline}"
    );
}

#[test]
fn a_wide_interval_is_not_called_no_difference() {
    let mut results = parse(&synthetic::groups());
    for cell in &mut results.cells {
        let cpu = cell.summary.get_mut("server_cpu_us").unwrap();
        (cpu.low, cpu.high) = (cpu.median * 0.5, cpu.median * 2.0);
    }
    assert!(page(&results).contains("This run cannot tell X25519MLKEM768 from X25519"));
}

#[test]
fn whatever_results_hold_they_make_a_page() {
    let whole = synthetic::groups();
    let mut few = whole.clone();
    few["cells"].as_array_mut().unwrap().truncate(1);
    let pages = [
        synthetic::results("nothing", Vec::new()),
        synthetic::groups_at(1, 1),
        synthetic::groups_at(0, 1),
        few,
    ];
    for results in &pages {
        assert!(page(&parse(results)).contains("</html>"));
    }
}

#[test]
fn figures_that_are_none_too_small_or_too_large_make_a_page_without_nan() {
    for odd in [f64::NAN, f64::INFINITY, 0.0, -1.0, 1e-300, 1e300] {
        let mut results = parse(&synthetic::groups());
        for cell in &mut results.cells {
            for summary in cell.summary.values_mut() {
                (summary.median, summary.low, summary.high) = (odd, odd, odd);
            }
            for repetition in &mut cell.repetitions {
                repetition.elapsed_us = odd;
                repetition
                    .metrics
                    .values_mut()
                    .for_each(|value| *value = odd);
                for sample in &mut repetition.samples {
                    (sample.at_ms, sample.lasted_ms) = (odd, odd);
                    sample.connections = u64::MAX;
                }
            }
        }
        for breakdown in &mut results.breakdowns {
            breakdown.total_us.median = odd;
            breakdown
                .messages
                .iter_mut()
                .for_each(|part| part.us.median = odd);
        }
        let page = page(&results);
        for word in ["NaN", "inf"] {
            let found = page.split(['"', '>', '<', ' ']).any(|text| text == word);
            assert!(!found, "{odd}: {word}");
        }
    }
}

#[test]
fn the_page_refers_to_nothing_outside_of_itself() {
    let page = page(&parse(&synthetic::groups()));
    let outside = page.matches("http://").count() + page.matches("https://").count();
    assert_eq!(
        outside,
        page.matches("xmlns=\"http://www.w3.org/2000/svg\"").count()
    );
    assert!(!page.contains("@import") && !page.contains("url("));
}

#[test]
fn work_of_others_is_told_at_the_top_and_marked_at_each_cell() {
    let mut results = parse(&synthetic::groups());
    assert!(!page(&results).contains("Disturbed."));
    results.cells[1].repetitions[0].other_cores = Some(1.25);
    results.cells[1].summarize();
    let page = page(&results);
    let name = format!("{} !</th>", results.cells[1].name);
    assert!(page.contains("Disturbed.") && page.contains("up to 1.2 cores"));
    assert!(page.contains(&name), "{name}");
}

#[test]
fn a_page_of_breakdowns_has_no_empty_sections() {
    let mut results = parse(&synthetic::groups());
    results.cells = Vec::new();
    results
        .scenario
        .params
        .insert("connections".to_owned(), 200);
    let page = page(&results);
    for empty in ["0 cells", "0 repetitions", "outcomes-0", "everything-0"] {
        assert!(!page.contains(empty), "{empty}");
    }
    assert!(page.contains("200 handshakes each"), "{page}");
}
