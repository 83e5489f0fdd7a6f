//! The container engine, and the images of the servers in containers.

use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::failure::{Done, Failure, missing};
use crate::packages::{install, may_install};
use crate::running;
use crate::shell::{Shell, is_root, say, tail};

const SERVER_IMAGES: [&str; 4] =
    ["redis:7.0", "redis:8.0", "valkey/valkey:8.1", "valkey/valkey:9.1"];
const HELPER_IMAGE: &str = "locktopus/nft:1";

/// Makes sure that a container engine answers, with all images.
pub(crate) fn containers(sh: &Shell) -> Done {
    engine(sh)?;
    images(sh)
}

fn answers(sh: &Shell) -> bool {
    sh.have("docker") && sh.cmd("timeout").args(["20", "docker", "version"]).works()
}

/// Whether the pid in this file belongs to a process of this program. A killed engine leaves the
/// file, and another process may have its pid by now.
fn runs_as(file: &Path, program: &str) -> bool {
    let Ok(pid) = fs::read_to_string(file) else {
        return false;
    };
    fs::read_to_string(format!("/proc/{}/comm", pid.trim()))
        .is_ok_and(|name| name.trim_end() == program)
}

const PID_FILES: [(&str, &str); 2] = [
    ("/var/run/docker.pid", "dockerd"),
    ("/var/run/docker/containerd/containerd.pid", "containerd"),
];

/// An engine that answers.
pub(crate) fn engine(sh: &Shell) -> Done {
    if answers(sh) {
        let version = sh.cmd("docker").args(["version", "--format", "{{.Server.Version}}"]).read();
        say(format!("container engine: {}", version.unwrap_or_else(|_| "answers".to_owned())));
        return Ok(());
    }
    install_engine(sh)?;
    if answers(sh) {
        return Ok(());
    } else if sh.var("DOCKER_HOST").is_some() {
        missing!("the container engine at DOCKER_HOST does not answer");
    } else if runs_as(Path::new(PID_FILES[0].0), PID_FILES[0].1) {
        // The engine is still starting, or serves only other users.
        if await_answer(sh, 20, None) {
            return Ok(());
        }
        missing!("a container engine runs, but gives this user no answer");
    } else if !sh.can_be_root() {
        missing!("no container engine runs, and starting one takes root");
    }
    start_engine(sh)
}

fn install_engine(sh: &Shell) -> Done {
    let docker = sh.have("docker");
    // An existing engine belongs to the user. Install one only if there is none.
    if docker
        && (sh.have("dockerd") || sh.have("/usr/sbin/dockerd") || sh.var("DOCKER_HOST").is_some())
    {
        return Ok(());
    }
    let mut packages = vec!["docker.io"];
    // Newer releases keep the client in a package of its own.
    if may_install(sh).is_ok() && sh.cmd("apt-cache").args(["show", "docker-cli"]).works() {
        packages.push("docker-cli");
    }
    install(sh, &packages)?;
    if sh.have("docker") {
        return Ok(());
    }
    // The updated package lists may have the client as a package of its own.
    install(sh, &["docker-cli"])
}

/// Waits up to `seconds` for an answer; gives up early if the engine that was started has exited.
fn await_answer(sh: &Shell, seconds: u64, mut started: Option<&mut Child>) -> bool {
    let end = Instant::now() + Duration::from_secs(seconds);
    while !answers(sh) {
        let ended = started.as_mut().is_some_and(|child| !matches!(child.try_wait(), Ok(None)));
        if Instant::now() > end || ended || running::pause(1).is_err() {
            return false;
        }
    }
    true
}

