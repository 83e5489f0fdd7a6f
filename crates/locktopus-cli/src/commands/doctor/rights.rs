//! The permissions that locks need: one `ACL SETUSER` line for a URL, or the page that explains.

use locktopus::url::BackendUrl;

use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::visible;

/// Explains which permission is for what, with names that begin with [`NAMESPACE_OF_THE_PAGE`].
const PAGE: &str = include_str!("acl.md");
const NAMESPACE_OF_THE_PAGE: &str = "app:";

/// Commands that locks of every kind need on every deployment, and the connect-time checks.
const COMMANDS: &str = "+eval +evalsha +time +ping +get +set +del +exists +pexpire +pexpireat +pttl \
     +hset +hget +hdel +hexists +hkeys +hgetall +hmget +zadd +zrem +zpopmin +zrange +zcard +zrank +zscore \
     +linsert +lpos +lrange +lrem +rpush +lindex +lpush +hlen +hsetnx +pexpiretime +incrby +decrby \
     +scan +type +strlen +persist +info";
const CLUSTER: &str = "+cluster|slots +asking";
const DATABASE: &str = "+select";
const PLAIN_MESSAGES: &str = "+publish +subscribe +unsubscribe +pubsub|numsub";
const SHARDED_MESSAGES: &str = "+spublish +ssubscribe +sunsubscribe +pubsub|shardnumsub";
const REPLICATED: &str = "+wait +role ~locktopus_mark*";
/// For quarantine, and for the nodes of a quorum.
const HISTORY: &str = "~locktopus_history*";
const QUARANTINED_CLUSTER: &str = "+cluster|nodes";

/// Beginnings of keys and channels. A lock's name follows, in braces unless it contains some.
const BEFORE_NAMES: [&str; 15] = [
    "~redisson_lock_token:",
    "~locktopus_queue:",
    "~locktopus_waiters:",
    "~redisson_lock_queue:",
    "~redisson_lock_timeout:",
    "~locktopus_holders:",
    "~locktopus_kind:",
    "~locktopus_done:",
    "~locktopus_fence:",
    "&redisson_lock__channel:",
    "&locktopus_inbox:",
    "&locktopus_native:",
    "&locktopus_mutex__channel:",
    "&redisson_rwlock:",
    "&redisson_sc:",
];
/// The same, where the name is always in braces.
const BEFORE_BRACES: [&str; 2] = [
    "~locktopus_instance:",
    "&redisson_countdownlatch__channel__",
];

/// The user of some URLs, and what it needs.
pub(super) struct Rights {
    user: Option<String>,
    namespace: String,
    /// Needed for the deployment and the safety mode.
    more: Vec<&'static str>,
    has_sentinels: bool,
}

impl Rights {
    /// Reads the first URL. Several are the nodes of a quorum. Connects to nothing, because the
    /// user may not be able to.
    pub(super) fn of(urls: &[String]) -> Result<Self, Failure> {
        let url = urls.first().map_or("", String::as_str);
        let checked = url.parse::<BackendUrl>();
        checked.map_err(|error| Failure::new(Exit::Config, error.to_string()))?;
        let (place, query) = url.split_once('?').unwrap_or((url, ""));
        let Some((scheme, place)) = place.split_once("://") else {
            let problem = "memory: has no users; give the URL of a server";
            return Err(Failure::usage(problem));
        };
        let scheme = scheme.to_ascii_lowercase();
        let option = |name: &str| {
            let mut options = query.split('&').filter_map(|option| option.split_once('='));
            let found = options.find(|(key, _)| *key == name);
            found.map_or_else(String::new, |(_, value)| decoded(value))
        };
        let (address, path) = place.split_once('/').unwrap_or((place, ""));
        let login = address.rsplit_once('@').map(|(login, _)| login);
        let user = login.and_then(|login| login.split(':').next()).map(decoded);
        let (is_cluster, has_sentinels) = (scheme.contains("cluster"), scheme.contains("sentinel"));
        let database = if scheme.contains("unix") {
            option("db")
        } else {
            let behind_master = path.split('/').nth(usize::from(has_sentinels));
            behind_master.unwrap_or_default().to_owned()
        };
        let mut more = Vec::new();
        if is_cluster {
            more.push(CLUSTER);
        }
        more.push(match is_cluster && option("pubsub") != "plain" {
            true => SHARDED_MESSAGES,
            false => PLAIN_MESSAGES,
        });
        if database.parse().is_ok_and(|number: u32| number > 0) {
            more.push(DATABASE);
        }
        match &*option("safety") {
            "replicated" => more.push(REPLICATED),
            "quarantine" if is_cluster => more.extend([HISTORY, QUARANTINED_CLUSTER]),
            "quarantine" => more.push(HISTORY),
            _ if urls.len() > 1 => more.push(HISTORY),
            _ => {}
        }
        Ok(Self {
            user: user.filter(|user| !user.is_empty()),
            namespace: option("namespace"),
            more,
            has_sentinels,
        })
    }

    /// The line. A user that the URL does not name gets a password to fill in.
    pub(super) fn line(&self) -> String {
        let user = match &self.user {
            Some(user) => format!("{} on", visible(user)),
            None => "locks on >PASSWORD".to_owned(),
        };
        let mut words = vec![format!("ACL SETUSER {user} resetkeys resetchannels -@all")];
        words.push(COMMANDS.to_owned());
        words.extend(self.more.iter().map(|rights| (*rights).to_owned()));
        if self.namespace.is_empty() {
            words.push("~* &*".to_owned());
            return words.join(" ");
        }
        let names = pattern(&self.namespace);
        words.push(format!("~{names} ~{{{names}"));
        let before = BEFORE_NAMES.iter();
        words.extend(before.map(|before| format!("{before}{{{names} {before}{names}")));
        let before = BEFORE_BRACES.iter();
        words.extend(before.map(|before| format!("{before}{{{names}")));
        words.join(" ")
    }

