//! Text from a peer, made safe to print.

use std::fmt::{self, Write as _};

/// Displays text from a peer so that it can neither control the terminal that shows it, nor start a
/// new line in a log, nor change the order in which the line is read.
///
/// Control characters (of ASCII and of Latin-1) and the Unicode format characters that are
/// invisible or change the direction of writing appear as escapes, such as `\n` and `\u{1b}`;
/// everything else stays as it is. The alternate form, `{:#}`, keeps line feeds and tabs, for text
/// of several lines. It wraps anything that can be displayed: a string, or an error that repeats
/// what a peer wrote. The errors of this crate already escape a peer's reason.
///
/// # Examples
/// ```
/// use hybriq_proto::wire::error::printable::Printable;
///
/// let said = "good\n\u{1b}[1mbye\u{202e}";
/// assert_eq!(Printable(said).to_string(), r"good\n\u{1b}[1mbye\u{202e}");
/// let bytes = b"caf\xc3\xa9\r";
/// assert_eq!(Printable(String::from_utf8_lossy(bytes)).to_string(), r"café\r");
/// assert_eq!(format!("{:#}", Printable("two\nlines\u{7}")), "two\nlines\\u{7}");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Printable<T>(pub T);

impl<T: fmt::Display> fmt::Display for Printable<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let keeps_lines = f.alternate();
        write!(Escaping { f, keeps_lines }, "{}", self.0)
    }
}

/// Passes text on with escapes.
struct Escaping<'a, 'b> {
    f: &'a mut fmt::Formatter<'b>,
    keeps_lines: bool,
}

impl fmt::Write for Escaping<'_, '_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        text.chars().try_for_each(|letter| {
            let is_kept = self.keeps_lines && matches!(letter, '\n' | '\t');
            if is_steering(letter) && !is_kept {
                write!(self.f, "{}", letter.escape_default())
            } else {
                self.f.write_char(letter)
            }
        })
    }
}

/// Returns true for a character that is not text, but changes how text is shown.
fn is_steering(letter: char) -> bool {
    letter.is_control()
        || matches!(
            letter,
            // Soft hyphen, Arabic letter mark, Mongolian vowel separator, zero-width space, marks of
            // direction; line and paragraph separators, embeddings and overrides; word joiner, isolates;
            // byte order mark, annotations, tags. The joiners U+200C and U+200D belong to scripts and emoji.
            '\u{ad}'
                | '\u{61c}'
                | '\u{180e}'
                | '\u{200b}'
                | '\u{200e}'..='\u{200f}'
                | '\u{2028}'..='\u{202e}'
                | '\u{2060}'..='\u{206f}'
                | '\u{feff}'
                | '\u{fff9}'..='\u{fffb}'
                | '\u{e0000}'..='\u{e007f}'
        )
}

#[cfg(test)]
mod tests {
    use super::Printable;

    #[test]
    fn what_steers_a_terminal_or_the_reader_is_escaped() {
        for (text, shown) in [
            ("\r\n\t\0", r"\r\n\t\u{0}"),
            ("\u{1b}[2J\u{7f}\u{9b}1m", r"\u{1b}[2J\u{7f}\u{9b}1m"),
            ("a\u{2028}b\u{2029}\u{85}", r"a\u{2028}b\u{2029}\u{85}"),
            ("\u{202e}txt.exe\u{2066}", r"\u{202e}txt.exe\u{2066}"),
            ("\u{e0041}\u{feff}\u{200b}", r"\u{e0041}\u{feff}\u{200b}"),
        ] {
            assert_eq!(Printable(text).to_string(), shown);
            // Escapes are not escaped again, wherever the text is used next.
            assert_eq!(Printable(Printable(text)).to_string(), shown);
        }
    }

    #[test]
    fn the_alternate_form_has_lines() {
        let text = "a\tb\r\nc\u{2028}\u{85}\n";
        let shown = "a\tb\\r\nc\\u{2028}\\u{85}\n";
        assert_eq!(format!("{:#}", Printable(text)), shown);
    }

    #[test]
    fn text_stays_as_it_is() {
        for text in [
            "",
            r#"C:\dir "quoted" 'too'"#,
            "żółć, e\u{301}, 日本語, שלום, مرحبا",
            "👩\u{200d}💻",
        ] {
            assert_eq!(Printable(text).to_string(), text);
        }
    }
}
