//! Numbers in readable form.

/// Text in place of a missing number.
pub(crate) const NONE: &str = "–";

/// Space that keeps a number and its unit on one line.
pub(crate) const THIN_SPACE: char = '\u{202f}';

/// Unit that suits numbers of a size: its divisor and its name.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Unit {
    pub(crate) factor: f64,
    pub(crate) name: &'static str,
}

impl Unit {
    /// Returns a unit for numbers in `unit`, as metrics name it, up to `largest`.
    pub(crate) fn fitting(unit: &'static str, largest: f64) -> Self {
        let steps: &[(f64, &'static str)] = match unit {
            "µs" => &[(1e6, "s"), (1e3, "ms"), (1.0, "µs")],
            "bit/s" => &[
                (1e9, "Gbit/s"),
                (1e6, "Mbit/s"),
                (1e3, "kbit/s"),
                (1.0, "bit/s"),
            ],
            "B" => &[(1e9, "GB"), (1e6, "MB"), (1e4, "kB"), (1.0, "B")],
            "KiB" => &[(1_048_576.0, "GiB"), (1024.0, "MiB"), (1.0, "KiB")],
            "1/s" => &[(1.0, "/s")],
            _ => &[],
        };
        let fits = |&&(factor, _): &&(f64, &'static str)| largest.abs() >= factor;
        let (factor, name) = steps
            .iter()
            .find(fits)
            .or(steps.last())
            .copied()
            .unwrap_or((1.0, unit));
        // The limit for kB is ten thousand bytes, because smaller numbers are easier to read in
        // bytes.
        let factor = if name == "kB" { 1e3 } else { factor };
        Self { factor, name }
    }

    /// Formats a number in this unit, without the unit's name.
    pub(crate) fn number(&self, value: f64) -> String {
        number(value / self.factor)
    }

    /// Formats a number with its unit.
    pub(crate) fn text(&self, value: f64) -> String {
        if !value.is_finite() {
            return NONE.to_owned();
        }
        match self.name {
            "" => self.number(value),
            name => format!("{}{THIN_SPACE}{name}", self.number(value)),
        }
    }
}

/// Formats a single number with a unit that suits it.
pub(crate) fn with_unit(value: f64, unit: &'static str) -> String {
    Unit::fitting(unit, value).text(value)
}

/// Formats a number with three digits or more: `1,234`, `123`, `12.3`, `1.23`, `0.0123`.
pub(crate) fn number(value: f64) -> String {
    if !value.is_finite() {
        return NONE.to_owned();
    }
    let size = value.abs();
    let text = if size >= 1e15 {
        return format!("{value:.2e}");
    } else if size >= 99.95 {
        grouped(value)
    } else if size >= 9.995 {
        format!("{value:.1}")
    } else if size >= 0.0995 {
        format!("{value:.2}")
    } else if size >= 1e-9 {
        let decimals = (2.0 - size.log10().floor()).clamp(0.0, 12.0) as usize;
        format!("{value:.decimals$}")
    } else {
        "0".to_owned()
    };
    minus(text)
}

/// Formats a count.
pub(crate) fn count(value: u64) -> String {
    if value >= 1_000_000_000_000_000 {
        number(value as f64)
    } else {
        grouped(value as f64)
    }
}

/// Formats a number with enough digits to distinguish neighbours that differ by `step`.
pub(crate) fn tick(value: f64, step: f64) -> String {
    if !value.is_finite() || value.abs() >= 1e15 {
        return number(value);
    }
    // 2.5 needs one more digit than its size suggests.
    let is_whole = |decimals: &usize| {
        let scaled = (0..*decimals).fold(step, |scaled, _| scaled * 10.0);
        (scaled - scaled.round()).abs() < 1e-6 * scaled.max(1.0)
    };
    match (0..12).find(is_whole) {
        Some(0) | None => minus(grouped(value)),
        Some(decimals) => minus(format!("{value:.decimals$}")),
    }
}

/// Formats a number like [`number`], without trailing zeros.
pub(crate) fn short(value: f64) -> String {
    let text = number(value);
    if text.contains('.') && !text.contains('e') {
        text.trim_end_matches('0').trim_end_matches('.').to_owned()
    } else {
        text
    }
}

/// Formats a change in percent: `+12 %`, `−3.4 %`.
pub(crate) fn change(percent: f64) -> String {
    if !percent.is_finite() {
        return NONE.to_owned();
    }
    format!("{}{THIN_SPACE}%", signed(percent))
}

/// Formats the interval of a change: `+9 … +15 %`, or in words where a side has no bound.
pub(crate) fn change_interval(interval: Option<(f64, f64)>) -> String {
    let Some((low, high)) = interval else {
        return "unknown".to_owned();
    };
    // A loss of everything is no bound: nothing can lose more.
    match (low > -100.0, high.is_finite()) {
        (true, true) => format!("{} … {}", signed(low), change(high)),
        (true, false) => format!("{} or more", change(low)),
        (false, true) => format!("{} or less", change(high)),
        (false, false) => "not bounded".to_owned(),
    }
}

fn signed(percent: f64) -> String {
    let text = if percent.abs() >= 9.95 {
        grouped(percent)
    } else {
        format!("{percent:.1}")
    };
    match text.as_str() {
        "0.0" | "-0.0" => "0".to_owned(),
        _ if percent > 0.0 => format!("+{text}"),
        _ => minus(text),
    }
}

/// Formats a whole number with separated thousands.
fn grouped(value: f64) -> String {
    group_digits(&format!("{value:.0}"))
}

/// Inserts a comma before every third digit, counted from the point.
pub(crate) fn group_digits(number: &str) -> String {
    let digits = number.trim_start_matches('-');
    let sign = &number[..number.len() - digits.len()];
    let (whole, fraction) = digits.split_at(digits.find('.').unwrap_or(digits.len()));
    let mut text = sign.to_owned();
    for (index, digit) in whole.chars().enumerate() {
        if index > 0 && (whole.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text + fraction
}

/// Replaces the hyphen of a negative number by a minus sign.
pub(crate) fn minus(text: String) -> String {
    match text.strip_prefix('-') {
        Some(rest) => format!("−{rest}"),
        None => text,
    }
}

/// Formats a coordinate of a drawing.
pub(crate) fn px(value: f64) -> String {
    if !value.is_finite() {
        return "0".to_owned();
    }
    let text = format!("{value:.1}");
    match text.strip_suffix(".0") {
        Some("-0") => "0".to_owned(),
        Some(whole) => whole.to_owned(),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use super::{change, change_interval, number, px, tick, with_unit};

    #[test]
    fn figures_have_three_digits_and_their_thousands_apart() {
        let cases = [
            (0.0, "0"),
            (0.001_234, "0.00123"),
            (1.0, "1.00"),
            (9.999, "10.0"),
            (12.34, "12.3"),
            (99.96, "100"),
            (1234.5, "1,234"),
            (1_234_567.0, "1,234,567"),
            (-42.0, "−42.0"),
            (1e20, "1.00e20"),
            (f64::NAN, "–"),
            (f64::INFINITY, "–"),
        ];
        for (value, text) in cases {
            assert_eq!(number(value), text, "{value}");
        }
    }

    #[test]
    fn units_fit_the_size_of_the_figure() {
        assert_eq!(with_unit(431.0, "µs"), "431\u{202f}µs");
        assert_eq!(with_unit(1431.0, "µs"), "1.43\u{202f}ms");
        assert_eq!(with_unit(2.5e6, "µs"), "2.50\u{202f}s");
        assert_eq!(with_unit(3.2e9, "bit/s"), "3.20\u{202f}Gbit/s");
        assert_eq!(with_unit(3500.0, "B"), "3,500\u{202f}B");
        assert_eq!(with_unit(35_000.0, "B"), "35.0\u{202f}kB");
        assert_eq!(with_unit(2048.0, "KiB"), "2.00\u{202f}MiB");
        assert_eq!(with_unit(3.0, ""), "3.00");
        assert_eq!(with_unit(0.0, "µs"), "0\u{202f}µs");
    }

    #[test]
    fn changes_have_a_sign() {
        assert_eq!(change(12.3), "+12\u{202f}%");
        assert_eq!(change(-3.44), "−3.4\u{202f}%");
        assert_eq!(change(0.01), "0\u{202f}%");
        assert_eq!(change_interval(Some((-1.0, 15.4))), "−1.0 … +15\u{202f}%");
        let unbounded = change_interval(Some((9.0, f64::INFINITY)));
        assert_eq!(unbounded, "+9.0\u{202f}% or more");
        assert_eq!(
            change_interval(Some((-100.0, 5.0))),
            "+5.0\u{202f}% or less"
        );
        let unknown = change_interval(Some((-100.0, f64::INFINITY)));
        assert_eq!(unknown, "not bounded");
    }

    #[test]
    fn ticks_have_the_digits_of_their_step() {
        assert_eq!(tick(0.5, 0.25), "0.50");
        assert_eq!(tick(7.5, 2.5), "7.5");
        assert_eq!(tick(0.3, 0.1), "0.3");
        assert_eq!(tick(2000.0, 500.0), "2,000");
        assert_eq!(tick(-10.0, 10.0), "−10");
    }

    #[test]
    fn coordinates_are_short_and_always_numbers() {
        assert_eq!(px(12.04), "12");
        assert_eq!(px(12.06), "12.1");
        assert_eq!(px(-0.01), "0");
        assert_eq!(px(f64::NAN), "0");
    }
}
