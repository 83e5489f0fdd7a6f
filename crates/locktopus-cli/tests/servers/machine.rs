//! A machine as the page of examples expects it: a server with a password, programs, little else.

use std::process::Stdio;

use tokio::process::Command;

use crate::usual::{Ran, TestBed, ended, eventually, words};

/// A process of its own writes the programs: see `the_harness_is_handed_over_to`.
const SET_UP: &str = r#"
mkdir bin leader
ln -s "$0" bin/locktopus
cat >bin/make-report <<'END'
#!/bin/sh
echo "${0##*/} $LOCKTOPUS_NAME" >>ran
while [ -e stay ]; do sleep 0.05; done
[ ! -e fail ] || exit 3
END
chmod +x bin/make-report
for name in bin/import-prices bin/billing-worker deploy.sh; do
    ln -s "$PWD/bin/make-report" "$name"
done
"#;

pub(crate) struct Machine(pub(crate) TestBed);

impl Machine {
    pub(crate) async fn new() -> Self {
        let bed = TestBed::new().await;
        let user = words("ACL SETUSER app on >SECRET ~* &* +@all");
        bed.node().command(&user).await.unwrap();
        let own = env!("CARGO_BIN_EXE_locktopus");
        let mut shell = Command::new("sh");
        shell.args(["-ec", SET_UP, own]).current_dir(bed.room());
        assert!(shell.status().await.unwrap().success());
        Self(bed)
    }

    /// A text of the page, with the server and the folder of this machine.
    pub(crate) fn here(&self, text: &str) -> String {
        let server = self.0.url().split_once("://").unwrap().1;
        let leader = format!("{}/leader/", self.0.room().display());
        let text = text.replace("redis.example:6379", server);
        text.replace("/leader/", &leader)
    }

    /// A command that has these variables and no other.
    pub(crate) fn command(&self, variables: &[(&str, &str)], arguments: &[&str]) -> Command {
        let room = self.0.room();
        let path = format!("{}/bin:/usr/local/bin:/usr/bin:/bin", room.display());
        let arguments = arguments.iter().map(|argument| {
            assert!(!argument.contains("SECRET"), "{argument}");
            self.here(argument)
        });
        let variables = variables.iter().map(|(key, value)| (key, self.here(value)));
        let mut command = Command::new("env");
        command.arg("--default-signal").args(arguments);
        command.env_clear().env("PATH", path).envs(variables);
        command.current_dir(room).kill_on_drop(true);
        command.stdin(Stdio::null()).stdout(Stdio::piped());
        command.stderr(Stdio::piped());
        command
    }

    pub(crate) fn write(&self, file: &str, text: &str) {
        std::fs::write(self.0.room().join(file), text).unwrap();
    }

    /// The programs that ran, each with the name of its lock.
    pub(crate) fn ran(&self) -> String {
        std::fs::read_to_string(self.0.room().join("ran")).unwrap_or_default()
    }

    pub(crate) async fn started(&self, programs: &str) {
        eventually(programs, async || (self.ran() == programs).then_some(())).await;
    }

    /// Two machines start this: the first runs the program, the second skips it.
    pub(crate) async fn once(&self, program: &str, command: impl Fn() -> Command) -> [Ran; 2] {
        let both = [ended(command()).await.ok(), ended(command()).await.ok()];
        assert_eq!(self.ran(), format!("{program}\n"), "{both:?}");
        self.write("ran", "");
        both
    }

    /// Waits until the lock has a holder and a waiter.
    pub(crate) async fn waiter(&self, name: &str) -> String {
        let line = format!("-q status {name}");
        eventually("a waiter", async || {
            let seen = self.0.does(&line).await.out;
            seen.contains("waiting 1").then_some(seen)
        })
        .await
    }
}
