//! Many locks for a long time.

use rustix::process::{Resource, Rlimit, setrlimit};

use super::harness;
use crate::failure::{Done, need};
use crate::shell::Shell;
use crate::tools;

pub(crate) const HELP: &str = "\
Holds 100,000 locks, serves 10,000 waiters and takes 10,000 locks a second, through both clients at once, while the server
restarts. Then it releases everything and checks that nothing is left: no key, waiter, channel, task or open file, and no
grown memory. If the machine is too slow for these numbers, it fails and says so.

Usage: scripts/soak [OPTION...]

Without options it runs for 20 minutes, as at night; before a release for an hour. Options go to `locktopus-bench soak`;
`--help` lists them. Examples:

  scripts/soak --minutes 60
  scripts/soak --smoke                    # a small run of some 40 seconds: does everything still work?
  scripts/soak --lasts 5m --rate 2000     # a smaller machine, or a busy one
  scripts/soak --smoke --leak key,task    # plants leaks that must be found

The server is a child process of a redis-server or valkey-server program. If there is none, it is installed from the
system's packages if permitted.

LOCKTOPUS_SERVER_BIN=PATH   use this server program
LOCKTOPUS_NO_INSTALL=1      install nothing";

pub(crate) fn main(sh: &Shell, options: &[String]) -> Done {
    need(tools::server(sh), "no server program")?;
    let program = harness::build(sh, "plain", &[])?;
    // A file for each connection, on both sides, and some to spare.
    let files = Some(65_536);
    let _ = setrlimit(Resource::Nofile, Rlimit { current: files, maximum: files });
    harness::run(sh, &program, "soak", options, None)
}
