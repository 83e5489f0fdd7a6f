//! The fenced write on a real PostgreSQL from the system's packages.

use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use locktopus_servers::{in_ci, reason_in, skipped};

type Result<T = ()> = std::result::Result<T, Box<dyn std::error::Error>>;

/// The newest server of the system, or the one that `LOCKTOPUS_POSTGRES_BIN` names.
fn programs() -> Option<PathBuf> {
    if let Some(chosen) = std::env::var_os("LOCKTOPUS_POSTGRES_BIN") {
        return Some(chosen.into());
    }
    let versions = std::fs::read_dir("/usr/lib/postgresql").ok()?;
    let version = |path: &Path| path.file_name()?.to_str()?.parse::<u32>().ok();
    let versions = versions.filter_map(|entry| Some(entry.ok()?.path()));
    let newest = versions.max_by_key(|path| version(path))?.join("bin");
    newest.join("initdb").exists().then_some(newest)
}

/// A program of the server. It refuses to run as root, so root runs it as the user that the package
/// created.
fn program(path: &Path) -> Command {
    let root = Command::new("id").arg("-u").output();
    if root.is_ok_and(|output| output.stdout == b"0\n") {
        let mut command = Command::new("setpriv");
        command.args([
            "--reuid=postgres",
            "--regid=postgres",
            "--clear-groups",
            "--",
        ]);
        command.arg(path);
        return command;
    }
    Command::new(path)
}

/// A server in a folder of its own; dropping it removes both.
struct Server {
    programs: PathBuf,
    folder: PathBuf,
    port: u16,
}

impl Server {
    fn start(programs: PathBuf) -> Result<Self> {
        let folder = std::env::temp_dir().join(format!("locktopus-pg-{}", std::process::id()));
        let port = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
        let server = Self {
            programs,
            folder,
            port,
        };
        server.run(
            "initdb",
            &["--auth=trust", "--username=postgres", "--no-sync"],
        )?;
        let options = format!("-F -h 127.0.0.1 -p {port} -k {}", server.folder.display());
        server.run("pg_ctl", &["-w", "-t", "60", "-o", &options, "start"])?;
        Ok(server)
    }

    fn run(&self, name: &str, arguments: &[&str]) -> Result {
        let mut command = program(&self.programs.join(name));
        command.arg("-D").arg(&self.folder).args(arguments);
        // The server that it starts keeps its inherited files open.
        let status = command
            .current_dir("/")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        let status = status.status()?;
        if !status.success() {
            return Err(format!("{name} ended with {status}").into());
        }
        Ok(())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // There is no one to report an error to.
        let _ = self.run("pg_ctl", &["-w", "-m", "immediate", "stop"]);
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

#[test]
fn the_late_holder_does_not_write() -> Result {
    let Some(programs) = programs() else {
        let reason = reason_in("LOCKTOPUS_SKIP_POSTGRES");
        if in_ci() && reason.is_none() {
            return Err("no PostgreSQL server: install the package postgresql".into());
        }
        let why = reason.unwrap_or_else(|| "nothing is in /usr/lib/postgresql".to_owned());
        skipped("a test with PostgreSQL", &why);
        return Ok(());
    };
    let server = Server::start(programs)?;
    let database = format!(
        "host=127.0.0.1 port={} user=postgres dbname=postgres",
        server.port
    );
    let output = Command::new(env!("CARGO_BIN_EXE_fenced_postgres"))
        .env_remove("LOCKTOPUS_URL")
        .env("DATABASE_URL", database)
        .output()?;
    let said = String::from_utf8(output.stdout)?;
    let failed = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{said}{failed}");
    assert!(said.contains("the next holder wrote: true"), "{said}");
    assert!(said.contains("the late holder wrote: false"), "{said}");
    assert!(said.contains("the balance is 50"), "{said}");
    Ok(())
}
