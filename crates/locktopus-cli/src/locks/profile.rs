//! The names of other libraries on the command line.

use locktopus::MutexProfile;

/// What `--profile` says: a library, and behind a colon what it needs.
pub(super) fn parse(text: &str) -> Result<MutexProfile, String> {
    let (library, argument) = match text.split_once(':') {
        Some((library, argument)) => (library, Some(argument)),
        None => (text, None),
    };
    let refused = |error: locktopus::NameError| error.to_string();
    let profile = match (library, argument) {
        ("shedlock", environment) => {
            return MutexProfile::shedlock(environment.unwrap_or("default")).map_err(refused);
        }
        ("spring", Some(registry)) => return MutexProfile::spring(registry).map_err(refused),
        ("spring", None) => {
            return Err("write spring:KEY, with the key of the lock registry".to_owned());
        }
        ("sherlock", Some(namespace)) => {
            return MutexProfile::sherlock_in(namespace).map_err(refused);
        }
        (_, Some(_)) => {
            return Err(
                "only shedlock, spring and sherlock take something behind a colon".to_owned(),
            );
        }
        ("sherlock", None) => MutexProfile::sherlock(),
        ("redis-py", None) => MutexProfile::redis_py(),
        ("redsync", None) => MutexProfile::redsync(),
        ("node-redlock", None) => MutexProfile::node_redlock(),
        ("redlock-rb", None) => MutexProfile::redlock_rb(),
        ("redlock-net", None) => MutexProfile::redlock_net(),
        ("medallion", None) => MutexProfile::medallion(),
        ("rslock", None) => MutexProfile::rslock(),
        ("redis-lock", None) => MutexProfile::redis_lock(),
        ("distributed-lock-redis", None) => MutexProfile::distributed_lock_redis(),
        ("bsm-redislock", None) => MutexProfile::bsm_redislock(),
        ("lyokato", None) => MutexProfile::lyokato(),
        ("pottery", None) => MutexProfile::pottery(),
        ("redis-semaphore", None) => MutexProfile::redis_semaphore(),
        ("redlock-universal", None) => MutexProfile::redlock_universal(),
        ("python-redis-lock", None) => MutexProfile::python_redis_lock(),
        (_, None) => return Err("no such library; --help lists them".to_owned()),
    };
    Ok(profile)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn libraries_are_found_by_their_names() {
        assert_eq!(parse("redis-py").unwrap(), MutexProfile::redis_py());
        assert_eq!(
            parse("shedlock").unwrap(),
            MutexProfile::shedlock("default").unwrap()
        );
        assert_eq!(
            parse("spring:orders").unwrap(),
            MutexProfile::spring("orders").unwrap()
        );
        for wrong in ["spring", "spring:", "redis-py:x", "zookeeper", ""] {
            parse(wrong).unwrap_err();
        }
    }
}
