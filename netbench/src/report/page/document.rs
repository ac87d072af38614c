//! The page of a report of several measurements: its findings, then each with its tables.

use hybriq::Group;
use hybriq::tls::Suite;
use maud::{Markup, html};

use super::frame;
use crate::report::charts::{Figure, Place, Table, figures};
use crate::report::document::{Document, Section, Verdict};
use crate::report::results::{Breakdown, Results, Side};

/// Handshakes that are drawn where more are measured: those of the published table, each way a
/// handshake begins, and today's group.
const DRAWN: (Suite, [Group; 3]) = (
    Suite::Aes128GcmSha256,
    [Group::SECP256R1, Group::X25519, Group::X25519MLKEM768],
);

/// Number of breakdowns that one chart can show.
const MANY: usize = 16;

/// Returns the whole page.
pub(crate) fn html(document: &Document) -> String {
    let content = html! {
        (hero(document))
        @for section in &document.sections { (chapter(section)) }
    };
    let title = "Published results, reproduced · netbench";
    frame(title, &document.command, &content).into_string()
}

/// Returns the charts that show the subject of a section, in reading order.
fn charts(section: &Section) -> Vec<Figure> {
    let all: Vec<Figure> = section
        .results
        .iter()
        .flat_map(|results| figures::all(&drawn(results)))
        .collect();
    let named = section.charts.iter();
    named
        .filter_map(|id| all.iter().find(|figure| figure.id == *id).cloned())
        .collect()
}

fn drawn(results: &Results) -> Results {
    let is_drawn = |it: &&Breakdown| {
        let (suite, groups) = DRAWN;
        it.side == Side::Client && it.suite == suite && groups.contains(&it.group)
    };
    let mut results = results.clone();
    if results.breakdowns.len() > MANY {
        results.breakdowns = results
            .breakdowns
            .iter()
            .filter(is_drawn)
            .cloned()
            .collect();
    }
    results
}

fn hero(document: &Document) -> Markup {
    let about = &document.about;
    let sections = &document.sections;
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
            (warnings(document))
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

fn warnings(document: &Document) -> Markup {
    html! {
        @if document.about.build != "release" {
            div.warning.loud role="note" {
                strong { "Built without optimisation." }
                " These figures say nothing. Build with " code { "--release" } " and measure again."
            }
        }
        @if document.quick {
            div.warning role="note" {
                strong { "A quick run: " }
                "few repetitions of few connections, with wide intervals. Without "
                code { "--quick" } " there are as many as were published."
            }
        }
        @if !document.complete {
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
                @for figure in &charts(section) { (drawing(figure)) }
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

fn table(table: &Table, kind: &str) -> Markup {
    html! {
        div class=(kind) {
            h3 { (table.title) }
            (table.html(&table.title))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Document, Section, Table, html};
    use crate::report::document::Finding;

    #[test]
    fn everything_is_escaped_and_nothing_is_loaded() {
        let mut document = Document::begin("reproduce", true);
        let mut published = Table::new("Published", "group", &[("rate", "%")]);
        published.push("X", [92.0]);
        document.sections.push(Section {
            id: "rate".to_owned(),
            title: "<b>Rate</b>".to_owned(),
            published: vec![published],
            finding: Finding::of(true, "1 < 2 & \"so\""),
            problems: vec!["<script>alert(1)</script>".to_owned()],
            ..Section::default()
        });
        let page = html(&document);
        assert!(page.contains("&lt;b&gt;Rate&lt;/b&gt;") && page.contains("1 &lt; 2 &amp;"));
        assert!(!page.contains("<script>alert"));
        assert!(!page.contains("src=\"http") && !page.contains("url("));
        assert!(page.contains("1 of 1 experiments"));
    }
}
