//! A chapter of the page, from its headline to the machine.

use maud::{Markup, html};

use super::Chapter;
use super::findings::{Card, findings};
use super::tables;
use crate::report::charts::figures;
use crate::report::charts::{Figure, Place, Table};
use crate::report::results::Results;

/// Returns the chapter with that index of a page with `chapters` chapters.
pub(super) fn chapter(chapter: &Chapter<'_>, index: usize, chapters: usize) -> Markup {
    let results = chapter.results;
    let findings = findings(results);
    let figures = figures::all(results);
    html! {
        article #{ "chapter-" (index) } {
            (warnings(results))
            section.hero {
                p.eyebrow { (chapter.title) }
                @if chapters > 1 { h2.headline { (findings.headline) } } @else { h1.headline { (findings.headline) } }
                @for line in &chapter.intro { p.lead { (line) } }
                @if !findings.more.is_empty() {
                    p.lead { @for line in &findings.more { (line) " " } }
                }
                (cards(&findings.cards))
                p.meta { (tables::about_line(results)) }
            }
            @for (title, table) in &chapter.beside {
                section { h2 { (title) } (table.html(title)) }
            }
            (contents(results, &figures, index))
            @for figure in &figures { (section(figure, index)) }
            @if !results.cells.is_empty() {
                (tables::outcomes(results, index))
                (tables::everything(results, index))
            }
            (tables::method(results, index))
        }
    }
}

/// Returns the warnings that a reader must see first.
fn warnings(results: &Results) -> Markup {
    let is_debug = results.about.build != "release";
    html! {
        @if is_debug {
            div.warning.loud role="note" {
                strong { "Built without optimisation." }
                " These figures say nothing about the stacks. Build with " code { "--release" } " and measure again."
            }
        }
        @if let Some(noise) = results.noise() {
            div.warning role="note" {
                strong { "Disturbed." }
                " " (noise) "."
            }
        }
        @if !results.complete || !results.problems.is_empty() {
            div.warning role="note" {
                strong {
                    @if results.complete { "There were problems." }
                    @else { "These results are incomplete." }
                }
                @if results.problems.is_empty() {
                    " The run ended before everything was measured."
                } @else {
                    ul { @for problem in &results.problems { li { (problem) } } }
                }
            }
        }
    }
}

fn cards(cards: &[Card]) -> Markup {
    html! {
        @if !cards.is_empty() {
            div.cards {
                @for card in cards {
                    div.card {
                        p.label { (card.label) }
                        p.figure { (card.figure) }
                        p.note { (card.note) }
                    }
                }
            }
        }
    }
}

fn contents(results: &Results, figures: &[Figure], index: usize) -> Markup {
    html! {
        nav.contents aria-label="Sections" {
            @for figure in figures {
                a href={ "#" (figure.id) "-" (index) } { (figure.title) }
            }
            @if !results.cells.is_empty() {
                a href={ "#outcomes-" (index) } { "Outcomes" }
                a href={ "#everything-" (index) } { "Every figure" }
            }
            a href={ "#method-" (index) } { "How it was measured" }
        }
    }
}

/// Figures whose tables are read as often as their charts, and are open.
const OPEN: [&str; 2] = ["rate", "request-rate"];

fn section(figure: &Figure, index: usize) -> Markup {
    html! {
        section #{ (figure.id) "-" (index) } {
            h2 { (figure.title) }
            p.caption { (figure.caption) }
            figure {
                div.wide { (figure.svg(Place::Wide)) }
                div.narrow { (figure.svg(Place::Narrow)) }
            }
            @if OPEN.contains(&figure.id.as_str()) {
                h3 { "Percentiles of the samples, per second" }
                (figure.table.html(&figure.title))
            } @else {
                (folded(figure))
            }
        }
    }
}

fn folded(figure: &Figure) -> Markup {
    let Figure { title, table, .. } = figure;
    html! {
        @if *table != Table::default() {
            details {
                summary { "The figures as a table" }
                (table.html(title))
            }
        }
    }
}
