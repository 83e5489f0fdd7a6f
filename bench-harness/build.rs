//! Tells the harness what it was built from: compiler, profile, and source revision.

use std::process::Command;

fn main() {
    // The index changes with every commit and every staged file; enough for `describe`.
    println!("cargo::rerun-if-changed=../.git/HEAD");
    println!("cargo::rerun-if-changed=../.git/index");
    println!("cargo::rerun-if-env-changed=RUSTC");
    let rustc = std::env::var("RUSTC").unwrap_or_else(|_| "rustc".to_owned());
    set("RUSTC_VERSION", output(&rustc, &["--version"]));
    set("PROFILE", std::env::var("PROFILE").ok());
    set(
        "GIT_DESCRIBE",
        output("git", &["describe", "--always", "--dirty", "--tags"]),
    );
}

/// Absent values become empty text: a build outside a checkout must not fail.
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
