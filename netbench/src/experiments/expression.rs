//! Arithmetic of experiment files: `100 * hybrid.connections_per_second / base.connections_per_second`.
//!
//! A name is that of a cell, and after the point a metric of a repetition of it.

use std::iter::Peekable;
use std::str::Chars;

/// A formula.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Expression {
    Number(f64),
    /// A cell and a metric of it.
    Figure(String, String),
    Operation(Box<Self>, char, Box<Self>),
    Call(Function, Vec<Self>),
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Function {
    Min,
    Max,
    /// The first, in percent of the second; 0 where the second is not above 0.
    Share,
}

impl Expression {
    /// Reads a formula.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let mut reader = Reader(text.chars().peekable());
        let expression = reader.sum()?;
        match reader.peek() {
            None => Ok(expression),
            Some(rest) => Err(format!("unexpected '{rest}' in: {text}")),
        }
    }

    /// Returns its value; `None` if a figure is missing.
    pub(super) fn value(&self, figure: &impl Fn(&str, &str) -> Option<f64>) -> Option<f64> {
        Some(match self {
            Self::Number(number) => *number,
            Self::Figure(cell, metric) => figure(cell, metric)?,
            Self::Operation(left, sign, right) => {
                let (left, right) = (left.value(figure)?, right.value(figure)?);
                match sign {
                    '+' => left + right,
                    '-' => left - right,
                    '*' => left * right,
                    _ => left / right,
                }
            }
            Self::Call(function, arguments) => {
                let values: Option<Vec<f64>> =
                    arguments.iter().map(|it| it.value(figure)).collect();
                let values = values?;
                match (function, values.as_slice()) {
                    (Function::Min, values) => values.iter().copied().reduce(f64::min)?,
                    (Function::Max, values) => values.iter().copied().reduce(f64::max)?,
                    (Function::Share, [part, whole]) if *whole > 0.0 => part / whole * 100.0,
                    (Function::Share, _) => 0.0,
                }
            }
        })
    }

    /// Calls `each` with the name of every cell.
    pub(super) fn cells<'a>(&'a self, each: &mut impl FnMut(&'a str)) {
        match self {
            Self::Number(_) => {}
            Self::Figure(cell, _) => each(cell),
            Self::Operation(left, _, right) => {
                left.cells(each);
                right.cells(each);
            }
            Self::Call(_, arguments) => arguments.iter().for_each(|it| it.cells(each)),
        }
    }
}

struct Reader<'a>(Peekable<Chars<'a>>);

impl Reader<'_> {
    fn peek(&mut self) -> Option<char> {
        while self.0.next_if(|letter| letter.is_whitespace()).is_some() {}
        self.0.peek().copied()
    }

    fn take(&mut self, wanted: char) -> Result<(), String> {
        if self.peek() == Some(wanted) {
            self.0.next();
            return Ok(());
        }
        Err(format!("'{wanted}' is missing"))
    }

    fn sum(&mut self) -> Result<Expression, String> {
        let mut left = self.product()?;
        while let Some(sign @ ('+' | '-')) = self.peek() {
            self.0.next();
            left = Expression::Operation(Box::new(left), sign, Box::new(self.product()?));
        }
        Ok(left)
    }

    fn product(&mut self) -> Result<Expression, String> {
        let mut left = self.part()?;
        while let Some(sign @ ('*' | '/')) = self.peek() {
            self.0.next();
            left = Expression::Operation(Box::new(left), sign, Box::new(self.part()?));
        }
        Ok(left)
    }

    fn part(&mut self) -> Result<Expression, String> {
        if self.peek() == Some('(') {
            self.0.next();
            let inner = self.sum()?;
            self.take(')')?;
            return Ok(inner);
        }
        let word = self.word();
        if let Ok(number) = word.parse() {
            return Ok(Expression::Number(number));
        }
        if let Some((cell, metric)) = word.split_once('.') {
            return Ok(Expression::Figure(cell.to_owned(), metric.to_owned()));
        }
        let function = match word.as_str() {
            "min" => Function::Min,
            "max" => Function::Max,
            "share" => Function::Share,
            _ => {
                return Err(format!(
                    "'{word}' is neither a number, CELL.METRIC nor a function"
                ));
            }
        };
        self.take('(')?;
        let mut arguments = vec![self.sum()?];
        while self.peek() == Some(',') {
            self.0.next();
            arguments.push(self.sum()?);
        }
        self.take(')')?;
        Ok(Expression::Call(function, arguments))
    }

    fn word(&mut self) -> String {
        let mut word = String::new();
        self.peek();
        let is_part = |letter: &char| letter.is_alphanumeric() || ['.', '_'].contains(letter);
        while let Some(letter) = self.0.next_if(is_part) {
            word.push(letter);
        }
        word
    }
}

#[cfg(test)]
mod tests {
    use super::Expression;

    fn value(text: &str) -> Option<f64> {
        let figure = |cell: &str, metric: &str| match (cell, metric) {
            ("a", "rate_1") => Some(8.0),
            ("b", "rate_1") => Some(2.0),
            _ => None,
        };
        Expression::parse(text).unwrap().value(&figure)
    }

    #[test]
    fn formulas_are_read_as_they_are_written() {
        assert_eq!(value("1 + 2 * 3 - 4 / 2"), Some(5.0));
        assert_eq!(value("(1 + 2) * 3"), Some(9.0));
        assert_eq!(value("8 - 4 - 2"), Some(2.0));
        assert_eq!(value("100 * (a.rate_1 / b.rate_1 - 1)"), Some(300.0));
        assert_eq!(value("max(0, b.rate_1 - a.rate_1)"), Some(0.0));
        assert_eq!(value("share(b.rate_1, a.rate_1)"), Some(25.0));
        assert_eq!(value("share(1, 0 - 1)"), Some(0.0), "nothing to share");
        assert_eq!(value("a.rate_1 + c.rate_1"), None);
        assert_eq!(value("1.5e3"), Some(1500.0));
    }

    #[test]
    fn mistakes_are_told() {
        for (text, reason) in [
            ("1 +", "'' is neither"),
            ("(1", "')' is missing"),
            ("speed", "'speed' is neither"),
            ("1 2", "unexpected '2'"),
        ] {
            let error = Expression::parse(text).unwrap_err();
            assert!(error.contains(reason), "{text}: {error}");
        }
    }
}
