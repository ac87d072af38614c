/// TODO
pub fn document() -> String {
    String::new()
}
