//! Libraries with one string per lock, as servers see them: the commands that they send.

use locktopus::{MutexProfile, ValueEncoding};

use crate::common::raw::{Raw, Value};

/// Compares and deletes.
const DELETE: &str =
    "if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end return 0";
/// Compares and moves the expiry.
const EXPIRE: &str = "if redis.call('GET', KEYS[1]) == ARGV[1] then \
    return redis.call('PEXPIRE', KEYS[1], ARGV[2]) end return 0";
const EXPIRE_LATER: &str = "if redis.call('GET', KEYS[1]) == ARGV[1] then \
    return redis.call('PEXPIRE', KEYS[1], ARGV[2], 'GT') end return 0";
/// redis-py: only a key with an expiry; ARGV[3] says whether to replace it.
const PY_EXTEND: &str = "
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
local left = redis.call('PTTL', KEYS[1])
if left < 0 then return 0 end
redis.call('PEXPIRE', KEYS[1], ARGV[3] == '0' and ARGV[2] + left or ARGV[2])
return 1";
/// redsync: a missing lock and another owner's are different answers.
const GO_DELETE: &str = "
local value = redis.call('GET', KEYS[1])
if value == ARGV[1] then return redis.call('DEL', KEYS[1]) end
return value and 0 or -1";
/// node-redlock: several keys, all of which must be missing.
const NODE_ACQUIRE: &str = "
for _, key in ipairs(KEYS) do if redis.call('EXISTS', key) == 1 then return 0 end end
for _, key in ipairs(KEYS) do redis.call('SET', key, ARGV[1], 'PX', ARGV[2]) end
return #KEYS";
const NODE_RELEASE: &str = "
local count = 0
for _, key in ipairs(KEYS) do
  if redis.call('GET', key) == ARGV[1] then redis.pcall('DEL', key) count = count + 1 end
end
return count";
const SET_AGAIN: &str = "
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
return 1";
/// bsm/redislock: the first ARGV[3] bytes are the token.
const BSM_ACQUIRE: &str = "
if redis.call('MSETNX', KEYS[1], ARGV[1]) == 0 then
  local length = tonumber(ARGV[3])
  if redis.call('GETRANGE', KEYS[1], 0, length - 1) ~= string.sub(ARGV[1], 1, length) then return 0 end
  redis.call('SET', KEYS[1], ARGV[1])
end
redis.call('PEXPIRE', KEYS[1], ARGV[2])
return 1";
/// redlock-rb: also extends, unless ARGV[3] is yes.
const RUBY: &str = "
if (redis.call('EXISTS', KEYS[1]) == 0 and ARGV[3] == 'yes') or redis.call('GET', KEYS[1]) == ARGV[1] then
  redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
  return 1
end
return 0";
/// RedLock.net: 1 extended, 0 created, -1 another owner's.
const NET_EXTEND: &str = "
local value = redis.call('GET', KEYS[1])
if not value then return redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2]) and 0 end
if value == ARGV[1] then redis.call('PEXPIRE', KEYS[1], ARGV[2]) return 1 end
return -1";
/// Spring's registry in spin mode: a registry may acquire its own lock again.
const SPRING_ACQUIRE: &str = "
local value = redis.call('GET', KEYS[1])
if value == ARGV[1] then redis.call('PEXPIRE', KEYS[1], ARGV[2]) return true end
if not value then redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2]) return true end
return false";
const SPRING_RELEASE: &str = "
if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('UNLINK', KEYS[1]) end
return false";
const SHERLOCK_ACQUIRE: &str = "
if redis.call('SETNX', KEYS[1], ARGV[1]) == 0 then return 0 end
redis.call('EXPIRE', KEYS[1], ARGV[2] / 1000)
return 1";
const SECONDS: &str = "
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
if redis.call('TTL', KEYS[1]) < 0 then return 0 end
return redis.call('EXPIRE', KEYS[1], ARGV[2] / 1000)";

