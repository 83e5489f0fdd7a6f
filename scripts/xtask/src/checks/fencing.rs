//! The statements of docs/fencing.md, on databases.

use std::path::Path;
use std::process::Command;
use std::{fs, net};

use crate::failure::{Done, fail, need};
use crate::running;
use crate::shell::{Shell, is_root, tail};
use crate::{packages, tools};

pub(crate) const HELP: &str = "\
Runs the SQL statements of docs/fencing.md on SQLite and on its own PostgreSQL, and checks what the page says about them.

Usage: .ci/check-fencing

LOCKTOPUS_SKIP_POSTGRES=REASON   use only SQLite";

const PAGE: &str = "docs/fencing.md";
const STATEMENTS: &str = "examples/recipes/fencing/statements.py";

pub(crate) fn main(sh: &Shell, _: &[String]) -> Done {
    packages::program(sh, "python3", "python3")?;
    let file = sh.scratch()?.join("fences.db");
    sh.cmd("timeout").args(["120", "python3", STATEMENTS, PAGE, "sqlite"]).arg(file).run()?;
    if let Some(reason) = sh.var("LOCKTOPUS_SKIP_POSTGRES") {
        return sh.not_checked(format!("the statements of {PAGE} on PostgreSQL: {reason}"));
    }
    let programs =
        need(tools::postgres(sh), &format!("no PostgreSQL for the statements of {PAGE}"))?;
    on_postgres(sh, &programs)
}

/// A port that is free at the moment.
pub(crate) fn free_port() -> Done<u16> {
    Ok(net::TcpListener::bind(("127.0.0.1", 0))?.local_addr()?.port())
}

/// PostgreSQL refuses to run as root, so root runs it as the user that its package created.
const AS_POSTGRES: [&str; 5] =
    ["setpriv", "--reuid=postgres", "--regid=postgres", "--clear-groups", "--"];

fn on_postgres(sh: &Shell, programs: &Path) -> Done {
    let room = sh.scratch()?.join("pg");
    let (data, log, port) = (room.join("data"), room.join("log"), free_port()?.to_string());
    fs::create_dir(&room)?;
    if is_root() {
        // Only root may enter the folder around it.
        sh.cmd("chmod").arg("711").arg(sh.scratch()?).run()?;
        sh.cmd("chown").arg("postgres:").arg(&room).run()?;
    }
    let prefix: &[&str] = if is_root() { &AS_POSTGRES } else { &["env"] };
    let as_postgres = |program: &str| {
        sh.cmd(prefix[0])
            .args(&prefix[1..])
            .arg(programs.join(program))
            .arg("-D")
            .arg(&data)
            .dir("/")
    };
    let (made, said) =
        as_postgres("initdb").args(["--auth=trust", "--username=postgres", "--no-sync"]).told()?;
    if !made {
        fail!("{said}");
    }
    let stop = (
        prefix.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>(),
        programs.join("pg_ctl"),
        data.clone(),
    );
    running::at_end(move || {
        let (prefix, program, data) = stop;
        let mut stop = Command::new(&prefix[0]);
        stop.args(&prefix[1..])
            .arg(program)
            .arg("-D")
            .arg(data)
            .args(["-w", "-m", "immediate", "stop"])
            .current_dir("/");
        let _ = stop.output();
    });
    let options = format!("-F -h 127.0.0.1 -p {port} -k {}", room.display());
    let start = as_postgres("pg_ctl")
        .args(["-w", "-t", "60", "-l"])
        .arg(&log)
        .args(["-o", &options, "start"]);
    if start.into_file(&sh.scratch()?.join("pg_ctl.log"))?.code()? != 0 {
        fail!("{}", tail(&fs::read_to_string(log).unwrap_or_default(), 5));
    }
    let psql = programs.join("psql");
    sh.cmd("timeout")
        .args(["120", "python3", STATEMENTS, PAGE, "postgres"])
        .arg(psql)
        .arg(port)
        .run()
}
