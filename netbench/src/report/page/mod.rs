//! The report as a page: one self-contained HTML file, which needs neither a network nor scripts.
//!
//! ```text
//!  Results ─► Chapter ─┬─► findings  what it comes to, in words
//!                      ├─► figures   charts, each with its table
//!                      └─► tables    outcomes, everything, how it was measured
//! ```
//! The templates escape everything; the page forbids itself to load anything.

mod args;
pub(crate) mod document;
mod findings;
mod sections;
mod tables;

use std::path::Path;

use maud::{DOCTYPE, Markup, PreEscaped, html};

use crate::report::charts::Table;
use crate::report::results::Results;
use crate::system::failure::Failure;
use crate::system::files;

pub(crate) use args::Report;

/// Results with their texts.
pub(crate) struct Chapter<'a> {
    pub(crate) title: String,
    /// Introduction, a string per paragraph; may be empty.
    pub(crate) intro: Vec<String>,
    pub(crate) results: &'a Results,
    /// Additional tables, such as published figures, each with its title.
    pub(crate) beside: Vec<(String, Table)>,
}

impl<'a> Chapter<'a> {
    /// Returns a chapter with the scenario's own name and description.
    pub(crate) fn new(results: &'a Results) -> Self {
        let scenario = &results.scenario;
        let intro = Some(scenario.description.clone()).filter(|text| !text.is_empty());
        Self {
            title: match scenario.name.as_str() {
                "" => "Results".to_owned(),
                name => name.to_owned(),
            },
            intro: intro.into_iter().collect(),
            results,
            beside: Vec::new(),
        }
    }
}

/// Writes the page of one run.
pub(crate) fn write(results: &Results, path: &Path) -> Result<(), Failure> {
    write_chapters("netbench", &[Chapter::new(results)], path)
}

/// Writes a page of several runs, each a chapter.
pub(crate) fn write_chapters(
    title: &str,
    chapters: &[Chapter<'_>],
    path: &Path,
) -> Result<(), Failure> {
    save(&render(title, chapters), path)
}

const STYLE: &str = include_str!("page.css");
const SCRIPT: &str = include_str!("page.js");

/// Policy that forbids loading anything; style and script are part of the page.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; \
                      img-src data:; base-uri 'none'; form-action 'none'";

fn save(page: &Markup, path: &Path) -> Result<(), Failure> {
    files::write(path, page.0.as_bytes()).map_err(|error| {
        format!(
            "cannot write {}: {error}; choose another path",
            path.display()
        )
        .into()
    })
}

fn render(title: &str, chapters: &[Chapter<'_>]) -> Markup {
    let (head_line, bar) = match chapters {
        [only] => (format!("{} · {}", only.title, title), only.title.as_str()),
        _ => (title.to_owned(), title),
    };
    let body = html! {
        @if chapters.len() > 1 {
            h1 { (title) }
            nav.contents aria-label="Chapters" {
                @for (index, chapter) in chapters.iter().enumerate() {
                    a href={ "#chapter-" (index) } { (chapter.title) }
                }
            }
        }
        @for (index, chapter) in chapters.iter().enumerate() {
            (sections::chapter(chapter, index, chapters.len()))
        }
    };
    frame(&head_line, bar, &body)
}

/// Returns the whole page around its content.
fn frame(title: &str, bar: &str, content: &Markup) -> Markup {
    html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                meta http-equiv="Content-Security-Policy" content=(POLICY);
                link rel="icon" href="data:,";
                title { (title) }
                style { (PreEscaped(STYLE)) }
            }
            body {
                header.bar {
                    span.brand { "netbench" }
                    span.run { (bar) }
                    button #theme type="button" hidden aria-label="Switch between dark and light" {
                        span aria-hidden="true" { "◐" }
                    }
                }
                main { (content) }
                footer {
                    p { "Made by netbench of hybriq. This page is whole: it loads nothing." }
                }
                script { (PreEscaped(SCRIPT)) }
            }
        }
    }
}

#[cfg(test)]
mod tests;
