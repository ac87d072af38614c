//! The report as one page for a browser, without anything from elsewhere.

use std::fmt::Write as _;

use super::{Line, Outcome, Report, Step};

const STYLE: &str = include_str!("page.css");
const SCRIPT: &str = include_str!("page.js");

impl Report {
    /// Returns the page. Its links to captures and logs are right where it lies beside them.
    pub fn html(&self) -> String {
        let mut page = format!(
            "<!doctype html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n\
             <meta name=\"viewport\" content=\"width=device-width\">\n\
             <title>Interoperability of hybriq</title>\n<style>\n{STYLE}</style>\n\
             <main>\n<h1>Interoperability of hybriq</h1>\n<p>{}</p>\n",
            escaped(&self.summary())
        );
        page += "<p>A verdict is taken from a capture of the link, decrypted with the key log. \
                 Point at a cell for what was measured; click or tap it to keep that, with links to its \
                 captures and logs, to which Enter leads.</p>\n";
        self.write_grid(&mut page);
        page += "<p id=\"measured\" aria-live=\"polite\"></p>\n";
        self.write_failures(&mut page);
        page += "<h2>Versions</h2>\n<ul>\n";
        for (name, version) in &self.versions {
            // Writing into a text does not fail.
            let _ = writeln!(page, "<li>{} {}</li>", escaped(name), escaped(version));
        }
        let _ = write!(
            page,
            "</ul>\n</main>\n<script>\n{SCRIPT}</script>\n</html>\n"
        );
        page
    }

    fn write_grid(&self, page: &mut String) {
        *page += "<div class=\"grid\"><table>\n<thead><tr><th>client</th><th>server</th>";
        for (name, letters) in &self.cases {
            let _ = write!(
                page,
                "<th title=\"{}\">{}</th>",
                escaped(name),
                escaped(letters)
            );
        }
        *page += "</tr></thead>\n<tbody>\n";
        for (client, server) in self.pairs() {
            let _ = write!(
                page,
                "<tr><th>{}</th><th>{}</th>",
                escaped(client),
                escaped(server)
            );
            for (case, _) in &self.cases {
                match self.line(client, server, case) {
                    Some(line) => write_cell(page, line),
                    None => *page += "<td></td>",
                }
            }
            *page += "</tr>\n";
        }
        *page += "</tbody></table></div>\n<ul class=\"key\">";
        for outcome in [
            Outcome::Passed,
            Outcome::Failed,
            Outcome::Hung,
            Outcome::Unsupported,
            Outcome::Skipped,
        ] {
            let (letter, class) = look(outcome);
            let name = outcome.name().to_lowercase();
            let _ = write!(
                page,
                "<li><span class=\"{class}\">{letter}</span> {name}</li>"
            );
        }
        *page += "</ul>\n";
    }

    fn write_failures(&self, page: &mut String) {
        if self.bad().next().is_none() {
            *page += "<p>Nothing failed.</p>\n";
            return;
        }
        *page += "<h2>Failures</h2>\n";
        for line in self.bad() {
            let logs = escaped(&line.logs);
            let _ = write!(
                page,
                "<details id=\"{logs}\"><summary>{}: {}</summary>\n\
                 <p>Captures: <a href=\"{logs}/client/link.pcap\">client</a>, \
                 <a href=\"{logs}/server/link.pcap\">server</a>. \
                 Output: <a href=\"{logs}/client/output.log\">client</a>, \
                 <a href=\"{logs}/server/output.log\">server</a>.",
                escaped(&line.title()),
                escaped(&line.text)
            );
            for end in qlogs(line) {
                let _ = write!(
                    page,
                    " <a href=\"{logs}/{end}/qlog/\">qlog of the {end}</a>."
                );
            }
            *page += "</p>\n";
            write_diagram(page, &line.steps);
            *page += "</details>\n";
        }
    }
}

/// Returns the letter and the class of an outcome.
const fn look(outcome: Outcome) -> (&'static str, &'static str) {
    match outcome {
        Outcome::Passed => ("✓", "passed"),
        Outcome::Failed => ("✗", "failed"),
        Outcome::Hung => ("H", "hung"),
        Outcome::Unsupported => ("–", "unsupported"),
        Outcome::Skipped => ("·", "skipped"),
    }
}