    /// What to do with the line.
    pub(super) fn advice(&self) -> String {
        let mut advice = "paste it into redis-cli on every server".to_owned();
        if self.user.is_none() {
            advice.push_str(", with a password of your own, and put locks:PASSWORD@ into the URL");
        }
        if self.namespace.is_empty() {
            advice.push_str("; it permits all keys, because the URL has no namespace=");
        }
        if self.has_sentinels {
            advice.push_str("; sentinels have their own users, which --explain shows");
        }
        advice
    }

    /// The page for this namespace. Only on the page in the repository are pipes escaped, because
    /// they are in cells of tables.
    pub(super) fn page(&self) -> String {
        let page = PAGE.replace("\\|", "|");
        if self.namespace.is_empty() {
            return page;
        }
        page.replace(NAMESPACE_OF_THE_PAGE, &self.namespace)
    }
}

/// Matches names that begin with this. Bytes that are special in patterns or to redis-cli become
/// `?`, which matches any byte: patterns cannot contain spaces.
fn pattern(namespace: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_graphic() && !b"*?[\\\"'".contains(&byte);
    let bytes = namespace.bytes();
    let plain = bytes.map(|byte| {
        if is_plain(byte) {
            char::from(byte)
        } else {
            '?'
        }
    });
    plain.chain(['*']).collect()
}

/// Decodes `%20` and the like.
fn decoded(text: &str) -> String {
    let (mut bytes, mut rest) = (Vec::new(), text.as_bytes());
    while let [first, behind @ ..] = rest {
        let code = behind.get(..2).filter(|_| *first == b'%');
        let code = code.and_then(|code| std::str::from_utf8(code).ok());
        match code.and_then(|code| u8::from_str_radix(code, 16).ok()) {
            Some(byte) => {
                bytes.push(byte);
                rest = &behind[2..];
            }
            None => {
                bytes.push(*first);
                rest = behind;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn rights(url: &str) -> Rights {
        Rights::of(&[url.to_owned()]).unwrap()
    }

    fn words(text: &str) -> BTreeSet<String> {
        let words = text.split([' ', '`', '\n']);
        let rights = words.filter(|word| word.starts_with(['+', '~', '&']) && word.len() > 1);
        rights.map(str::to_owned).collect()
    }

    #[test]
    fn the_lines_permit_what_the_page_lists() {
        let mut printed = BTreeSet::new();
        for url in [
            "redis://h/1?namespace=app:&safety=replicated",
            "redis-cluster://h?namespace=app:&pubsub=plain",
            "redis-cluster://h?namespace=app:&safety=quarantine",
        ] {
            printed.extend(words(&rights(url).line()));
        }
        // In sentences a right is only mentioned. The users of sentinels come last.
        let page = PAGE.replace("\\|", "|");
        let (page, _of_sentinels) = page.split_once("ACL SETUSER watcher").unwrap();
        let mut is_code = false;
        let listed = page.lines().filter(|line| {
            is_code ^= line.starts_with("```");
            is_code || line.starts_with(['|', '-', ' '])
        });
        let listed: BTreeSet<_> = listed.flat_map(words).collect();
        assert_eq!(printed, listed);
    }

    #[test]
    fn the_line_is_for_the_url() {
        let line = rights("redis://app%2Dx:s3cret@h?namespace=my%20shop:").line();
        let begins = "ACL SETUSER app-x on resetkeys resetchannels -@all +eval ";
        assert!(line.starts_with(begins), "{line}");
        let all = words(&line);
        for word in [
            "~my?shop:*",
            "~{my?shop:*",
            "&locktopus_inbox:{my?shop:*",
            "+publish",
        ] {
            assert!(all.contains(word), "{word}: {line}");
        }
        for word in [
            "+select",
            "+wait",
            "~locktopus_history*",
            "+asking",
            "+spublish",
        ] {
            assert!(!all.contains(word), "{word}: {line}");
        }
        assert!(!line.contains("s3cret"));
        for url in [
            "redis://h/2",
            "redis-sentinel://h/m/2",
            "redis+unix:///s?db=2",
        ] {
            assert!(rights(url).line().contains(" +select ~* &*"), "{url}");
        }
        let quorum = ["redis://a", "redis://b", "redis://c"].map(str::to_owned);
        let line = Rights::of(&quorum).unwrap().line();
        assert!(line.starts_with("ACL SETUSER locks on >PASSWORD ") && line.contains(HISTORY));
        assert_eq!(
            Rights::of(&["memory:".to_owned()]).err().unwrap().exit,
            Exit::Usage
        );
    }

    #[test]
    fn the_page_is_for_the_namespace_in_use() {
        assert!(
            PAGE.contains("~app:*"),
            "the page has changed its namespace"
        );
        let page = rights("redis://h?namespace=shop:").page();
        assert!(page.contains("~shop:*") && !page.contains("app:*"));
        for page in [page, rights("redis://h").page()] {
            assert!(page.contains("+cluster|slots") && !page.contains("\\|"));
        }
    }
}
