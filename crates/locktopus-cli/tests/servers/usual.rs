//! Shared by all tests: servers, commands, waiting.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use locktopus_servers::topology::{Deployment, Node, ProviderKind, Spec, TopologyKind, start};
use tokio::process::{Child, Command};
use tokio::time::{Instant, sleep, timeout};

/// Longest wait for something that should happen at once on a busy machine.
pub(crate) const SOON: Duration = Duration::from_secs(20);

/// A program that writes its process id to the file `pid`, notes each `TERM` and continues.
pub(crate) const STUBBORN: &str =
    "trap 'touch termed' TERM; echo $$ >pid.new; mv pid.new pid; while :; do sleep 0.05; done";

/// A server, and a directory to run commands in.
pub(crate) struct TestBed {
    servers: Option<Deployment>,
    url: String,
    room: PathBuf,
}

/// The result of a command.
#[derive(Debug)]
pub(crate) struct Ran {
    pub(crate) code: i32,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Ran {
    pub(crate) fn ok(self) -> Self {
        assert_eq!(self.code, 0, "{self:?}");
        self
    }
}

impl TestBed {
    pub(crate) async fn new() -> Self {
        let spec = Spec::new(TopologyKind::Standalone);
        let servers = start(ProviderKind::Plain, &spec).await.unwrap();
        let url = format!("{}?connect_timeout=5s", servers.url());
        Self {
            servers: Some(servers),
            url,
            room: room(),
        }
    }

    /// Without a server.
    pub(crate) fn without_servers() -> Self {
        Self {
            servers: None,
            url: "memory:".to_owned(),
            room: room(),
        }
    }

    pub(crate) fn node(&self) -> &Node {
        &self.servers.as_ref().unwrap().nodes()[0]
    }

    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    pub(crate) fn room(&self) -> &Path {
        &self.room
    }

    /// A command with a clean environment. Tests that a script starts in the background ignore
    /// SIGINT, and their children would inherit that.
    pub(crate) fn bare(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new("env");
        command
            .arg("--default-signal")
            .arg(env!("CARGO_BIN_EXE_locktopus"))
            .args(arguments)
            .env_remove("LOCKTOPUS_URL")
            .env_remove("LOCKTOPUS_FORMAT")
            .env_remove("LOCKTOPUS_TICKET")
            .env_remove("LOCKTOPUS_LABEL")
            .env_remove("LOCKTOPUS_LABEL_HOST")
            .env("XDG_CONFIG_HOME", &self.room)
            .current_dir(&self.room)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true);
        command
    }

    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = self.bare(arguments);
        command.env("LOCKTOPUS_URL", &self.url);
        command
    }

    /// Runs a line without quotes, which must succeed.
    pub(crate) async fn does(&self, line: &str) -> Ran {
        self.ran(&words(line)).await.ok()
    }

    pub(crate) async fn ran(&self, arguments: &[&str]) -> Ran {
        ended(self.command(arguments)).await
    }

    /// Starts `run` with these options and a shell script.
    pub(crate) fn script(&self, options: &[&str], script: &str) -> Child {
        let arguments = [&["-q", "run"], options, &["--", "sh", "-c", script]].concat();
        self.command(&arguments).spawn().unwrap()
    }

    /// The process id that the script wrote.
    pub(crate) async fn pid(&self, file: &str) -> u32 {
        let path = self.room.join(file);
        eventually(file, async || {
            let text = tokio::fs::read_to_string(&path).await.ok()?;
            text.trim().parse().ok()
        })
        .await
    }

    /// Waits until the lock is free.
    pub(crate) async fn free(&self, name: &str) {
        eventually("the lock to be free", async || {
            let ran = self.ran(&["-q", "status", name, "--check"]).await;
            (ran.code == 0).then_some(())
        })
        .await;
    }
}

impl Drop for TestBed {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.room);
    }
}

fn room() -> PathBuf {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let name = format!("locktopus-command-{}-{number}", std::process::id());
    let room = std::env::temp_dir().join(name);
    std::fs::create_dir_all(room.join("locktopus")).unwrap();
    room
}

pub(crate) async fn ended(mut command: Command) -> Ran {
    finished(command.spawn().unwrap()).await
}

/// Waits for a process and returns its result.
pub(crate) async fn finished(child: Child) -> Ran {
    let output = timeout(Duration::from_secs(60), child.wait_with_output());
    let output = output.await.expect("the command ends").unwrap();
    Ran {
        code: output.status.code().unwrap_or(-1),
        out: String::from_utf8(output.stdout).unwrap(),
        err: String::from_utf8(output.stderr).unwrap(),
    }
}

pub(crate) async fn eventually<T>(what: &str, mut look: impl AsyncFnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + SOON;
    loop {
        if let Some(found) = look().await {
            return found;
        }
        assert!(Instant::now() < deadline, "waited too long for {what}");
        sleep(Duration::from_millis(20)).await;
    }
}

/// Whether a process is running. A zombie is not.
pub(crate) fn runs(pid: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let state = stat.rsplit_once(") ").map(|(_, rest)| rest.chars().next());
    !matches!(state, None | Some(None | Some('Z' | 'X')))
}

/// Sends a signal by name, with the shell's own `kill`: a bare Debian lacks the program.
pub(crate) async fn signal(name: &str, pid: u32) {
    let sent = Command::new("sh")
        .args(["-c", "kill -s \"$0\" \"$1\"", name, &pid.to_string()])
        .status();
    assert!(sent.await.unwrap().success());
}

/// The words of a command line without quotes.
pub(crate) fn words(line: &str) -> Vec<&str> {
    line.split(' ').collect()
}
