//! Metrics as an operator sees them: `scripts/observe`.

use std::fs;
use std::path::{Path, PathBuf};

use crate::cargo::Built;
use crate::checks::fencing::free_port;
use crate::failure::{Done, Failure, fail, missing};
use crate::packages::{apt, install, may_install};
use crate::shell::{Shell, say};
use crate::{files, running, screenshots};

pub(crate) const HELP: &str = "\
Checks the metrics as an operator uses them: a real Prometheus scrapes the recipe and runs every query of the dashboard and
of the alert rules.

Usage: scripts/observe [--picture]

  --picture   then collects for five minutes and takes pictures of its pages (scripts/screenshots); installs the
              Prometheus package for them, but does not start it

Uses the Prometheus in PATH, else unpacks Debian's package without installing it, so no daemon is left behind.
LOCKTOPUS_NO_INSTALL=1 forbids that. Without Prometheus it says so and checks nothing.";

const RECIPE: &str = "examples/recipes/prometheus";

pub(crate) fn main(sh: &Shell, arguments: &[String]) -> Done {
    let picture = match arguments {
        [] => false,
        [only] if only == "--picture" => true,
        [first, ..] => fail!("unknown option {first} (see --help)"),
    };
    let programs = match ensure_prometheus(sh, picture) {
        Err(Failure::Missing(why)) if picture => fail!("no picture without a Prometheus: {why}"),
        Err(Failure::Missing(why)) => {
            return sh.not_checked(format!("dashboard and alert rules: {why}"));
        }
        found => found?,
    };
    for (check, rules) in [("check", "alerts.yml"), ("test", "alerts.test.yml")] {
        sh.cmd(programs.join("promtool"))
            .args([check, "rules"])
            .arg(format!("{RECIPE}/{rules}"))
            .run()?;
    }
    let address = start_both(sh, &programs)?;
    sh.cmd("python3")
        .arg(format!("{RECIPE}/ask.py"))
        .arg(&address)
        .arg(format!("{RECIPE}/dashboard.json"))
        .run()?;
    if picture {
        say("collecting for five minutes, which is what the graphs show");
        running::pause(300)?;
        screenshots::prometheus_at(&sh.again("screenshots"), &address)?;
    }
    Ok(())
}

/// The folder of prometheus and promtool. Prometheus's web pages need the whole package.
fn ensure_prometheus(sh: &Shell, picture: bool) -> Done<PathBuf> {
    if picture && !Path::new("/usr/share/prometheus/web/templates").exists() {
        install(sh, &["prometheus"])?;
    }
    if let Some(found) = sh.find("prometheus").filter(|_| sh.have("promtool")) {
        return Ok(found.parent().map(PathBuf::from).unwrap_or_default());
    }
    if may_install(sh).is_err() {
        missing!("no prometheus in PATH, and it may not be fetched");
    }
    let room = sh.scratch()?;
    let download = || sh.cmd("apt-get").args(["download", "prometheus"]).dir(room).works();
    if !(download() || apt(sh, &["update"]).works() && download()) {
        missing!("apt-get cannot fetch the package prometheus");
    }
    let unpacked = room.join("prometheus");
    sh.cmd("dpkg").arg("--extract").args(files::below(room, ".deb")?).arg(&unpacked).run()?;
    Ok(unpacked.join("usr/bin"))
}

/// Starts the recipe and a Prometheus that scrapes it; returns the address of Prometheus.
fn start_both(sh: &Shell, programs: &Path) -> Done<String> {
    let build = sh.cargo("build").args(["--quiet", "--bin", "prometheus"]);
    let build = build.env("CARGO_TARGET_DIR", sh.target());
    let recipe = Built::by(build.dir(sh.root.join("examples/recipes")))?.program("prometheus")?;
    let (metrics, port, room) = (free_port()?, free_port()?, sh.scratch()?);
    let recipe = sh.cmd(recipe).env("METRICS_LISTEN", format!("127.0.0.1:{metrics}"));
    recipe.into_file(&room.join("recipe.log"))?.start()?;
    // In one folder, because the web pages show the path of the rules.
    fs::copy(sh.root.join(RECIPE).join("alerts.yml"), room.join("alerts.yml"))?;
    fs::write(
        room.join("prometheus.yml"),
        format!(
            "global: {{ scrape_interval: 1s, evaluation_interval: 1s }}\nrule_files: [alerts.yml]\nscrape_configs:\n  - job_name: shop\n    \
             static_configs: [{{ targets: [\"127.0.0.1:{metrics}\"] }}]\n"
        ),
    )?;
    let prometheus = sh
        .cmd(programs.join("prometheus"))
        .args(["--config.file=prometheus.yml", "--storage.tsdb.path=data"]);
    let prometheus = prometheus.arg(format!("--web.listen-address=127.0.0.1:{port}")).dir(room);
    prometheus.into_file(&room.join("prometheus.log"))?.start()?;
    Ok(format!("http://127.0.0.1:{port}"))
}
