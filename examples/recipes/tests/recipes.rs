//! Each program runs and does what it promises.

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

type Result<T = ()> = std::result::Result<T, Box<dyn std::error::Error>>;

const PATIENCE: Duration = Duration::from_secs(30);

/// The output of a program, which must succeed.
fn said(output: Output) -> Result<String> {
    let text = String::from_utf8(output.stdout)?;
    assert!(
        output.status.success(),
        "{text}{}",
        String::from_utf8_lossy(&output.stderr)
    );
    Ok(text)
}

fn run(program: &str) -> Result<String> {
    said(Command::new(program).env_remove("LOCKTOPUS_URL").output()?)
}

#[test]
fn a_job_runs_on_one_of_three_instances() -> Result {
    let said = run(env!("CARGO_BIN_EXE_job_once"))?;
    assert_eq!(said.matches("is done").count(), 1, "{said}");
    assert_eq!(said.matches("skips").count(), 2, "{said}");
    Ok(())
}

#[test]
fn leaders_write_in_order_and_a_late_one_not_at_all() -> Result {
    let said = run(env!("CARGO_BIN_EXE_leader"))?;
    let tokens: Vec<u64> = said
        .lines()
        .filter_map(|line| line.split_once(" wrote under token ")?.1.parse().ok())
        .collect();
    assert_eq!(tokens.len(), 1 + 3 + 3, "{said}");
    assert!(tokens.is_sorted() && tokens[1] > tokens[0], "{said}");
    for instance in [1, 2] {
        let wrote = format!("instance {instance} wrote");
        assert!(said.matches(&wrote).count() >= 3, "{said}");
    }
    assert_eq!(said.matches("refused").count(), 1, "{said}");
    Ok(())
}

#[test]
fn transfers_in_both_orders_end_and_lose_nothing() -> Result {
    let said = run(env!("CARGO_BIN_EXE_transfer"))?;
    assert!(
        said.contains("\"alice\": 100") && said.contains("\"bob\": 100"),
        "{said}"
    );
    Ok(())
}

#[test]
fn no_more_calls_than_permits() -> Result {
    let said = run(env!("CARGO_BIN_EXE_api_client"))?;
    assert!(said.contains("their sum is 132"), "{said}");
    Ok(())
}

#[test]
fn a_backend_around_another_has_its_own_rules() -> Result {
    let said = run(env!("CARGO_BIN_EXE_own_backend"))?;
    let lines: Vec<_> = said.lines().collect();
    assert_eq!(lines.len(), 3, "{said}");
    assert_eq!(lines[0], "holds billing:invoices");
    assert!(lines[1].contains("\"shipping:orders\" cannot"), "{said}");
    assert!(lines[1].ends_with("begin with \"billing:\""), "{said}");
    assert!(lines[2].ends_with("failed; nothing was changed"), "{said}");
    Ok(())
}

/// Ends a program that the test does not wait for.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A port that was free a moment ago.
fn free_port() -> Result<u16> {
    Ok(TcpListener::bind("127.0.0.1:0")?.local_addr()?.port())
}

fn scrape(port: u16) -> Result<String> {
    let mut stream = TcpStream::connect(("127.0.0.1", port))?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.write_all(b"GET /metrics HTTP/1.0\r\nHost: localhost\r\n\r\n")?;
    let mut text = String::new();
    stream.read_to_string(&mut text)?;
    Ok(text)
}

#[tokio::test]
async fn prometheus_finds_every_series() -> Result {
    let port = free_port()?;
    let program = Command::new(env!("CARGO_BIN_EXE_prometheus"))
        .env_remove("LOCKTOPUS_URL")
        .env("METRICS_LISTEN", format!("127.0.0.1:{port}"))
        .stdout(Stdio::null())
        .spawn()?;
    let _running = Running(program);
    let series = [
        "locktopus_wait_seconds_bucket{",
        "locktopus_hold_seconds_bucket{",
        "locktopus_hand_off_seconds_bucket{",
        "locktopus_extension_lateness_seconds_bucket{",
        "locktopus_waiting{",
        "locktopus_held{",
        "cause=\"expired\"",
        "outcome=\"granted\"",
    ];
    let started = Instant::now();
    loop {
        let text = scrape(port).unwrap_or_default();
        let missing: Vec<_> = series
            .iter()
            .filter(|name| !text.contains(**name))
            .collect();
        if missing.is_empty() {
            assert!(
                !text.contains("shelf"),
                "names of locks are nobody's business"
            );
            return Ok(());
        }
        assert!(
            started.elapsed() < PATIENCE,
            "{missing:?} are not in {text}"
        );
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// The recipes are short enough to copy, in every language. Tests in the same file do not count.
#[test]
fn recipes_are_short() -> Result {
    let mut seen = 0;
    for folder in ["src/bin", "neighbours"] {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join(folder);
        for file in std::fs::read_dir(folder)? {
            check_length(&file?.path())?;
            seen += 1;
        }
    }
    check_length(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/checkout.rs").as_ref())?;
    assert!(seen > 10, "{seen} recipes");
    Ok(())
}

fn check_length(path: &Path) -> Result {
    let text = std::fs::read_to_string(path)?;
    let lines = text
        .lines()
        .take_while(|line| *line != "#[cfg(test)]")
        .count();
    assert!(lines < 60, "{} has {lines} lines", path.display());
    Ok(())
}

/// A recipe outside the table of the README is not found, and not run.
#[test]
fn every_recipe_is_in_the_table() -> Result {
    let table = include_str!("../README.md");
    for file in std::fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/src/bin"))? {
        let name = file?.file_name();
        let link = format!("(src/bin/{})", name.display());
        assert!(table.contains(&link), "{link} is not in README.md");
    }
    Ok(())
}
