//! Finds or installs the programs that tests start, before anything is built.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::PathBuf;

use super::summary::Summary;
use crate::failure::{Done, need, why_missing};
use crate::shell::Shell;
use crate::{engine, tools};

/// What to do if a program cannot be installed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Without {
    /// Fail.
    End,
    /// Leave its tests out, which fails in CI.
    LeaveOut,
    /// Leave its tests out, which fails only where everything is required: these programs get
    /// libraries from registries of their own.
    Skip,
}

/// Something that tests start and a bare Debian lacks.
struct Need {
    /// In CI the tests find no other program. `lib/NAME` is a folder in /usr/lib.
    programs: Programs,
    ensure: Ensure,
    what: &'static str,
    /// If the user sets this variable to a reason, these tests are skipped, in CI too.
    variable: &'static str,
    without: Without,
    /// Only `neighbour_libraries` needs it.
    neighbours: bool,
}

const NEEDS: [Need; 11] = [
    // The door script has found them.
    Need::always(
        &["cargo", "rustc", "rustdoc", "cc", "gcc", "ld", "as", "ar"],
        |_| Ok(()),
        "Rust is missing",
    ),
    Need::always(&["git"], tools::git, "git is missing and cannot be installed"),
    Need::or_left_out(
        &["redis-server", "valkey-server"],
        |sh| tools::server(sh).map(drop),
        SERVERS,
        "",
    ),
    Need::or_left_out(&["docker"], engine::containers, CONTAINERS, "LOCKTOPUS_SKIP_POD"),
    Need::or_left_out(
        &["redis-cli", "valkey-cli"],
        tools::redis_cli,
        "TLS handshakes by redis-cli",
        "LOCKTOPUS_SKIP_REDIS_CLI",
    ),
    Need::or_left_out(
        &["java", "javac", "mvn"],
        tools::jdk,
        "tests with Redisson",
        "LOCKTOPUS_SKIP_JDK",
    ),
    Need::or_left_out(
        &["lib/faketime"],
        tools::clock_library,
        "tests that set a server's clock",
        "LOCKTOPUS_SKIP_FAKETIME",
    ),
    Need::or_left_out(
        &["python3"],
        tools::redis_py,
        "tests with redis-py",
        "LOCKTOPUS_SKIP_REDIS_PY",
    )
    .of_neighbours(),
    Need::of_registries(
        &["python3"],
        tools::pip,
        "tests with other libraries of Python",
        "LOCKTOPUS_SKIP_PIP",
    ),
    Need::of_registries(
        &["node", "npm"],
        tools::node,
        "tests with libraries of Node",
        "LOCKTOPUS_SKIP_NODE",
    ),
    Need::of_registries(&["go"], tools::go, "tests with libraries of Go", "LOCKTOPUS_SKIP_GO"),
];

const SERVERS: &str = "tests with servers as child processes";
const CONTAINERS: &str = "tests with servers in containers";

/// Tests of the exact behaviour of Redis 7.0: how much memory a key takes, and the words of its
/// errors. Other servers may differ.
const OF_7_0: [&str; 2] = ["a_name_costs_what_the_page_says", "many_names_cost_what_the_page_says"];

/// The programs that were found.
#[derive(Debug, Default)]
pub(super) struct Found {
    pub(super) servers: bool,
    pub(super) containers: bool,
    /// Arguments after `--` for every test program.
    pub(super) filters: Vec<String>,
}

pub(super) fn look(sh: &Shell, only: Option<&str>, summary: &mut Summary) -> Done<Found> {
    let mut found = Found::default();
    for one in NEEDS.iter().filter(|one| !one.neighbours || only == Some("neighbour_libraries")) {
        let there = one.look(sh, summary)?;
        match one.what {
            SERVERS => found.servers = there,
            CONTAINERS => found.containers = there,
            _ => {}
        }
    }
    if found.servers {
        let program = sh.var("LOCKTOPUS_SERVER_BIN").unwrap_or_default();
        found.filters = of_other_servers(&sh.cmd(program).arg("--version").read()?, summary);
    }
    Ok(found)
}

/// The tests to leave out on a server with this version.
fn of_other_servers(version: &str, summary: &mut Summary) -> Vec<String> {
    if version.contains("v=7.0.") {
        return Vec::new();
    }
    // Not a failure: the user wants to know about the other tests on this server.
    summary.outcome(&format!(
        "SKIPPED  tests of what Redis 7.0 does to the byte, on another server: {}",
        OF_7_0.join(" ")
    ));
    OF_7_0.iter().flat_map(|name| ["--skip".to_owned(), (*name).to_owned()]).collect()
}

