//! A command's view of the machine: the repository, the environment, and programs.

use std::cell::{OnceCell, RefCell};
use std::collections::BTreeMap;
use std::io::{self, Read, Write};
use std::os::unix::fs::DirBuilderExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Instant, SystemTime, UNIX_EPOCH};
use std::{env, fs};

use crate::failure::{Done, Failure, fail};
use crate::running;

/// Prints a line; it is no failure if the reader has closed the pipe.
pub(crate) fn say(line: impl AsRef<str>) {
    if cfg!(test) {
        // The test harness captures this.
        println!("{}", line.as_ref());
    } else {
        let _ = writeln!(io::stdout(), "{}", line.as_ref());
    }
}

const LIBRARIES: &str = "LD_LIBRARY_PATH";

/// The environment of a command, and of the programs that it starts.
#[derive(Debug)]
pub(crate) struct Shell {
    /// The name of the command: warnings begin with it.
    pub(crate) name: String,
    /// The top of the repository.
    pub(crate) root: PathBuf,
    /// The directory of the call: paths among its options are relative to it.
    pub(crate) from: PathBuf,
    variables: RefCell<BTreeMap<String, String>>,
    scratch: OnceCell<PathBuf>,
    begun: Instant,
}

impl Shell {
    pub(crate) fn new(
        name: &str,
        root: &Path,
        from: &Path,
        variables: BTreeMap<String, String>,
    ) -> Self {
        Self {
            name: name.to_owned(),
            root: root.to_owned(),
            from: from.to_owned(),
            variables: RefCell::new(variables),
            scratch: OnceCell::new(),
            begun: Instant::now(),
        }
    }

    /// The shell of this process. Programs must not see the variables that `cargo run` sets for
    /// xtask itself.
    pub(crate) fn of_this_process(name: &str) -> Done<Self> {
        let of_xtask = |name: &str| {
            name.starts_with("CARGO_PKG_")
                || name.starts_with("CARGO_MANIFEST_")
                || ["CARGO", "CARGO_PRIMARY_PACKAGE", LIBRARIES].contains(&name)
        };
        let variables = env::vars_os()
            .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
            .filter(|(name, _)| !of_xtask(name));
        let root = env::current_dir()?;
        let mut sh = Self::new(name, &root, &root, variables.collect());
        if let Some(own) = sh.var("LOCKTOPUS_LIBRARY_PATH") {
            sh.export(LIBRARIES, own);
        }
        sh.from = sh.var("LOCKTOPUS_CALLED_FROM").map_or(root, PathBuf::from);
        Ok(sh)
    }

    /// A shell for another command that this one calls: the other's exports stay there.
    pub(crate) fn again(&self, name: &str) -> Self {
        Self::new(name, &self.root, &self.root, self.variables.borrow().clone())
    }

    /// A variable, unless it is not set or empty.
    pub(crate) fn var(&self, name: &str) -> Option<String> {
        self.variables.borrow().get(name).filter(|value| !value.is_empty()).cloned()
    }

    pub(crate) fn export(&self, name: &str, value: impl Into<String>) {
        self.variables.borrow_mut().insert(name.to_owned(), value.into());
    }

    pub(crate) fn unset(&self, name: &str) {
        self.variables.borrow_mut().remove(name);
    }

    /// Whether this runs in CI, where something missing is a failure and not a reason to skip.
    pub(crate) fn in_ci(&self) -> bool {
        self.var("CI").is_some_and(|value| value != "false")
    }

    /// Whether nothing may be left out, not even downloads: at night. For each change, a registry
    /// that does not respond is not the change's fault.
    pub(crate) fn all_required(&self) -> bool {
        self.var("LOCKTOPUS_REQUIRE_ALL").is_some()
    }

    /// Notes that something was left out because it could not be downloaded.
    pub(crate) fn not_checked(&self, what: impl AsRef<str>) -> Done {
        let what = what.as_ref();
        if self.all_required() {
            fail!("LOCKTOPUS_REQUIRE_ALL is set, and this cannot be checked: {what}");
        }
        say(format!("NOT CHECKED: {what}"));
        Ok(())
    }