fn write_cell(page: &mut String, line: &Line) {
    let (letter, class) = look(line.outcome);
    let mut measured = format!("{}: {}", line.title(), line.outcome.name().to_lowercase());
    if !line.text.is_empty() {
        measured = format!("{measured}, {}", line.text);
    }
    let measured = escaped(&measured);
    let cell = if line.outcome.is_bad() {
        format!("<a href=\"#{}\">{letter}</a>", escaped(&line.logs))
    } else {
        letter.to_owned()
    };
    let logs = match line.outcome {
        Outcome::Skipped => String::new(),
        _ => format!(
            " data-logs=\"{}\" data-qlogs=\"{}\"",
            escaped(&line.logs),
            qlogs(line).join(" ")
        ),
    };
    let _ = write!(
        page,
        "<td class=\"{class}\" tabindex=\"0\" title=\"{measured}\"{logs}>{cell}</td>"
    );
}

/// Returns the ends that write qlog files: hybriq.
fn qlogs(line: &Line) -> Vec<&'static str> {
    let ends = [("client", &line.client), ("server", &line.server)];
    let ours = ends
        .into_iter()
        .filter(|(_, peer)| peer.starts_with("hybriq"));
    ours.map(|(end, _)| end).collect()
}

/// Draws the datagrams between two lines, as a table that a reader of a screen can read.
fn write_diagram(page: &mut String, steps: &[Step]) {
    if steps.is_empty() {
        *page += "<p>No datagram was seen.</p>\n";
        return;
    }
    *page += "<table class=\"steps\">\n<thead><tr><th>ms</th><th>client</th><th></th>\
              <th>server</th></tr></thead>\n";
    for Step {
        at,
        from_client,
        arrived,
        left_out,
        text,
    } in steps
    {
        if *left_out > 0 {
            let _ = writeln!(
                page,
                "<tr><td></td><td colspan=\"3\">{left_out} datagrams are left out</td></tr>"
            );
        }
        let arrow = match (from_client, arrived) {
            (true, true) => "───▶",
            (true, false) => "──✗ lost",
            (false, true) => "◀───",
            (false, false) => "lost ✗──",
        };
        let text = escaped(text);
        let (client, server) = if *from_client {
            (text.as_str(), "")
        } else {
            ("", text.as_str())
        };
        let _ = writeln!(
            page,
            "<tr><td>{at:.1}</td><td>{client}</td><td>{arrow}</td><td>{server}</td></tr>"
        );
    }
    *page += "</table>\n";
}

fn escaped(text: &str) -> String {
    let text = text.replace('&', "&amp;").replace('<', "&lt;");
    text.replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testbed::report::tests::report;

    #[test]
    fn a_failure_has_its_reason_its_datagrams_and_its_logs() {
        let page = report(&[
            ("handshake", Outcome::Passed, "12 ms"),
            ("retry", Outcome::Failed, "no <Retry> & \"token\""),
        ])
        .html();
        assert!(page.contains("hybriq → aioquic, handshake: passed, 12 ms"));
        assert!(page.contains("no &lt;Retry&gt; &amp; &quot;token&quot;"));
        assert!(page.contains("Initial 0: CRYPTO") && page.contains("✗ lost"));
        assert!(page.contains("7 datagrams are left out"));
        assert!(page.contains("hybriq_aioquic/retry/client/link.pcap"));
        assert!(page.contains("href=\"hybriq_aioquic/retry/client/qlog/\""));
        assert!(page.contains("data-logs=\"hybriq_aioquic/handshake\" data-qlogs=\"client\""));
        assert!(
            !page.contains("http://") && !page.contains("https://"),
            "nothing is fetched"
        );
    }

    #[test]
    fn without_failures_the_page_says_so() {
        let page = report(&[("v2", Outcome::Passed, "")]).html();
        assert!(page.contains("Nothing failed."));
    }
}