type Programs = &'static [&'static str];
type Ensure = fn(&Shell) -> Done;

impl Need {
    const fn always(programs: Programs, ensure: Ensure, what: &'static str) -> Self {
        Self { programs, ensure, what, variable: "", without: Without::End, neighbours: false }
    }

    const fn or_left_out(
        programs: Programs,
        ensure: Ensure,
        what: &'static str,
        variable: &'static str,
    ) -> Self {
        Self { programs, ensure, what, variable, without: Without::LeaveOut, neighbours: false }
    }

    const fn of_neighbours(self) -> Self {
        Self { neighbours: true, ..self }
    }

    const fn of_registries(
        programs: Programs,
        ensure: Ensure,
        what: &'static str,
        variable: &'static str,
    ) -> Self {
        Self { programs, ensure, what, variable, without: Without::Skip, neighbours: true }
    }

    /// Whether it is there. If its variable gives a reason, or it cannot be installed, its tests
    /// are left out.
    fn look(&self, sh: &Shell, summary: &mut Summary) -> Done<bool> {
        if let Some(reason) = sh.var(self.variable) {
            // The user's decision, so not a failure.
            summary.outcome(&format!("SKIPPED  {}: {} says: {reason}", self.what, self.variable));
            return Ok(false);
        }
        let looked = (self.ensure)(sh);
        if self.without == Without::End {
            return need(looked, self.what).map(|()| true);
        }
        let Some(why) = why_missing(looked)? else {
            return Ok(true);
        };
        match self.without {
            Without::Skip => summary.do_without(sh, self.what, &why),
            _ => summary.leave_out(sh, self.what, &why),
        }
        if !self.variable.is_empty() {
            sh.export(self.variable, why);
        }
        Ok(false)
    }
}

/// In CI tests find only the programs of a bare Debian and those of `NEEDS`. Any other program of
/// this machine would be missing on a fresh one. Elsewhere nothing is hidden, because users may
/// have a linker or a compiler wrapper of their own. Returns the path for the tests.
pub(super) fn confined(sh: &Shell) -> Done<Option<String>> {
    if !sh.in_ci() || !sh.have("dpkg-query") {
        return Ok(None);
    }
    let folder = sh.scratch()?.join("tools");
    fs::create_dir(&folder)?;
    let needed = NEEDS.iter().flat_map(|need| need.programs).filter_map(|program| sh.find(program));
    for program in bare_programs(sh)?.into_iter().chain(needed) {
        let link = folder.join(program.file_name().unwrap_or_default());
        let _ = fs::remove_file(&link);
        symlink(program, link)?;
    }
    Ok(Some(folder.to_string_lossy().into_owned()))
}