/// A library, as servers see it.
pub(crate) struct Library {
    pub(crate) name: &'static str,
    pub(crate) profile: MutexProfile,
    pub(crate) key: &'static str,
    /// A value of its form.
    pub(crate) value: &'static [u8],
    /// A script, or the `SET` that most use.
    acquire: Option<&'static str>,
    pub(crate) release: &'static str,
    extend: &'static str,
    /// The arguments of its scripts after value and milliseconds.
    further: &'static str,
    /// Whether a value of ours has its form.
    pub(crate) form: fn(&[u8]) -> bool,
}

fn library(name: &'static str, profile: MutexProfile, key: &'static str) -> Library {
    Library {
        name,
        profile,
        key,
        value: b"0123456789abcdef0123456789abcdef",
        acquire: None,
        release: DELETE,
        extend: EXPIRE,
        further: "",
        form: is_hex32,
    }
}

fn is_hex32(value: &[u8]) -> bool {
    value.len() == 32 && value.iter().all(u8::is_ascii_hexdigit)
}

fn is_uuid(value: &[u8]) -> bool {
    let groups = value.split(|byte| *byte == b'-').map(<[u8]>::len);
    groups.eq([8, 4, 4, 4, 12]) && value[14] == b'4'
}

fn is_base64(value: &[u8]) -> bool {
    value.len() == 24 && value.ends_with(b"==")
}

fn is_medallion(value: &[u8]) -> bool {
    let parts: Vec<_> = value.rsplitn(3, |byte| *byte == b'_').collect();
    parts.len() == 3 && is_hex32(parts[0]) && parts[1].iter().all(u8::is_ascii_digit)
}

fn is_shedlock(value: &[u8]) -> bool {
    let uuid = value.rsplitn(2, |byte| *byte == b':').next().unwrap();
    value.starts_with(b"ADDED:2") && value.contains(&b'@') && is_uuid(uuid)
}

