//! Has the program find the library of msquic in its own folder.

fn main() {
    println!("cargo::rustc-link-arg=-Wl,-rpath,$ORIGIN");
}