/// The programs of a freshly installed Debian.
fn bare_programs(sh: &Shell) -> Done<Vec<PathBuf>> {
    let query = |arguments: &[&str]| sh.cmd("dpkg-query").args(arguments).read();
    let packages = query(&["--show", "--showformat", "${Essential} ${Priority} ${Package}\n"])?;
    let bare = packages.lines().map(|line| line.split(' ').collect::<Vec<_>>());
    let bare = bare
        .filter(|words| words[0] == "yes" || words[1] == "required")
        .map(|words| words[2].to_owned());
    let files = query(
        &["--listfiles"]
            .map(str::to_owned)
            .into_iter()
            .chain(bare)
            .collect::<Vec<_>>()
            .iter()
            .map(String::as_str)
            .collect::<Vec<_>>(),
    )?;
    let folders = ["/bin", "/sbin", "/usr/bin", "/usr/sbin"].map(PathBuf::from);
    let programs = files
        .lines()
        .map(PathBuf::from)
        .filter(|file| file.parent().is_some_and(|parent| folders.iter().any(|one| one == parent)));
    // Packages choose these two links when they are installed.
    Ok(programs.chain(["awk", "which"].iter().filter_map(|name| sh.find(name))).collect())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::files;
    use crate::made_up::{self, program, said, shell, with};

    /// The programs and library folders that sources name as something to start or to load.
    fn named(sh: &Shell) -> BTreeSet<String> {
        let mut names = BTreeSet::new();
        for folder in ["crates", "testing", "bench-harness", "proof", "examples"] {
            for file in files::below(&sh.root.join(folder), ".rs").unwrap() {
                let text = fs::read_to_string(file).unwrap();
                for start in ["Command::new(\"", "in_path(\"", "java_program(\""] {
                    let strings =
                        text.split(start).skip(1).filter_map(|rest| rest.split('"').next());
                    let plain = |name: &&str| {
                        name.starts_with(|letter: char| letter.is_ascii_lowercase())
                            && name.chars().all(|letter| {
                                letter.is_ascii_lowercase()
                                    || letter.is_ascii_digit()
                                    || ".-".contains(letter)
                            })
                    };
                    names.extend(strings.filter(plain).map(str::to_owned));
                }
                for start in ["\"/usr/lib", "\"/usr/local/lib"] {
                    let strings =
                        text.split(start).skip(1).filter_map(|rest| rest.split('"').next());
                    names.extend(
                        strings.map(|path| format!("lib/{}", path.rsplit('/').next().unwrap())),
                    );
                }
            }
        }
        names
    }

    /// Names in sources that neither a bare Debian nor `NEEDS` (without these) provides. Recipes
    /// run at night, which asks for PostgreSQL.
    fn unknown(sh: &Shell, without: &str) -> Vec<String> {
        let mut known: BTreeSet<_> =
            NEEDS.iter().flat_map(|need| need.programs).map(|name| (*name).to_owned()).collect();
        known.extend(
            bare_programs(sh)
                .unwrap()
                .iter()
                .map(|file| file.file_name().unwrap().to_string_lossy().into_owned()),
        );
        known.insert("lib/postgresql".to_owned());
        // Without it the test of the page's units reads them itself, and runs what they start.
        known.insert("systemd-analyze".to_owned());
        known.remove(without);
        named(sh).difference(&known).cloned().collect()
    }

    /// Tests use nothing that a fresh machine lacks: each program they start is looked for before
    /// anything is built.
    #[test]
    fn every_program_that_tests_start_is_installed() {
        let sh = made_up::on_the_real_path();
        assert!(
            sh.have("dpkg-query"),
            "this system has no dpkg-query, which knows the programs of a bare Debian"
        );
        assert!(named(&sh).len() > 10, "the sources name no other programs than {:?}", named(&sh));
        assert_eq!(
            unknown(&sh, ""),
            Vec::<String>::new(),
            "tests use what scripts/test does not install"
        );
        assert_eq!(unknown(&sh, "git"), ["git"]);
        assert_eq!(unknown(&sh, "lib/faketime"), ["lib/faketime"]);
    }

    #[test]
    fn in_ci_tests_find_no_other_programs() {
        let sh = made_up::on_the_real_path();
        assert_eq!(confined(&sh), Ok(None), "programs are hidden from tests outside CI");
        sh.export("CI", "true");
        let folder = PathBuf::from(confined(&sh).unwrap().unwrap());
        for name in ["sh", "cc", "awk", "cargo"] {
            assert!(crate::shell::is_program(&folder.join(name)), "tests would find no {name}");
        }
        assert!(
            !folder.join("jq").exists(),
            "tests would find jq, which nothing installs for them"
        );
    }

    fn it(ensure: fn(&Shell) -> Done, without: Without) -> Need {
        Need {
            programs: &[],
            ensure,
            what: "it",
            variable: "LOCKTOPUS_SKIP_IT",
            without,
            neighbours: false,
        }
    }

    fn gone(_: &Shell) -> Done {
        crate::failure::missing!("gone")
    }

    /// Looks for this need with these variables; returns the summary and the number of failures.
    fn looked(variables: &[(&str, &str)], one: &Need) -> (String, usize, Shell) {
        let sh = with(variables);
        let mut summary = Summary::new(&sh);
        one.look(&sh, &mut summary).unwrap();
        (summary.outcome.join("; "), summary.failures.len(), sh)
    }

    #[test]
    fn what_is_missing_is_a_failure_in_ci_unless_somebody_decided() {
        let left_out = "SKIPPED  it: gone".to_owned();
        let (words, failures, sh) = looked(&[("CI", "true")], &it(gone, Without::LeaveOut));
        assert_eq!(
            (words, failures, sh.var("LOCKTOPUS_SKIP_IT").as_deref()),
            (left_out.clone(), 1, Some("gone"))
        );
        let (words, failures, _) = looked(&[], &it(gone, Without::LeaveOut));
        assert_eq!((words, failures), (left_out.clone(), 0));
        let (words, failures, _) = looked(&[("CI", "true")], &it(gone, Without::Skip));
        assert_eq!((words, failures), (left_out, 0));
        assert_eq!(looked(&[("LOCKTOPUS_REQUIRE_ALL", "1")], &it(gone, Without::Skip)).1, 1);
        let (words, failures, _) =
            looked(&[("CI", "true"), ("LOCKTOPUS_SKIP_IT", "mine")], &it(gone, Without::LeaveOut));
        assert_eq!((words.as_str(), failures), ("SKIPPED  it: LOCKTOPUS_SKIP_IT says: mine", 0));
        let (words, failures, sh) = looked(&[("CI", "true")], &it(|_| Ok(()), Without::LeaveOut));
        assert_eq!((words.as_str(), failures, sh.var("LOCKTOPUS_SKIP_IT")), ("", 0, None));
        assert_eq!(
            said(it(gone, Without::End).look(&shell(), &mut Summary::new(&shell()))),
            "it: gone"
        );
    }

    /// If installing is forbidden, a missing program is reported, for each need outside the
    /// system's own folders.
    #[test]
    fn nothing_is_installed_where_that_is_forbidden() {
        for need in NEEDS
            .iter()
            .filter(|need| need.programs.contains(&"redis-cli") || need.programs.contains(&"go"))
        {
            let (words, _, _) = looked(&[("CI", "true"), ("LOCKTOPUS_NO_INSTALL", "1")], need);
            if !crate::shell::is_program("/usr/local/go/bin/go".as_ref()) {
                assert_eq!(words, format!("SKIPPED  {}: LOCKTOPUS_NO_INSTALL is set", need.what));
            }
        }
    }

    #[test]
    fn an_old_go_is_none() {
        let sh = with(&[("LOCKTOPUS_NO_INSTALL", "1")]);
        for (version, fits) in [
            ("go1.22", true),
            ("go1.22.1", true),
            ("go1.100.0", true),
            ("go2.0", true),
            ("go1.19.8", false),
            ("go1.21.13", false),
            ("", false),
        ] {
            program(&sh, "go", &format!("echo {version}"));
            assert_eq!(tools::go(&sh).is_ok(), fits, "{version}");
        }
    }

    /// A named program is used if it is a server, and otherwise refused before any build.
    #[test]
    fn a_server_that_was_named_must_be_one() {
        let sh = shell();
        for version in [
            "Redis server v=7.0.15 sha=00000000:0 malloc=jemalloc-5.3.0 bits=64",
            "Valkey server v=8.1.1",
        ] {
            let file = program(&sh, "named", &format!("echo '{version}'"));
            sh.export("LOCKTOPUS_SERVER_BIN", file.to_string_lossy());
            assert_eq!(tools::server(&sh), Ok(version.to_owned()));
        }
        program(&sh, "named", "exit 1");
        assert!(
            said(tools::server(&sh))
                .contains("is no redis-server or valkey-server: its --version says ''")
        );
        sh.export("LOCKTOPUS_SERVER_BIN", "/no/such");
        assert_eq!(
            said(tools::server(&sh)),
            "LOCKTOPUS_SERVER_BIN names /no/such, which is not a program"
        );
    }

    /// Tests of Redis 7.0 alone are left out on another server, and each of these tests exists.
    #[test]
    fn other_servers_need_not_be_redis_7_0() {
        let sh = shell();
        let mut summary = Summary::new(&sh);
        assert!(of_other_servers("Redis server v=7.0.15 sha=00000000:0", &mut summary).is_empty());
        assert!(summary.outcome.is_empty());
        for version in
            ["Redis server v=8.0.2 sha=00000000:0", "Valkey server v=9.1.2 sha=00000000:0"]
        {
            assert_eq!(
                of_other_servers(version, &mut summary),
                ["--skip", OF_7_0[0], "--skip", OF_7_0[1]]
            );
            assert!(summary.outcome.pop().unwrap().contains(OF_7_0[1]));
        }
        let sources = ["crates", "testing"]
            .map(|folder| files::below(&sh.root.join(folder), ".rs").unwrap())
            .concat();
        let all: String = sources.iter().map(|file| fs::read_to_string(file).unwrap()).collect();
        for name in OF_7_0 {
            assert!(all.contains(&format!("fn {name}()")), "there is no test {name}");
        }
    }
}
