//! Colours and the widths of text.

/// A colour, by its meaning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ink {
    /// One of the compared things: a group, a stack.
    Series(usize),
    /// A part of a whole: client CPU, a message of the handshake.
    Part(usize),
    /// The rest of a whole.
    Rest,
    Text,
    Soft,
    Grid,
    Paper,
}

/// Number of series with their own colour; later ones repeat the colours, dashed.
pub(crate) const SERIES: usize = 8;

/// Colours that also colour-blind readers can distinguish (after Okabe and Ito 2008).
const SERIES_COLOURS: [&str; SERIES] = [
    "#0072b2", "#d55e00", "#009e73", "#b0529a", "#3a9bdc", "#c98a00", "#6b7785", "#6a4fb3",
];

/// Colours of parts, which differ from those of series.
const PART_COLOURS: [&str; 16] = [
    "#2f5d8a", "#e0a458", "#7fb7a6", "#b8577a", "#8cb4e0", "#8a7f3d", "#5e4b8b", "#d98c8c",
    "#3f7f6f", "#a3a9b3", "#c2412d", "#1f9e9e", "#b89b00", "#7a4b2a", "#5f8f2e", "#d070c8",
];

/// Source of the colours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Theme {
    /// Variables of the page's style sheet, which follow dark and light.
    Page,
    /// Dark on white.
    Document,
}

impl Theme {
    pub(crate) fn paint(self, ink: Ink) -> String {
        match (self, ink) {
            (Self::Page, Ink::Series(index)) => format!("var(--s{})", index % SERIES),
            (Self::Page, Ink::Part(index)) => format!("var(--p{})", index % PART_COLOURS.len()),
            (Self::Page, Ink::Rest) => "var(--rest)".to_owned(),
            (Self::Page, Ink::Text) => "var(--ink)".to_owned(),
            (Self::Page, Ink::Soft) => "var(--soft)".to_owned(),
            (Self::Page, Ink::Grid) => "var(--line)".to_owned(),
            (Self::Page, Ink::Paper) => "var(--card)".to_owned(),
            (Self::Document, ink) => light(ink).to_owned(),
        }
    }
}

/// Returns the colours of the light theme, equal to those in `page.css`.
fn light(ink: Ink) -> &'static str {
    match ink {
        Ink::Series(index) => SERIES_COLOURS[index % SERIES],
        Ink::Part(index) => PART_COLOURS[index % PART_COLOURS.len()],
        Ink::Rest => "#d9dce1",
        Ink::Text => "#16191d",
        Ink::Soft => "#59616b",
        Ink::Grid => "#e3e6ea",
        Ink::Paper => "#ffffff",
    }
}

/// Returns an upper estimate of the width of a text, because the reader's font is unknown.
pub(crate) fn text_width(text: &str, size: f64) -> f64 {
    let ems: f64 = text
        .chars()
        .map(|letter| match letter {
            'i' | 'j' | 'l' | 't' | 'f' | 'r' | 'I' | ' ' | '.' | ',' | ':' | ';' | '|' | '\''
            | '(' | ')' | '\u{202f}' => 0.36,
            'm' | 'w' | 'M' | 'W' | '%' => 0.92,
            'A'..='Z' | '0'..='9' => 0.67,
            letter if letter.is_ascii() => 0.58,
            _ => 0.75,
        })
        .sum();
    ems * size
}

/// Returns the text, cut with an ellipsis if it is too wide.
pub(crate) fn fit(text: &str, size: f64, width: f64) -> String {
    if text_width(text, size) <= width {
        return text.to_owned();
    }
    let mut kept = String::new();
    for letter in text.chars() {
        if text_width(&kept, size) + text_width("m…", size) > width {
            break;
        }
        kept.push(letter);
    }
    kept.truncate(kept.trim_end().len());
    kept.push('…');
    kept
}

#[cfg(test)]
mod tests {
    use super::{Ink, PART_COLOURS, SERIES, Theme, fit, light, text_width};

    #[test]
    fn the_style_sheet_has_every_colour_and_in_light_the_same() {
        let css = include_str!("../../page/page.css");
        let series = (0..SERIES).map(Ink::Series);
        let parts = (0..PART_COLOURS.len()).map(Ink::Part);
        let others = [Ink::Rest, Ink::Text, Ink::Soft, Ink::Grid, Ink::Paper];
        for ink in series.chain(parts).chain(others) {
            let variable = Theme::Page.paint(ink);
            let name = variable.trim_start_matches("var(").trim_end_matches(')');
            let declared = format!("{name}: {};", light(ink));
            assert!(css.contains(&declared), "{declared}");
        }
    }

    #[test]
    fn a_text_that_is_too_wide_is_cut_to_its_place() {
        assert_eq!(fit("short", 12.0, 100.0), "short");
        let cut = fit("SecP384r1MLKEM1024 over a slow link", 12.0, 100.0);
        assert!(cut.ends_with('…') && cut.starts_with("SecP"), "{cut}");
        assert!(text_width(&cut, 12.0) <= 100.0);
        assert_eq!(fit("any", 12.0, 0.0), "…");
    }
}
