//! Fields that take the most memory.

/// Returns the names of fields that take the most memory within so many bytes, each with 32 bytes besides: as
/// many different ones as make a map of fields grow a last time, and the same one again and again.
pub(crate) fn names(mut bytes: usize) -> Vec<String> {
    let different = most_before_growth(bytes / 33) + 1;
    let mut names = Vec::new();
    for index in 0..different {
        let name = format!("{}{}", letter(index / 36 / 36), two(index));
        bytes -= name.len() + 32;
        names.push(name);
    }
    names.extend(vec!["a".to_owned(); bytes / 33]);
    names
}

/// Returns the largest size of a map of fields that is below this one and makes it as large as it is.
fn most_before_growth(count: usize) -> usize {
    let places = (count + count / 3).next_power_of_two();
    places / 2 - places / 8
}

fn two(index: usize) -> String {
    format!("{}{}", letter(index / 36), letter(index))
}

fn letter(index: usize) -> char {
    char::from(b"abcdefghijklmnopqrstuvwxyz0123456789"[index % 36])
}
