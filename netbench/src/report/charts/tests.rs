//! Tests of charts.

use super::figures;
use super::{Place, write_all};
use crate::report::results::Results;
use crate::synthetic;

fn parse(results: &serde_json::Value) -> Results {
    Results::parse(&results.to_string()).unwrap()
}

#[test]
fn every_figure_has_a_title_a_table_and_a_drawing_for_each_place() {
    let figures = figures::all(&parse(&synthetic::groups()));
    assert!(figures.len() >= 8);
    for figure in &figures {
        assert!(!figure.title.is_empty() && !figure.caption.is_empty());
        let width = figure.table.columns.len();
        assert!(!figure.table.rows.is_empty(), "{}", figure.id);
        assert!(
            figure
                .table
                .rows
                .iter()
                .all(|row| row.figures.len() == width),
            "{}",
            figure.id
        );
        for place in [Place::Wide, Place::Narrow, Place::Document] {
            let svg = figure.svg(place).into_string();
            assert!(
                svg.starts_with("<svg") && svg.ends_with("</svg>"),
                "{}",
                figure.id
            );
        }
    }
}

#[test]
fn stacks_are_also_compared_with_each_other() {
    let figures = figures::all(&parse(&synthetic::stacks()));
    let ids: Vec<&str> = figures.iter().map(|figure| figure.id.as_str()).collect();
    assert!(
        ids.contains(&"change-group") && ids.contains(&"change-stack"),
        "{ids:?}"
    );
}

#[test]
fn a_document_has_colours_of_its_own_and_the_title() {
    for figure in figures::all(&parse(&synthetic::groups())) {
        let svg = figure.svg(Place::Document).into_string();
        assert!(!svg.contains("var("), "{}", figure.id);
        assert!(
            svg.contains(&format!(">{}</text>", figure.title)),
            "{}",
            figure.id
        );
    }
}

#[test]
fn every_chart_is_a_file() {
    let directory = std::env::temp_dir().join(format!("netbench-charts-{}", std::process::id()));
    let results = parse(&synthetic::groups());
    let written = write_all(&results, &directory).unwrap();
    let formats = if cfg!(feature = "png") { 2 } else { 1 };
    assert_eq!(written.len(), figures::all(&results).len() * formats);
    assert!(
        written
            .iter()
            .all(|path| path.metadata().is_ok_and(|file| file.len() > 500))
    );
    std::fs::remove_dir_all(directory).unwrap();
}

#[cfg(feature = "png")]
#[test]
fn a_picture_has_text_and_colours_without_any_font_of_the_system() {
    use resvg::tiny_skia::Pixmap;

    let figures = figures::all(&parse(&synthetic::groups()));
    let figure = figures.iter().find(|figure| figure.id == "bytes").unwrap();
    let svg = figure.svg(Place::Document).into_string();
    let count = |svg: &str| -> (usize, usize) {
        let pixels = Pixmap::decode_png(&super::canvas::png::render(svg).unwrap()).unwrap();
        let is = |wanted: [u8; 3]| {
            let pixels = pixels.pixels().iter();
            pixels
                .filter(|p| [p.red(), p.green(), p.blue()] == wanted)
                .count()
        };
        (is([0x16, 0x19, 0x1d]), is([0x2f, 0x5d, 0x8a]))
    };
    let (text, bars) = count(&svg);
    assert!(text > 500 && bars > 5000, "{text} {bars}");
    let (mute, _) = count(&svg.replace("<text", "<desc").replace("</text", "</desc"));
    assert!(text > mute + 500, "{text} {mute}");
}
