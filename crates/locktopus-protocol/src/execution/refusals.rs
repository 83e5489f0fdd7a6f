//! What a server's refusal proves.

use crate::client::ClientError;
use crate::wire::{other_kind, too_few};

/// How the errors begin with which our scripts refuse something before their first write.
const UNTOUCHED: &str = "nothing was written: ";

/// Whether an error proves that nothing was written. Any other may have stopped a script half-way:
/// the same command fails before the first write of one script and after that of another.
pub(super) fn was_refused(code: &str, message: &str) -> bool {
    // The server looks at these before a script's first write, and never again.
    let by_server = matches!(
        code,
        "OOM" | "NOAUTH" | "WRONGPASS" | "MOVED" | "ASK" | "CROSSSLOT"
    );
    // A command that is refused by its name, or for the keys it names, did not begin.
    let never_began =
        refuses_scripts(message) || KEYS_REFUSED.iter().any(|text| message.starts_with(text));
    // Our scripts' own answers. `WRONGKIND` comes before the first write. Before `TOOFEW` an
    // attempt may have granted a dead holder's permits to others, and told them, but it wrote
    // nothing for itself. The server's WRONGTYPE says less: a script may meet it at a key beside
    // the lock, after a write.
    let by_script = [other_kind::CODE, too_few::CODE].contains(&code);
    by_server || never_began || by_script || message.starts_with(UNTOUCHED)
}

/// How servers refuse a user the keys of a command. Of a command within a script they say it in
/// other words.
const KEYS_REFUSED: [&str; 2] = [
    "this user has no permissions to access one of the keys",
    "No permissions to access a key",
];

/// Whether a server, or a proxy before it, refused the command that runs scripts. No script can
/// call that command, and an error from within a script names the script.
pub(super) fn refuses_scripts(message: &str) -> bool {
    let message = message.to_ascii_lowercase();
    // Servers repeat the arguments of a command that they do not have: here, a script.
    let (said, _) = message.split_once("with args").unwrap_or((&message, ""));
    let names = ["evalsha", "'eval'", "`eval`", "\"eval\""];
    names.iter().any(|name| said.contains(name)) && !said.contains("script:")
}

/// Transient refusals. The node did not run the script: servers look at these, too, before the
/// first write of a script, and never again.
pub(crate) fn is_passing(code: &str) -> bool {
    matches!(
        code,
        "MOVED"
            | "ASK"
            | "TRYAGAIN"
            | "CLUSTERDOWN"
            | "LOADING"
            | "READONLY"
            | "MASTERDOWN"
            | "NOREPLICAS"
            | "BUSY"
            | "MISCONF"
    )
}

/// Whether the server does not know a script by its digest.
pub(super) fn is_unknown_script(error: &ClientError) -> bool {
    matches!(error, ClientError::Rejected { code, .. } if code == "NOSCRIPT")
}
