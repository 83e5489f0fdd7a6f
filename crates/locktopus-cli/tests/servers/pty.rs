//! Programs under `run` on a real terminal, whose other end the test holds.

use std::fs::File;
use std::io::Write as _;
use std::os::fd::OwnedFd;
use std::process::Stdio;
use std::sync::{Arc, Mutex};
use std::thread;

use nix::pty::openpty;
use tokio::process::{Child, Command};

use crate::usual::{SOON, TestBed, eventually, words};

const OWN: &str = env!("CARGO_BIN_EXE_locktopus");

/// A terminal with a shell script running in it.
struct Session {
    keys: File,
    screen: Arc<Mutex<String>>,
    shell: Child,
    shown: thread::JoinHandle<()>,
}

impl Session {
    /// `$L` in the script is the command. `sh` is `-c`, or `-mc` for job control.
    fn of(bed: &TestBed, sh: &str, script: &str) -> Self {
        let terminal = openpty(None, None).unwrap();
        let mut command = Command::new("env");
        // The shell leads a session with this terminal.
        command.args(words("--default-signal setsid --ctty --wait sh"));
        command.args([sh, script]);
        let end = |end: &OwnedFd| Stdio::from(end.try_clone().unwrap());
        command
            .stdin(end(&terminal.slave))
            .stdout(end(&terminal.slave))
            .stderr(end(&terminal.slave))
            .env("L", OWN)
            .env("LOCKTOPUS_URL", bed.url())
            .env("XDG_CONFIG_HOME", bed.room())
            .env("TERM", "dumb")
            .current_dir(bed.room())
            .kill_on_drop(true);
        let shell = command.spawn().unwrap();
        let screen = Arc::new(Mutex::new(String::new()));
        let (text_shown, mut output) = (Arc::clone(&screen), File::from(terminal.master));
        let keys = output.try_clone().unwrap();
        // Reading blocks until the last process closes the terminal.
        let shown = thread::spawn(move || {
            let mut some = [0; 1024];
            while let Ok(read @ 1..) = std::io::Read::read(&mut output, &mut some) {
                let text = String::from_utf8_lossy(&some[..read]);
                text_shown.lock().unwrap().push_str(&text);
            }
        });
        Self {
            keys,
            screen,
            shell,
            shown,
        }
    }

    fn press(&mut self, keys: &str) {
        self.keys.write_all(keys.as_bytes()).unwrap();
    }

    fn screen(&self) -> String {
        self.screen.lock().unwrap().clone()
    }

    async fn shows(&self, text: &str) {
        let waited = tokio::time::timeout(SOON * 2, async {
            eventually(text, async || self.screen().contains(text).then_some(())).await;
        });
        waited
            .await
            .unwrap_or_else(|_| panic!("no {text:?} on\n{}", self.screen()));
    }

    /// Waits until the shell has ended. Returns its exit code and the screen.
    async fn ended(mut self) -> (i32, String) {
        let ended = tokio::time::timeout(SOON, self.shell.wait()).await;
        let status = ended.unwrap_or_else(|_| panic!("it hangs:\n{}", self.screen()));
        // The reader may lag behind.
        eventually("the terminal to be closed", async || {
            self.shown.is_finished().then_some(())
        })
        .await;
        (status.unwrap().code().unwrap_or(-1), self.screen())
    }
}

/// The program reads, under one lock or several, and the shell reads after it.
#[tokio::test]
async fn a_program_reads_from_the_terminal() {
    for run in [
        "",
        "$L run b -- $L run c --",
        "sh -c '$L run b -- \"$@\"; exit $?' sh",
    ] {
        let bed = TestBed::new().await;
        let script = format!(
            "$L run a -- {run} sh -c 'read x; echo one:$x.; exit 7'; echo code:$?.; read y; echo two:$y."
        );
        let mut session = Session::of(&bed, "-c", &script);
        session.press("first\n");
        session.shows("one:first.").await;
        session.shows("code:7.").await;
        session.press("second\n");
        session.shows("two:second.").await;
        let (code, screen) = session.ended().await;
        assert!(code == 0 && !screen.contains("stopped"), "{screen}");
        bed.free("a").await;
    }
}