    pub(crate) fn warn(&self, words: impl AsRef<str>) {
        eprintln!("{}: {}", self.name, words.as_ref());
    }

    /// A program of the path.
    pub(crate) fn find(&self, program: &str) -> Option<PathBuf> {
        if program.contains('/') {
            return is_program(Path::new(program)).then(|| program.into());
        }
        let path = self.var("PATH")?;
        env::split_paths(&path).map(|folder| folder.join(program)).find(|file| is_program(file))
    }

    pub(crate) fn have(&self, program: &str) -> bool {
        self.find(program).is_some()
    }

    /// A folder for this run. It is removed at the end, after the programs that use it have ended.
    pub(crate) fn scratch(&self) -> Done<&Path> {
        if let Some(made) = self.scratch.get() {
            return Ok(made);
        }
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
        let folder =
            env::temp_dir().join(format!("locktopus-{}-{number}-{now}", std::process::id()));
        fs::DirBuilder::new().mode(0o700).create(&folder)?;
        let gone = folder.clone();
        running::at_end(move || drop(fs::remove_dir_all(gone)));
        Ok(self.scratch.get_or_init(|| folder))
    }

    /// Cargo's target folder.
    pub(crate) fn target(&self) -> PathBuf {
        self.var("CARGO_TARGET_DIR").map_or_else(|| self.root.join("target"), PathBuf::from)
    }

    pub(crate) fn seconds(&self) -> u64 {
        self.begun.elapsed().as_secs()
    }

    /// A program to start, in the top folder of the repository, without input.
    pub(crate) fn cmd(&self, program: impl AsRef<Path>) -> Cmd {
        let program = program.as_ref();
        // Looked up here, because the path may have grown since this process began.
        let found = self.find(&program.to_string_lossy()).unwrap_or_else(|| program.to_owned());
        let mut command = Command::new(found);
        command
            .env_clear()
            .envs(&*self.variables.borrow())
            .current_dir(&self.root)
            .stdin(Stdio::null());
        Cmd { foreground: false, command, shown: program.display().to_string() }
    }

    /// A command of cargo, with `--locked`.
    pub(crate) fn cargo(&self, command: &str) -> Cmd {
        self.cmd("cargo").args([command, "--locked"])
    }

    /// The same as root.
    pub(crate) fn as_root(&self, program: &str) -> Cmd {
        if is_root() { self.cmd(program) } else { self.cmd("sudo").args(["-n", program]) }
    }

    /// Whether commands may run as root without a password prompt.
    pub(crate) fn can_be_root(&self) -> bool {
        is_root() || (self.have("sudo") && self.cmd("sudo").args(["-n", "true"]).works())
    }
}

/// Unit tests end without undoing what was registered.
#[cfg(test)]
impl Drop for Shell {
    fn drop(&mut self) {
        if let Some(folder) = self.scratch.get() {
            let _ = fs::remove_dir_all(folder);
        }
    }
}

pub(crate) fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

pub(crate) fn is_program(file: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    fs::metadata(file).is_ok_and(|about| about.is_file() && about.permissions().mode() & 0o111 != 0)
}

pub(crate) fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// Minutes and seconds.
pub(crate) fn minutes(seconds: u64) -> String {
    format!("{} min {} s", seconds / 60, seconds % 60)
}

/// The last lines of a text, joined into one.
pub(crate) fn tail(text: &str, lines: usize) -> String {
    let all: Vec<_> = text.lines().collect();
    all[all.len().saturating_sub(lines)..].join(" ")
}

/// A program to start.
#[derive(Debug)]
pub(crate) struct Cmd {
    foreground: bool,
    command: Command,
    shown: String,
}

impl Cmd {
    pub(crate) fn arg(mut self, argument: impl AsRef<std::ffi::OsStr>) -> Self {
        self.command.arg(argument);
        self
    }

    pub(crate) fn args<A: AsRef<std::ffi::OsStr>>(
        mut self,
        arguments: impl IntoIterator<Item = A>,
    ) -> Self {
        self.command.args(arguments);
        self
    }

    pub(crate) fn env(mut self, name: &str, value: impl AsRef<std::ffi::OsStr>) -> Self {
        self.command.env(name, value);
        self
    }

