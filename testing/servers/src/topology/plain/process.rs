//! One server process and the verbs on it.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use rustix::process::Signal;
use tokio::sync::Mutex;
use tokio::time::{Instant, sleep};

use super::clock;
use super::run_dir::RunDir;
use super::supervisor::{Life, Supervisor};
use crate::topology::error::TopologyError;
use crate::topology::plan::NodePlan;

/// How long the kernel may take to end a process that was sent SIGKILL.
const END_WITHIN: Duration = Duration::from_secs(10);

/// How long the kernel may take to stop a process on a busy machine.
const STILL_WITHIN: Duration = Duration::from_secs(10);

/// A server process, running or not.
#[derive(Debug)]
pub(crate) struct Process {
    name: String,
    program: PathBuf,
    args: Vec<String>,
    dir: PathBuf,
    has_clock: bool,
    run: Arc<RunDir>,
    // Kept after the server has ended, because the supervisor removes the run directory if the
    // harness is killed.
    supervisor: Mutex<Supervisor>,
}

impl Process {
    /// Writes the node's files and starts the server; `clock` is the library that gives it its own
    /// clock.
    pub(crate) async fn launch(
        run: &Arc<RunDir>,
        program: &Path,
        plan: &NodePlan,
        clock: Option<&Path>,
    ) -> Result<Self, TopologyError> {
        let dir = run.path().join(&plan.name);
        std::fs::create_dir(&dir).map_err(TopologyError::io("create", &dir))?;
        for (file, content) in &plan.files {
            let path = dir.join(file);
            std::fs::write(&path, content).map_err(TopologyError::io("write", &path))?;
        }
        let (mut program, mut args) = (program.to_owned(), plan.args.clone());
        if let Some(library) = clock {
            clock::set(&dir, Duration::ZERO)?;
            // `env` becomes the server, with the same process id.
            let mut all = clock::arguments(library, &dir);
            all.push(program.display().to_string());
            all.append(&mut args);
            (program, args) = (PathBuf::from("env"), all);
        }
        let supervisor = Supervisor::spawn(run.path(), &dir, &program, &args).await?;
        Ok(Self {
            name: plan.name.clone(),
            program,
            args,
            dir,
            has_clock: clock.is_some(),
            run: Arc::clone(run),
            supervisor: Mutex::new(supervisor),
        })
    }

    pub(crate) async fn pid(&self) -> Option<u32> {
        match self.supervisor.lock().await.life() {
            Life::Running(pid) => pid.as_raw_nonzero().get().try_into().ok(),
            Life::Starting | Life::Exited(_) | Life::Lost => None,
        }
    }

    /// Stops the server, and waits until it stands still. Until then it may read from one
    /// connection, and it would continue with only that one after a thaw.
    pub(crate) async fn freeze(&self) -> Result<(), TopologyError> {
        self.signal(Signal::STOP).await?;
        let pid = self.pid().await.ok_or_else(|| self.not_running())?;
        let deadline = Instant::now() + STILL_WITHIN;
        while !stands_still(pid) {
            if Instant::now() >= deadline {
                return Err(TopologyError::NotReached {
                    what: format!("{} standing still", self.name),
                    within: STILL_WITHIN,
                    last_seen: "it ran on after SIGSTOP".to_owned(),
                });
            }
            sleep(Duration::from_millis(1)).await;
        }
        Ok(())
    }

    pub(crate) async fn thaw(&self) -> Result<(), TopologyError> {
        self.signal(Signal::CONT).await
    }

    pub(crate) fn set_clock_ahead(&self, ahead: Duration) -> Result<(), TopologyError> {
        if self.has_clock {
            clock::set(&self.dir, ahead)
        } else {
            Err(clock::missing())
        }
    }

    /// Ends the server at once and waits until it is gone.
    pub(crate) async fn crash(&self) -> Result<(), TopologyError> {
        let supervisor = self.supervisor.lock().await;
        if !supervisor.signal(Signal::KILL) {
            return Err(self.not_running());
        }
        self.wait_end(&supervisor, END_WITHIN).await
    }

    /// Asks the server to end; ends it by force after `grace`.
    pub(crate) async fn stop(&self, grace: Duration) -> Result<(), TopologyError> {
        let supervisor = self.supervisor.lock().await;
        // A frozen process would not see the request.
        if !supervisor.signal(Signal::CONT) || !supervisor.signal(Signal::TERM) {
            return Err(self.not_running());
        }
        if supervisor.ended(grace).await {
            return Ok(());
        }
        supervisor.signal(Signal::KILL);
        self.wait_end(&supervisor, END_WITHIN).await
    }

    /// Starts an ended server again, with the files it left.
    pub(crate) async fn start(&self) -> Result<(), TopologyError> {
        let mut supervisor = self.supervisor.lock().await;
        if let Life::Starting | Life::Running(_) = supervisor.life() {
            return Err(TopologyError::WrongState {
                node: self.name.clone(),
                state: "already running",
                hint: "stop or crash it first",
            });
        }
        let next = Supervisor::spawn(self.run.path(), &self.dir, &self.program, &self.args).await?;
        std::mem::replace(&mut *supervisor, next).hand_over();
        Ok(())
    }

    /// How the server ended, unless it is running.
    pub(crate) async fn ending(&self) -> Option<String> {
        match self.supervisor.lock().await.life() {
            Life::Starting | Life::Running(_) => None,
            Life::Exited(code @ 129..) => Some(format!("signal {}", code - 128)),
            Life::Exited(code) => Some(format!("exit code {code}")),
            Life::Lost => Some("an unknown status: its supervisor is gone".to_owned()),
        }
    }

    /// The last lines of the server's output.
    pub(crate) fn last_output(&self) -> String {
        crate::topology::log::tail(&self.output())
    }

    pub(crate) fn output(&self) -> String {
        let path = self.dir.join("output.log");
        match std::fs::read(&path) {
            Ok(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
            Err(error) => format!("(cannot read {}: {error})", path.display()),
        }
    }

    /// Starts the teardown without waiting for it.
    pub(crate) fn begin_end(&mut self) {
        self.supervisor.get_mut().begin_end();
    }

    async fn signal(&self, signal: Signal) -> Result<(), TopologyError> {
        if self.supervisor.lock().await.signal(signal) {
            Ok(())
        } else {
            Err(self.not_running())
        }
    }

    async fn wait_end(
        &self,
        supervisor: &Supervisor,
        within: Duration,
    ) -> Result<(), TopologyError> {
        if supervisor.ended(within).await {
            return Ok(());
        }
        Err(TopologyError::NotReached {
            what: format!("end of {}", self.name),
            within,
            last_seen: "the process is still there".to_owned(),
        })
    }

    fn not_running(&self) -> TopologyError {
        TopologyError::WrongState {
            node: self.name.clone(),
            state: "not running",
            hint: "start it first",
        }
    }
}

/// Whether a signal has stopped all threads of a process. Assumed to be true on systems that do not
/// tell.
fn stands_still(pid: u32) -> bool {
    let Ok(threads) = std::fs::read_dir(format!("/proc/{pid}/task")) else {
        return true;
    };
    threads.flatten().all(|thread| {
        // The state follows the name, which is in parentheses and may contain any character.
        let stat = std::fs::read_to_string(thread.path().join("stat")).unwrap_or_default();
        let state = stat
            .rsplit_once(") ")
            .map(|(_, rest)| rest.starts_with('T'));
        // A thread that is gone cannot run.
        state.unwrap_or(true)
    })
}
