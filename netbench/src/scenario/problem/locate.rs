//! Finds the line and column of a part of a JSON text.

/// Returns the line and column, from 1, of a path such as `clients[0].ops[1].connect`, or of its
/// longest part that exists; `None` if not even its first part does. The text is valid JSON.
pub(crate) fn locate(text: &str, path: &str) -> Option<(usize, usize)> {
    let mut scanner = Scanner {
        bytes: text.as_bytes(),
        at: 0,
    };
    let mut found = None;
    for step in steps(path) {
        let there = match step {
            Step::Key(key) => scanner.enter_key(text, key),
            Step::Index(index) => scanner.enter_item(index),
        };
        match there {
            Some(at) => found = Some(at),
            None => break,
        }
    }
    let before = text.get(..found?)?;
    let line = before.matches('\n').count() + 1;
    let column = before.chars().rev().take_while(|c| *c != '\n').count() + 1;
    Some((line, column))
}

enum Step<'a> {
    Key(&'a str),
    Index(usize),
}

fn steps(path: &str) -> impl Iterator<Item = Step<'_>> {
    path.split(['.', '[']).map(|part| {
        let index = part.strip_suffix(']').and_then(|part| part.parse().ok());
        index.map_or(Step::Key(part), Step::Index)
    })
}

struct Scanner<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl Scanner<'_> {
    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    /// Advances to the next byte that is neither space nor separator.
    fn skip_space(&mut self) {
        while let Some(b' ' | b'\t' | b'\r' | b'\n' | b',' | b':') = self.peek() {
            self.at += 1;
        }
    }

    fn enter(&mut self, bracket: u8) -> Option<()> {
        self.skip_space();
        (self.peek()? == bracket).then(|| self.at += 1)
    }

    /// Advances to the value of a key, and returns the position of the key.
    fn enter_key(&mut self, text: &str, key: &str) -> Option<usize> {
        self.enter(b'{')?;
        loop {
            self.skip_space();
            if self.peek()? == b'}' {
                return None;
            }
            let start = self.at;
            self.skip_value()?;
            let name = text.get(start..self.at)?;
            if serde_json::from_str::<String>(name).ok()? == key {
                return Some(start);
            }
            self.skip_space();
            self.skip_value()?;
        }
    }

    /// Advances to an item of a list, and returns its position.
    fn enter_item(&mut self, index: usize) -> Option<usize> {
        self.enter(b'[')?;
        for _ in 0..index {
            self.skip_space();
            self.skip_value()?;
        }
        self.skip_space();
        (self.peek()? != b']').then_some(self.at)
    }

    /// Skips a value: a text, a number or word, or brackets with their content.
    fn skip_value(&mut self) -> Option<()> {
        let mut depth = 0_usize;
        loop {
            match self.peek()? {
                b'"' => self.skip_text()?,
                b'{' | b'[' => {
                    depth += 1;
                    self.at += 1;
                }
                b'}' | b']' => {
                    depth = depth.checked_sub(1)?;
                    self.at += 1;
                }
                b' ' | b'\t' | b'\r' | b'\n' | b',' | b':' => self.skip_space(),
                _ => {
                    while self
                        .peek()
                        .is_some_and(|byte| !b" \t\r\n,:]}".contains(&byte))
                    {
                        self.at += 1;
                    }
                }
            }
            if depth == 0 {
                return Some(());
            }
        }
    }

    fn skip_text(&mut self) -> Option<()> {
        self.at += 1;
        loop {
            match self.peek()? {
                b'\\' => self.at += 2,
                b'"' => {
                    self.at += 1;
                    return Some(());
                }
                _ => self.at += 1,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::locate;

    const TEXT: &str =
        "{\"a\": [1, {\"b \\\"]\": \"é}\"},\n  {\"c\": [true, -5],\n   \"d\": {}}], \"e\": 2}";

    #[test]
    fn a_path_leads_to_a_line_and_a_column() {
        assert_eq!(locate(TEXT, "a"), Some((1, 2)));
        assert_eq!(locate(TEXT, "a[0]"), Some((1, 8)));
        assert_eq!(locate(TEXT, "a[2]"), Some((2, 3)));
        assert_eq!(locate(TEXT, "a[2].c[1]"), Some((2, 16)));
        assert_eq!(locate(TEXT, "a[2].d"), Some((3, 4)));
        assert_eq!(locate(TEXT, "e"), Some((3, 15)));
    }

    #[test]
    fn a_path_that_leaves_the_file_leads_as_far_as_it_can() {
        assert_eq!(locate(TEXT, "a[2].d.x"), Some((3, 4)));
        assert_eq!(locate(TEXT, "a[7]"), Some((1, 2)));
        assert_eq!(locate(TEXT, "e.f[3]"), Some((3, 15)));
        assert_eq!(locate(TEXT, "z"), None);
        assert_eq!(locate(TEXT, ""), None);
    }
}
