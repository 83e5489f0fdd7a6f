//! Generated pages, and the manual written by hand.

use crate::usual::TestBed;

const URLS: &str = include_str!("../../../../docs/urls.md");
const PAGE: &str = include_str!("../../../../docs/command-line.md");

#[tokio::test]
async fn completions_and_the_manual_know_every_command() {
    let bed = TestBed::without_servers();
    let help = bed.does("--help").await.out;
    let manual = bed.does("man").await.out;
    let bash = bed.does("completions bash").await.out;
    let commands = help.lines().skip_while(|line| *line != "Commands:").skip(1);
    let commands = commands.take_while(|line| !line.is_empty());
    let names: Vec<_> = commands
        .filter(|line| line.starts_with("  ") && !line.starts_with("   "))
        .filter_map(|line| line.split_whitespace().next())
        .filter(|name| *name != "help")
        .collect();
    assert!(names.len() > 10, "{help}");
    assert!(
        manual.contains("LOCKTOPUS FAILOVER WATCH") && manual.contains("LOCKTOPUS SEMAPHORE INIT")
    );
    assert!(manual.contains("locktopus latch wait [OPTIONS] <NAME>") && !manual.contains("(1)"));
    let config = bed.does("config --help").await.out;
    for row in URLS.lines().filter(|line| line.starts_with("| `")) {
        for option in row.split('|').nth(1).unwrap().split('`').skip(1).step_by(2) {
            let both = [&config, &manual].map(|page| page.contains(&format!("{option}=")));
            assert_eq!(both, [true; 2], "{option}");
        }
    }
    assert!(help.contains(" Init, ") && bed.does("semaphore --help").await.out.contains(" init "));
    for name in names {
        assert!(
            bash.contains(&format!("locktopus,{name})")),
            "completions: {name}"
        );
        assert!(
            manual.contains(&format!("LOCKTOPUS {}", name.to_uppercase())),
            "manual: {name}"
        );
        assert!(
            PAGE.contains(&format!("`{name}")),
            "docs/command-line.md: {name}"
        );
    }
}

#[tokio::test]
async fn the_page_has_every_exit_code() {
    let bed = TestBed::without_servers();
    let help = bed.does("--help").await.out;
    let codes = help
        .lines()
        .skip_while(|line| *line != "Exit codes:")
        .skip(1);
    let codes: Vec<_> = codes
        .filter_map(|line| line.split_whitespace().next())
        .filter(|word| word.parse::<u8>().is_ok())
        .collect();
    assert!(codes.len() > 8, "{help}");
    for code in codes {
        assert!(PAGE.contains(&format!("\n| {code} |")), "{code}");
    }
}

#[tokio::test]
async fn the_harness_is_handed_over_to() {
    let bed = TestBed::without_servers();
    // A separate process writes the file. If this one had it open for writing, starting it would
    // fail, because other tests fork.
    let shell = async |script: &str| {
        let mut command = tokio::process::Command::new("sh");
        command.args(["-ec", script]).current_dir(bed.room());
        assert!(command.status().await.unwrap().success(), "{script}");
    };
    // The harness beside the program comes first, and the build may have put one there.
    let own = env!("CARGO_BIN_EXE_locktopus");
    shell(&format!("mkdir bin; cp '{own}' bin/locktopus")).await;
    let copy = bed.room().join("bin/locktopus");
    let call = |path: &str| {
        let mut command = tokio::process::Command::new(&copy);
        command
            .args(["bench", "--topology", "standalone"])
            .env("PATH", path);
        async move { command.output().await.unwrap() }
    };
    let absent = call("/nowhere").await;
    assert_eq!(absent.status.code(), Some(127));
    let said = String::from_utf8_lossy(&absent.stderr);
    assert!(said.contains("cargo install --path bench-harness") && said.contains(".deb"));
    let harness = "printf '#!/bin/sh\\necho \"$@\"\\nexit 5\\n' >bin/locktopus-bench; chmod +x bin/locktopus-bench";
    shell(harness).await;
    let there = call("/nowhere").await;
    assert_eq!(there.status.code(), Some(5));
    assert_eq!(there.stdout, b"run --topology standalone\n");
}
