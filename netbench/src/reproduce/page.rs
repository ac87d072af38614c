//! The report as one HTML file that needs nothing else.

use std::fmt::Write as _;

use super::document::Reproduction;
use super::{Section, Table};

/// The whole page.
pub(super) fn html(reproduction: &Reproduction) -> String {
    let mut out =
        String::from("<!doctype html><meta charset=utf-8><title>netbench reproduce</title>");
    for section in &reproduction.sections {
        write_section(&mut out, section);
    }
    out
}

fn write_section(out: &mut String, section: &Section) {
    let _ = write!(
        out,
        "<section id={}><h2>{}</h2><p>{}</p>",
        escape(&section.id),
        escape(&section.title),
        escape(&section.finding.sentence)
    );
    for table in section.published.iter().chain(&section.ours) {
        write_table(out, table);
    }
    out.push_str("</section>");
}

fn write_table(out: &mut String, table: &Table) {
    let _ = write!(out, "<table><caption>{}</caption>", escape(&table.title));
    for row in &table.rows {
        let _ = write!(out, "<tr><th>{}", escape(&row.name));
        for figure in &row.figures {
            let _ = write!(out, "<td>{}", escape(&figure.text()));
        }
    }
    out.push_str("</table>");
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
}