/// Programs such as password prompts, editors and pagers change the settings before they read.
#[tokio::test]
async fn a_program_sets_the_terminal() {
    let bed = TestBed::new().await;
    let script = "$L -q run a -- sh -c 'stty -echo; echo ask.; read x; stty echo; echo got:$x.'";
    let mut session = Session::of(&bed, "-c", script);
    session.shows("ask.").await;
    session.press("secret\n");
    session.shows("got:secret.").await;
    let (code, screen) = session.ended().await;
    assert_eq!((code, screen.matches("secret").count()), (0, 1), "{screen}");
}

/// With the terminal, the program gets Ctrl-C. Ctrl-Z does not suspend it.
#[tokio::test]
async fn keys_that_signal_reach_the_program() {
    let bed = TestBed::new().await;
    let script =
        "$L run a -- sh -c 'read x; echo one:$x.; read y; echo two:$y.; read z'; echo code:$?.";
    let mut session = Session::of(&bed, "-c", script);
    session.press("first\n");
    session.shows("one:first.").await;
    session.press("\u{1a}");
    session.shows("not suspended").await;
    session.press("second\n");
    session.shows("two:second.").await;
    session.press("\u{3}");
    session.shows("code:130.").await;
    session.ended().await;
    bed.free("a").await;
}

/// The settings are restored after a signal killed the program.
#[tokio::test]
async fn a_terminal_is_left_as_it_was() {
    let bed = TestBed::new().await;
    let script =
        "$L -q run a -- sh -c 'stty -echo -icanon; echo set.; kill -KILL $$'; stty -a; echo end.";
    let session = Session::of(&bed, "-c", script);
    session.shows("end.").await;
    let (_, screen) = session.ended().await;
    assert!(
        screen.contains(" icanon") && screen.contains(" echo "),
        "{screen}"
    );
}

/// A program that does not read leaves the terminal to the rest of the pipeline.
#[tokio::test]
async fn a_pager_behind_the_program_keeps_the_terminal() {
    let bed = TestBed::new().await;
    let script = "$L -q run a -- echo page | { read a; read b </dev/tty; echo $a:$b.; }";
    let mut session = Session::of(&bed, "-c", script);
    session.press("key\n");
    session.shows("page:key.").await;
    assert_eq!(session.ended().await.0, 0);
}

/// The program waits while another job has the terminal, and a message says so.
#[tokio::test]
async fn in_the_background_it_waits_for_the_terminal() {
    let bed = TestBed::new().await;
    let script = "$L run a -- sh -c 'read x; echo got:$x.' </dev/tty & read go; echo go:$go.; fg";
    let mut session = Session::of(&bed, "-mc", script);
    session.shows("wants the terminal").await;
    session.press("yes\n");
    session.shows("go:yes.").await;
    session.press("line\n");
    session.shows("got:line.").await;
    let (code, screen) = session.ended().await;
    assert_eq!(code, 0, "{screen}");
    assert_eq!(screen.matches("wants the terminal").count(), 1, "{screen}");
}

/// A program that gets the terminal soon is no reason for a message. The shell waits until the
/// program is stopped, and brings it to the foreground.
#[tokio::test]
async fn a_short_wait_for_the_terminal_is_silent() {
    let bed = TestBed::new().await;
    let script = "$L run a -- sh -c 'echo $$ >pid.new; mv pid.new pid; read x; echo got:$x.' </dev/tty & \
                  until [ -e pid ]; do :; done; read p <pid; s=; \
                  until [ \"$s\" = T ]; do read n c s rest </proc/$p/stat; done; fg";
    let mut session = Session::of(&bed, "-mc", script);
    session.press("line\n");
    session.shows("got:line.").await;
    let (code, screen) = session.ended().await;
    assert_eq!(code, 0, "{screen}");
    assert!(!screen.contains("wants the terminal"), "{screen}");
}

/// TERM ends a program that is stopped until it gets the terminal.
#[tokio::test]
async fn what_is_stopped_can_be_ended() {
    let bed = TestBed::new().await;
    let script =
        "$L run a -- sh -c 'read x' </dev/tty & echo $! >pid; wait; echo code:$?.; read end";
    let mut session = Session::of(&bed, "-mc", script);
    let pid = bed.pid("pid").await;
    session.shows("wants the terminal").await;
    crate::usual::signal("TERM", pid).await;
    bed.free("a").await;
    session.press("end\n");
    session.ended().await;
}