    pub(crate) fn dir(mut self, folder: impl AsRef<Path>) -> Self {
        self.command.current_dir(folder);
        self
    }

    /// Lets it use the terminal, which only the foreground process group may do.
    pub(crate) fn foreground(mut self) -> Self {
        self.foreground = true;
        self.command.stdin(Stdio::inherit());
        self
    }

    /// Discards its output.
    pub(crate) fn quiet(mut self) -> Self {
        self.command.stdout(Stdio::null()).stderr(Stdio::null());
        self
    }

    /// Writes its output into this file.
    pub(crate) fn into_file(mut self, file: &Path) -> Done<Self> {
        let file = fs::File::create(file)?;
        self.command.stdout(file.try_clone()?).stderr(file);
        Ok(self)
    }

    fn spawn(&mut self) -> Done<Child> {
        if let Some(code) = running::interrupted() {
            return Err(Failure::Code(code));
        }
        if !self.foreground {
            // Signals go to the group, and with it to everything that the program starts.
            self.command.process_group(0);
        }
        let child = self
            .command
            .spawn()
            .map_err(|error| format!("{} cannot be started: {error}", self.shown))?;
        running::started(child.id());
        if running::interrupted().is_some() {
            // The signal came before the group was registered.
            running::end(child.id());
        }
        Ok(child)
    }

    /// Starts it and leaves it running until this process ends.
    pub(crate) fn start(mut self) -> Done {
        let mut child = self.spawn()?;
        running::at_end(move || {
            running::end(child.id());
            let _ = child.wait();
        });
        Ok(())
    }

    /// Runs it, and returns its exit code.
    pub(crate) fn code(mut self) -> Done<i32> {
        let mut child = self.spawn()?;
        finish(&mut child)
    }

    /// Runs it, and fails with its exit code.
    pub(crate) fn run(self) -> Done {
        match self.code()? {
            0 => Ok(()),
            code => Err(Failure::Code(code)),
        }
    }

    /// Whether it succeeds; its output is not shown.
    pub(crate) fn works(self) -> bool {
        self.quiet().code() == Ok(0)
    }

    /// Its standard output, if it succeeds.
    pub(crate) fn read(mut self) -> Done<String> {
        self.command.stdout(Stdio::piped());
        let mut child = self.spawn()?;
        let mut said = Vec::new();
        if let Some(output) = child.stdout.as_mut() {
            output.read_to_end(&mut said)?;
        }
        match finish(&mut child)? {
            0 => Ok(String::from_utf8_lossy(&said).trim_end().to_owned()),
            code => Err(Failure::Code(code)),
        }
    }

    /// Whether it succeeded, and its output.
    pub(crate) fn told(self) -> Done<(bool, String)> {
        let mut said = Vec::new();
        let code = self.each_piece(|piece| said.extend_from_slice(piece))?;
        Ok((code == 0, String::from_utf8_lossy(&said).trim_end().to_owned()))
    }

    /// Shows its output as it arrives, and adds it to `log`. Returns the exit code.
    pub(crate) fn recorded(self, log: &mut Vec<u8>) -> Done<i32> {
        self.each_piece(|piece| {
            let mut shown = io::stdout();
            let _ = shown.write_all(piece).and_then(|()| shown.flush());
            log.extend_from_slice(piece);
        })
    }

    fn each_piece(mut self, mut take: impl FnMut(&[u8])) -> Done<i32> {
        let (mut reader, writer) = io::pipe()?;
        self.command.stdout(writer.try_clone()?).stderr(writer);
        let mut child = self.spawn()?;
        // The command holds the other end of the pipe, too.
        drop(self);
        let mut piece = [0; 8192];
        loop {
            match reader.read(&mut piece)? {
                0 => return finish(&mut child),
                read => take(&piece[..read]),
            }
        }
    }
}

fn finish(child: &mut Child) -> Done<i32> {
    use std::os::unix::process::ExitStatusExt;
    let status = child.wait()?;
    running::ended(child.id());
    match running::interrupted() {
        Some(code) => Err(Failure::Code(code)),
        None => Ok(status.code().or_else(|| Some(128 + status.signal()?)).unwrap_or(1)),
    }
}
