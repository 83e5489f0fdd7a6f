//! The container image of docker/Dockerfile.

use std::fs;
use std::net::TcpStream;
use std::path::Path;
use std::time::{Duration, Instant};

use super::archive::{RUST_LIBRARY, THIRD_PARTY};
use super::platform::Platform;
use super::{PROGRAMS, Packaging};
use crate::checks::fencing::free_port;
use crate::failure::{Done, fail, missing};
use crate::packages::{ensure, install};
use crate::shell::{Cmd, Shell};
use crate::{engine, files, running, tools};

/// Mozilla's certificate authorities, without those added on this machine.
const AUTHORITIES: &str = "/usr/share/ca-certificates/mozilla";
/// An unprivileged user that no host has.
const USER: &str = "65532:65532";

impl Packaging<'_> {
    fn tag(&self, platform: Platform) -> String {
        format!("locktopus:{}-{}", self.version, platform.arch)
    }

    fn docker(&self) -> Cmd {
        self.sh.cmd("docker")
    }

    pub(super) fn image(&self, platform: Platform) -> Done {
        engine::engine(self.sh)?;
        let client = client(self.sh)?;
        let there = || Path::new(AUTHORITIES).exists();
        ensure(self.sh, there, &["ca-certificates"], "no authorities after installing them")?;
        let context = self.room.join(format!("image-{}", platform.arch));
        let tree = self.room.join(self.named(&PROGRAMS[0], platform));
        for file in ["locktopus", "LICENSE-MIT", "LICENSE-APACHE", THIRD_PARTY, RUST_LIBRARY] {
            let place =
                if file == "locktopus" { context.clone() } else { context.join("licences") };
            self.copy(
                tree.join(file),
                &place.join(Path::new(file).file_name().unwrap_or_default()),
            )?;
        }
        let mut authorities = String::new();
        for file in files::below(Path::new(AUTHORITIES), ".crt")? {
            authorities += fs::read_to_string(file)?.trim_end();
            authorities += "\n";
        }
        fs::write(context.join("ca-certificates.crt"), authorities)?;
        self.sh.cmd("chmod").args(["-R", "u=rwX,go=rX"]).arg(&context).run()?;
        let tag = self.tag(platform);
        let build = self.sh.cmd(client).env("DOCKER_BUILDKIT", "1").args(["build", "--quiet"]);
        let build = build.args(["--file=docker/Dockerfile", "--tag", &tag]);
        let build = build.arg(format!("--platform=linux/{}", platform.arch));
        let build = build.arg(format!("--build-arg=VERSION={}", self.version));
        let (built, said) = build.arg(&context).told()?;
        if !built {
            fail!("docker build of {tag}: {said}");
        }
        let inspect = self.docker().args(["image", "inspect", &tag, "--format"]);
        let said = inspect.arg("{{.Architecture}} {{.Config.User}}").read()?;
        if said != format!("{} {USER}", platform.arch) {
            fail!("{tag} is for the processor and the user '{said}'");
        }
        let file = self.out.join(format!("locktopus-{}-image-{}.tar", self.version, platform.arch));
        self.docker().args(["save", &tag, "--output"]).arg(&file).run()?;
        self.compress(&file).map(drop)
    }

    /// Starts a server, and takes a lock on it with the image.
    pub(super) fn try_image(&self, platform: Platform) -> Done {
        tools::server(self.sh)?;
        let port = free_port()?;
        let server = self.sh.cmd(self.sh.var("LOCKTOPUS_SERVER_BIN").unwrap_or_default());
        let server =
            server.args(["--bind", "127.0.0.1", "--save", "", "--port", &port.to_string()]);
        server.dir(&self.room).into_file(&self.room.join("server.log"))?.start()?;
        await_server(port)?;
        let tag = self.tag(platform);
        let locktopus = |url: String, words: &[&str]| {
            let run = self.docker().args(["run", "--rm", "--read-only", "--cap-drop=ALL"]);
            let run = run.args(["--network=host", "--env", &format!("LOCKTOPUS_URL={url}"), &tag]);
            run.args(words).told()
        };
        // The image contains no other program to run.
        let words = ["run", "job", "--", "/usr/bin/locktopus", "status", "job"];
        let (worked, said) = locktopus(format!("redis://127.0.0.1:{port}"), &words)?;
        if !worked || !said.contains("held") {
            fail!("the image takes no lock: {said}");
        }
        // The server speaks no TLS, so this fails; but not because authorities are missing.
        let (_, said) = locktopus(format!("rediss://127.0.0.1:{port}"), &["status", "job"])?;
        if said.contains("authorities") {
            fail!("the image has no certificates: {said}");
        }
        Ok(())
    }
}

/// Finds a client with BuildKit. Without it, an engine builds only for its own processor.
fn client(sh: &Shell) -> Done<&'static str> {
    let works = |client: &&str| {
        sh.have(client)
            && sh.cmd(client).env("DOCKER_BUILDKIT", "1").args(["build", "--help"]).works()
    };
    let find = || ["docker", "/usr/bin/docker"].into_iter().find(works);
    if find().is_none() {
        install(sh, &["docker-buildx"])?;
    }
    match find() {
        Some(client) => Ok(client),
        None => missing!("no docker client here has BuildKit"),
    }
}

fn await_server(port: u16) -> Done {
    let end = Instant::now() + Duration::from_secs(30);
    while TcpStream::connect(("127.0.0.1", port)).is_err() {
        if Instant::now() > end {
            fail!("the server on port {port} does not answer");
        }
        running::pause(1)?;
    }
    Ok(())
}
