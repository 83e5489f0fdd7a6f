//! System packages: installed with apt-get, as root or through a sudo without a password, and not
//! at all if `LOCKTOPUS_NO_INSTALL` is set.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use crate::failure::{Done, missing, need};
use crate::running;
use crate::shell::{Cmd, Shell, is_root, say};

/// Fails with the reason if no packages may be installed here.
pub(crate) fn may_install(sh: &Shell) -> Done {
    if sh.var("LOCKTOPUS_NO_INSTALL").is_some() {
        missing!("LOCKTOPUS_NO_INSTALL is set");
    } else if !sh.have("apt-get") {
        missing!("this system has no apt-get");
    } else if !sh.can_be_root() {
        missing!("this is neither root nor a user whose sudo asks for no password");
    }
    Ok(())
}

pub(crate) fn apt(sh: &Shell, arguments: &[&str]) -> Cmd {
    sh.as_root("env")
        .args(["DEBIAN_FRONTEND=noninteractive", "apt-get", "-qq", "-o", "DPkg::Lock::Timeout=120"])
        .args(arguments)
}

/// Installs packages without starting their services: Debian's servers would occupy their usual
/// ports, and starting the engine fails the installation on a machine without an init system.
pub(crate) fn install(sh: &Shell, packages: &[&str]) -> Done {
    may_install(sh)?;
    say(format!("installing from the system's packages: {}", packages.join(" ")));
    let _policy = Policy::set(sh)?;
    let install = || apt(sh, &["install", "--yes", "--no-install-recommends"]).args(packages);
    // If the package lists are missing or old, update them once and try again.
    if install().works() {
        return Ok(());
    }
    if apt(sh, &["update"]).code()? != 0 {
        sh.warn("apt-get update failed");
    }
    let (installed, said) = install().told()?;
    if !installed {
        sh.warn(said);
        missing!("apt-get could not install {}", packages.join(" "));
    }
    Ok(())
}

/// Installs packages unless `there` holds already, and fails if it does not hold afterwards.
pub(crate) fn ensure(
    sh: &Shell,
    there: impl Fn() -> bool,
    packages: &[&str],
    otherwise: &str,
) -> Done {
    if there() {
        return Ok(());
    }
    install(sh, packages)?;
    if !there() {
        missing!("{otherwise}");
    }
    Ok(())
}

/// The same for a program that the command cannot do without.
pub(crate) fn program(sh: &Shell, name: &str, package: &str) -> Done {
    let there = ensure(sh, || sh.have(name), &[package], "it is not there after installing it");
    need(there, &format!("{name} is missing and cannot be installed"))
}

/// Debian runs this program before a package starts its server. An existing one stays.
const POLICY: &str = "/usr/sbin/policy-rc.d";
const REFUSAL: &str = "#!/bin/sh\ncase $1 in redis* | valkey* | postgresql* | docker* | containerd* | prometheus*) exit 101 ;; esac\n";

#[derive(Debug)]
struct Policy {
    ours: bool,
}

impl Policy {
    fn set(sh: &Shell) -> Done<Self> {
        if Path::new(POLICY).exists() {
            return Ok(Self { ours: false });
        }
        let ready = sh.scratch()?.join("policy-rc.d");
        fs::write(&ready, REFUSAL)?;
        fs::set_permissions(&ready, fs::Permissions::from_mode(0o755))?;
        let ready = ready.to_string_lossy().into_owned();
        sh.as_root("cp").args([&ready, POLICY]).run()?;
        running::at_end(remove_policy);
        Ok(Self { ours: true })
    }
}

impl Drop for Policy {
    fn drop(&mut self) {
        if self.ours {
            remove_policy();
        }
    }
}

/// Removes our own policy, but not a newer one.
fn remove_policy() {
    if fs::read_to_string(POLICY).is_ok_and(|text| text == REFUSAL) {
        let mut remove = Command::new(if is_root() { "rm" } else { "sudo" });
        if !is_root() {
            remove.args(["-n", "rm"]);
        }
        let _ = remove.args(["-f", "--", POLICY]).status();
    }
}