fn start_engine(sh: &Shell) -> Done {
    if Path::new("/run/systemd/system").is_dir() {
        say("starting the container engine: systemctl start docker (it stays)");
        if sh.as_root("systemctl").args(["start", "docker"]).code()? == 0
            && await_answer(sh, 60, None)
        {
            return Ok(());
        }
        missing!("the container engine was started by systemctl and does not answer this user");
    }
    // dockerd only checks whether a process with that pid lives, and refuses to start beside it.
    for (file, program) in PID_FILES {
        if !runs_as(Path::new(file), program) {
            sh.as_root("rm").args(["-f", file]).run()?;
        }
    }
    let log = sh.scratch()?.join("dockerd.log");
    let program = sh.find("dockerd").unwrap_or_else(|| "/usr/sbin/dockerd".into());
    say(format!("starting the container engine: {} (it ends with this script)", program.display()));
    // In a session of its own, so that Ctrl-C reaches only the tests, which still need the engine
    // for cleaning up.
    let output = fs::File::create(&log)?;
    let mut engine = Command::new(if is_root() { "setsid" } else { "sudo" });
    if !is_root() {
        engine.args(["-n", "setsid"]);
    }
    let engine =
        engine.arg(&program).stdin(Stdio::null()).stdout(output.try_clone()?).stderr(output);
    let mut engine = engine.spawn()?;
    let answered = await_answer(sh, 60, Some(&mut engine));
    running::at_end(move || stop_engine(engine));
    if !answered {
        let said = fs::read_to_string(&log).unwrap_or_default();
        missing!("dockerd does not answer; the end of what it wrote: {}", tail(&said, 5));
    }
    Ok(())
}

/// Stops the engine that this command started, by its own pid.
fn stop_engine(mut engine: Child) {
    if !matches!(engine.try_wait(), Ok(None)) {
        return;
    }
    let pid = engine.id().to_string();
    say(format!("stopping the container engine that was started (process {pid})"));
    // The shell's built-in `kill`, because a bare system has no such program.
    let (program, before) = if is_root() { ("sh", None) } else { ("sudo", Some(["-n", "sh"])) };
    let kill = ["-c", &format!("kill -TERM {pid}")];
    let _ = Command::new(program).args(before.into_iter().flatten()).args(kill).status();
    let end = Instant::now() + Duration::from_secs(30);
    while matches!(engine.try_wait(), Ok(None)) {
        if Instant::now() > end {
            say(format!("dockerd (process {pid}) does not end"));
            return;
        }
        running::nap();
    }
}

fn has_image(sh: &Shell, image: &str) -> bool {
    sh.cmd("docker").args(["image", "inspect", image]).works()
}

/// Pulls images from a registry, and makes the rest from packages.
fn images(sh: &Shell) -> Done {
    let mut missing = Vec::new();
    let mut registry = true;
    for image in SERVER_IMAGES.into_iter().filter(|image| !has_image(sh, image)) {
        if registry {
            say(format!("pulling {image}"));
            let (pulled, said) =
                sh.cmd("timeout").args(["120", "docker", "pull", "--quiet", image]).told()?;
            if pulled {
                continue;
            }
            if !said.contains("manifest unknown") && !said.contains("not found") {
                registry = false;
                say("no registry answers");
            }
        }
        missing.push(image);
    }
    if !(has_image(sh, HELPER_IMAGE) || registry && build_helper(sh)) {
        missing.push(HELPER_IMAGE);
    }
    if missing.is_empty() {
        return Ok(());
    }
    let names = missing.join(" ");
    say(format!("making images from packages: {names}"));
    match sh.cmd(sh.root.join("scripts/build-images")).args(missing).run() {
        Err(Failure::Code(_)) if running::interrupted().is_none() => {
            missing!("scripts/build-images could not make {names}")
        }
        made => made,
    }
}

/// Builds the helper image like the official images; the base comes from a registry.
fn build_helper(sh: &Shell) -> bool {
    say(format!("building {HELPER_IMAGE}"));
    let build = [
        "180",
        "docker",
        "build",
        "--quiet",
        "--tag",
        HELPER_IMAGE,
        "--file",
        "docker/nft.Dockerfile",
        "docker",
    ];
    sh.cmd("timeout").args(build).works()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A killed engine leaves only its pid file, and another process may have that pid.
    #[test]
    fn a_dead_engine_is_known_by_its_name() {
        let sh = crate::made_up::shell();
        let file = sh.scratch().unwrap().join("pid");
        assert!(!runs_as(&file, "xtask"));
        fs::write(&file, "").unwrap();
        assert!(!runs_as(&file, "xtask"));
        fs::write(&file, format!("{}\n", std::process::id())).unwrap();
        assert!(!runs_as(&file, "dockerd"));
        let name = fs::read_to_string("/proc/self/comm").unwrap();
        assert!(runs_as(&file, name.trim_end()));
    }
}