pub(crate) fn libraries() -> Vec<Library> {
    let uuid = b"1b9d6bcd-bbfd-4b2d-9b5d-ab8dfbbd4bed";
    vec![
        Library {
            extend: PY_EXTEND,
            further: "1",
            ..library("redis-py", MutexProfile::redis_py(), "{}")
        },
        Library {
            value: b"q80BI0VniavN7wEjRWeJqw==",
            release: GO_DELETE,
            form: is_base64,
            ..library("redsync", MutexProfile::redsync(), "{}")
        },
        Library {
            acquire: Some(NODE_ACQUIRE),
            release: NODE_RELEASE,
            extend: SET_AGAIN,
            ..library("node-redlock", MutexProfile::node_redlock(), "{}")
        },
        Library {
            value: b"q80BI0VniavN7wEjRWeJqwwho: me",
            acquire: Some(BSM_ACQUIRE),
            further: "22",
            form: |value| value.len() == 22 + 5 && value.ends_with(b"why:7"),
            ..library(
                "bsm/redislock",
                MutexProfile::bsm_redislock_with_metadata("why:7"),
                "{}",
            )
        },
        Library {
            value: uuid,
            acquire: Some(RUBY),
            extend: RUBY,
            further: "yes",
            form: is_uuid,
            ..library("redlock-rb", MutexProfile::redlock_rb(), "{}")
        },
        Library {
            value: b"any text",
            extend: EXPIRE_LATER,
            ..library("lyokato/redlock", MutexProfile::lyokato(), "{}")
        },
        Library {
            value: uuid,
            extend: NET_EXTEND,
            form: is_uuid,
            ..library("RedLock.net", MutexProfile::redlock_net(), "redlock:{}")
        },
        Library {
            value: b"HOST_4711_0123456789abcdef0123456789abcdef",
            form: is_medallion,
            ..library("Medallion", MutexProfile::medallion(), "{}")
        },
        Library {
            value: b"\x00\xff\r\n\x80 twenty bytes..",
            extend: SET_AGAIN,
            form: |value| value.len() == 20,
            ..library("rslock", MutexProfile::rslock(), "{}")
        },
        Library {
            value: uuid,
            form: is_uuid,
            ..library(
                "distributed-lock-redis",
                MutexProfile::distributed_lock_redis(),
                "distributed-lock:{}",
            )
        },
        Library {
            value: uuid,
            form: is_uuid,
            ..library("redis-lock", MutexProfile::redis_lock(), "redlock:{}")
        },
        Library {
            value: uuid,
            form: is_uuid,
            ..library(
                "redis-semaphore",
                MutexProfile::redis_semaphore(),
                "mutex:{}",
            )
        },
        library("redlock-universal", MutexProfile::redlock_universal(), "{}"),
        Library {
            value: b"ADDED:2026-01-31T23:59:59.999Z@host:1b9d6bcd-bbfd-4b2d-9b5d-ab8dfbbd4bed",
            form: is_shedlock,
            ..library(
                "ShedLock",
                MutexProfile::shedlock("default").unwrap(),
                "job-lock:default:{}",
            )
        },
        Library {
            value: uuid,
            acquire: Some(SPRING_ACQUIRE),
            release: SPRING_RELEASE,
            form: is_uuid,
            ..library(
                "Spring",
                MutexProfile::spring("orders").unwrap(),
                "orders:{}",
            )
        },
        Library {
            value: uuid,
            form: is_uuid,
            ..library("pottery", MutexProfile::pottery(), "redlock:{}")
        },
        Library {
            value: uuid,
            acquire: Some(SHERLOCK_ACQUIRE),
            extend: SECONDS,
            form: is_uuid,
            ..library(
                "sherlock",
                MutexProfile::sherlock_in("app").unwrap(),
                "app_{}",
            )
        },
        Library {
            // Not text: every library treats values as bytes.
            value: b"\x00\xff\r\n their value \x80",
            form: |value| value.contains(&b':'),
            ..library("our own mutex", MutexProfile::default(), "{}")
        },
        Library {
            form: is_hex32,
            ..library("a template of our own", template(), "job-lock:default:{}")
        },
    ]
}

fn template() -> MutexProfile {
    let profile = MutexProfile::default().key_template("job-lock:default:{name}");
    profile.unwrap().value(ValueEncoding::Hex32)
}

impl Library {
    /// Runs one of its scripts for a value.
    pub(crate) async fn eval(&self, raw: &mut Raw, script: &str, key: &str, value: &[u8]) -> bool {
        let words: [&[u8]; 7] = [
            b"EVAL",
            script.as_bytes(),
            b"1",
            key.as_bytes(),
            value,
            b"8000",
            self.further.as_bytes(),
        ];
        match raw.ask(&words).await {
            Value::Int(number) => number > 0,
            Value::Nil => false,
            other => panic!("{}: {other:?}", self.name),
        }
    }

    pub(crate) async fn acquire(&self, raw: &mut Raw, key: &str) -> bool {
        if let Some(script) = self.acquire {
            return self.eval(raw, script, key, self.value).await;
        }
        let set = [
            &b"SET"[..],
            key.as_bytes(),
            self.value,
            b"NX",
            b"PX",
            b"8000",
        ];
        raw.ask(&set).await == Value::Bytes(b"OK".to_vec())
    }

    /// An extension that does not create.
    pub(crate) async fn extend(&self, raw: &mut Raw, key: &str) -> bool {
        if self.extend == RUBY {
            let words: [&[u8]; 7] = [
                b"EVAL",
                RUBY.as_bytes(),
                b"1",
                key.as_bytes(),
                self.value,
                b"8000",
                b"no",
            ];
            return raw.ask(&words).await.int() == 1;
        }
        let longer = format!(
            "local ARGV = {{ARGV[1], ARGV[2] + 1000, ARGV[3]}} {}",
            self.extend
        );
        self.eval(raw, &longer, key, self.value).await
    }
}
