//! Tells the harness what built it: compiler and profile.
//!
//! It leaves the revision out, which would rebuild the package after every commit. The program
//! looks it up at run time.

use std::process::Command;

fn main() {
    println!("cargo::rerun-if-env-changed=RUSTC");
    let rustc = std::env::var("RUSTC").unwrap_or_else(|_| "rustc".to_owned());
    set("RUSTC_VERSION", output(&rustc, &["--version"]));
    set("PROFILE", std::env::var("PROFILE").ok());
}

/// A missing value becomes empty text: a build outside a checkout must not fail.
fn set(name: &str, value: Option<String>) {
    println!(
        "cargo::rustc-env=LOCKTOPUS_BENCH_{name}={}",
        value.unwrap_or_default()
    );
}

fn output(program: &str, arguments: &[&str]) -> Option<String> {
    let output = Command::new(program).args(arguments).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    output.status.success().then(|| text.trim().to_owned())
}
