//! The report as one self-contained HTML file.

use maud::{DOCTYPE, Markup, PreEscaped, html};

use super::document::Reproduction;
use super::section::{Value, Verdict};
use super::{Section, ValueTable, figures};
use crate::report::charts::{Figure, Place};
use crate::report::page::{POLICY, SCRIPT, STYLE};

const OWN_STYLE: &str = include_str!("page.css");

/// Returns the whole page.
pub(super) fn html(reproduction: &Reproduction) -> String {
    let sections = &reproduction.sections;
    html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                meta http-equiv="Content-Security-Policy" content=(POLICY);
                link rel="icon" href="data:,";
                title { "Published results, reproduced · netbench" }
                style { (PreEscaped(STYLE)) (PreEscaped(OWN_STYLE)) }
            }
            body {
                header.bar {
                    span.brand { "netbench" }
                    span.run { "reproduce" }
                    button #theme type="button" hidden aria-label="Switch between dark and light" {
                        span aria-hidden="true" { "◐" }
                    }
                }
                main {
                    (hero(reproduction))
                    @for section in sections { (chapter(section)) }
                }
                footer { p { "Made by netbench of hybriq. This page is whole: it loads nothing." } }
                script { (PreEscaped(SCRIPT)) }
            }
        }
    }
    .into_string()
}

fn hero(reproduction: &Reproduction) -> Markup {
    let about = &reproduction.about;
    let sections = &reproduction.sections;
    let agree = count(sections, Verdict::Agrees);
    html! {
        section.hero {
            p.eyebrow { "Published results, reproduced" }
            h1.headline {
                @if sections.is_empty() { "Nothing has been measured yet." }
                @else { (agree) " of " (sections.len()) " experiments have the published shape." }
            }
            p.lead {
                "Each experiment was done again in kind, and its figures stand beside those that were \
                 published. Absolute figures belong to machines; what is compared is the shape: \
                 ratios, order, and where the time goes."
            }
            (warnings(reproduction))
            div.scroll {
                table.findings {
                    thead { tr { th { "experiment" } th { "shape" } th { "finding" } } }
                    tbody {
                        @for section in sections {
                            tr {
                                th { a href={ "#" (section.id) } { (section.title) } }
                                td { (badge(section.finding.verdict)) }
                                td { (section.finding.sentence) }
                            }
                        }
                    }
                }
            }
            p.meta {
                (about.machine.cpu) ", " (about.machine.cores) " cores, Linux " (about.machine.kernel)
                ", load " (format!("{:.1}", about.machine.load)) " · netbench " (about.netbench)
                @if let Some(git) = &about.git { " (" (git) ")" }
                ", " (about.build) " build · " (about.started)
                " · " code { (about.command.join(" ")) }
            }
        }
    }
}

fn count(sections: &[Section], verdict: Verdict) -> usize {
    let matching = sections.iter();
    matching
        .filter(|section| section.finding.verdict == verdict)
        .count()
}

fn warnings(reproduction: &Reproduction) -> Markup {
    html! {
        @if reproduction.about.build != "release" {
            div.warning.loud role="note" {
                strong { "Built without optimisation." }
                " These figures say nothing. Build with " code { "--release" } " and measure again."
            }
        }
        @if reproduction.quick {
            div.warning role="note" {
                strong { "A quick run: " }
                "few repetitions of few connections, with wide intervals. Without "
                code { "--quick" } " there are as many as were published."
            }
        }
        @if !reproduction.complete {
            div.warning role="note" {
                strong { "This report is incomplete." }
                " What is missing stands with each experiment."
            }
        }
    }
}

fn badge(verdict: Verdict) -> Markup {
    html! { span class={ "badge " (verdict.text()) } { (verdict.text()) } }
}

fn chapter(section: &Section) -> Markup {
    html! {
        article #(section.id) {
            section.experiment {
                p.eyebrow { (section.source.text) }
                h2 { (section.title) " " (badge(section.finding.verdict)) }
                @if !section.source.experiment.is_empty() {
                    p.lead { (section.source.experiment) }
                }
                p.finding { (section.finding.sentence) }
                @if !section.rule.is_empty() { p.rule { (section.rule) } }
                @if !section.problems.is_empty() {
                    div.warning role="note" {
                        strong { "Not all of it could be measured." }
                        ul { @for problem in &section.problems { li { (problem) } } }
                    }
                }
                div.beside {
                    @for table in &section.published { (self::table(table, "published")) }
                    @for table in &section.ours { (self::table(table, "ours")) }
                }
                @for figure in &figures::of(section) { (drawing(figure)) }
                @if !section.notes.is_empty() {
                    h3 { "How it was done here" }
                    ul.notes { @for note in &section.notes { li { (note) } } }
                }
            }
        }
    }
}

fn drawing(drawing: &Figure) -> Markup {
    html! {
        h3 { (drawing.title) }
        p.caption { (drawing.caption) }
        figure {
            div.wide { (drawing.svg(Place::Wide)) }
            div.narrow { (drawing.svg(Place::Narrow)) }
        }
    }
}

fn table(table: &ValueTable, kind: &str) -> Markup {
    html! {
        div class=(kind) {
            h3 { (table.title) }
            div.scroll {
                table {
                    thead {
                        tr {
                            th { (table.of) }
                            @for column in &table.columns {
                                th {
                                    (column.title)
                                    @if !column.unit.is_empty() { small { (column.unit) } }
                                }
                            }
                        }
                    }
                    tbody {
                        @for row in &table.rows {
                            tr {
                                th { (row.name) }
                                @for figure in &row.figures { (self::figure(figure)) }
                            }
                        }
                    }
                }
            }
        }
    }
}

fn figure(figure: &Value) -> Markup {
    let (text, interval) = figure.parts();
    html! {
        td title=[match figure { Value::Missing(why) if !why.is_empty() => Some(why), _ => None }] {
            (text)
            @if let Some(interval) = interval { small { (interval) } }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Reproduction, Section, ValueTable, html};
    use crate::experiments::reproduce::budget::{Length, QUICK};
    use crate::experiments::reproduce::section::{Finding, Source};

    #[test]
    fn everything_is_escaped_and_nothing_is_loaded() {
        let mut reproduction = Reproduction::begin(Length::Quick(QUICK));
        reproduction.sections.push(Section {
            id: "rate".to_owned(),
            title: "<b>Rate</b>".to_owned(),
            source: Source::default(),
            published: vec![
                ValueTable::new("Published", "group", &[("rate", "%")]).row("X", [92.0]),
            ],
            ours: Vec::new(),
            finding: Finding::of(true, "1 < 2 & \"so\""),
            notes: Vec::new(),
            rule: String::new(),
            problems: vec!["<script>alert(1)</script>".to_owned()],
            results: None,
        });
        let page = html(&reproduction);
        assert!(page.contains("&lt;b&gt;Rate&lt;/b&gt;") && page.contains("1 &lt; 2 &amp;"));
        assert!(!page.contains("<script>alert"));
        assert!(!page.contains("src=\"http") && !page.contains("url("));
        assert!(page.contains("1 of 1 experiments"));
    }
}
