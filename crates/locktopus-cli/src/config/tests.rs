//! Which source wins, and which values stay hidden.

use std::collections::HashMap;
use std::fs;
use std::path::Path;

use super::*;

#[derive(Default)]
struct Around(HashMap<&'static str, String>);

impl Around {
    fn with(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.0.insert(name, value.into());
        self
    }
}

impl Surroundings for Around {
    fn variable(&self, name: &str) -> Option<String> {
        self.0.get(name).cloned()
    }
}

fn scratch(what: &str) -> PathBuf {
    let path = std::env::temp_dir().join(format!("locktopus-cli-{}-{what}", std::process::id()));
    fs::create_dir_all(path.join("locktopus")).unwrap();
    path
}

fn write(home: &Path, text: &str) -> Around {
    fs::write(home.join("locktopus/config.toml"), text).unwrap();
    Around::default().with("XDG_CONFIG_HOME", home.to_str().unwrap())
}

fn flags(url: &str) -> Flags {
    Flags {
        urls: vec![url.to_owned()],
        ..Flags::default()
    }
}

#[test]
fn labels_come_from_the_environment_or_the_file() {
    let home = scratch("labels");
    let none = Config::load(Flags::default(), &write(&home, "")).unwrap();
    assert_eq!((none.label, none.label_host), (None, None));
    let around = write(&home, "label = \"in file\"\nlabel_host = \"web-3\"\n");
    let file = Source::File(home.join("locktopus/config.toml"));
    let config = Config::load(Flags::default(), &around).unwrap();
    assert_eq!(
        config.label,
        Some(Setting::new("in file".to_owned(), file.clone()))
    );
    let around = around.with(LABEL_VARIABLE, "in variable");
    let config = Config::load(Flags::default(), &around).unwrap();
    let variable = Source::Environment(LABEL_VARIABLE);
    assert_eq!(
        config.label,
        Some(Setting::new("in variable".to_owned(), variable))
    );
    assert_eq!(
        config.label_host,
        Some(Setting::new("web-3".to_owned(), file))
    );
    fs::remove_dir_all(home).unwrap();
}

#[test]
fn flag_then_environment_then_file() {
    let home = scratch("order");
    let around = write(&home, "url = \"memory:file\"\nformat = \"json\"\n");
    let config = Config::load(Flags::default(), &around).unwrap();
    let urls = config.urls().unwrap();
    assert_eq!(urls.value, ["memory:file"]);
    let path = home.join("locktopus/config.toml");
    assert_eq!(urls.source, Source::File(path.clone()));
    assert_eq!(
        config.format,
        Setting::new(Format::Json, Source::File(path))
    );

    let around = around.with(URL_VARIABLE, "memory:env");
    let config = Config::load(Flags::default(), &around).unwrap();
    let urls = config.urls().unwrap();
    assert_eq!(urls.value, ["memory:env"]);
    assert_eq!(urls.source, Source::Environment(URL_VARIABLE));

    let config = Config::load(flags("memory:flag"), &around).unwrap();
    let urls = config.urls().unwrap();
    assert_eq!(
        (&urls.value[0][..], &urls.source),
        ("memory:flag", &Source::Flag("--url"))
    );
    fs::remove_dir_all(home).unwrap();
}

#[test]
fn the_configured_lease_is_the_one_that_locks_get() {
    let lease = |urls: &str| {
        let around = Around::default().with(URL_VARIABLE, urls);
        Config::load(Flags::default(), &around)
            .unwrap()
            .lease()
            .as_secs()
    };
    assert_eq!(lease("memory:"), 30);
    assert_eq!(lease("redis://a?renewed_lease=12s"), 12);
    assert_eq!(
        lease("redis://a?safety=quarantine&quarantine_max_lease=9s"),
        9
    );
    assert_eq!(
        lease("redis://a redis://b?renewed_lease=9s redis://c?renewed_lease=8s"),
        9
    );
}

#[test]
fn several_urls_are_a_quorum() {
    let around = Around::default().with(URL_VARIABLE, "redis://a redis://b  redis://c");
    let config = Config::load(Flags::default(), &around).unwrap();
    assert_eq!(config.urls().unwrap().value.len(), 3);
    let home = scratch("several");
    let around = write(&home, "url = [\"redis://a\", \"redis://b\", \"redis://c\"]");
    let config = Config::load(Flags::default(), &around).unwrap();
    assert_eq!(config.urls().unwrap().value.len(), 3);
    fs::remove_dir_all(home).unwrap();
}

#[test]
fn what_is_shown_has_no_password() {
    let config = Config::load(flags("redis://app:s3cret@db:6379"), &Around::default()).unwrap();
    let shown = config.shown_urls().unwrap().value;
    assert_eq!(shown, ["redis://***@db:6379"]);
    let config = Config::load(flags("redis://app:s3cret@db:x"), &Around::default()).unwrap();
    assert!(!config.shown_urls().unwrap().value[0].contains("s3cret"));
}

#[test]
fn a_damaged_file_is_not_quoted() {
    let home = scratch("damaged");
    for text in [
        "\nurl = \"redis://app:s3cret@db\n",
        "format = 1\nredis://app:s3cret@db",
        "url = { s3cret = 1 }",
        "\"redis://app:s3cret@db\" = 1",
        "format = \"s3cret\"",
    ] {
        let around = write(&home, text);
        let failure = Config::load(Flags::default(), &around).unwrap_err();
        assert_eq!(failure.exit, Exit::Config);
        assert!(!failure.message.contains("s3cret"), "{}", failure.message);
        assert!(failure.message.contains(" line "), "{}", failure.message);
    }
    fs::remove_dir_all(home).unwrap();
}

#[test]
fn an_unknown_key_is_named() {
    let home = scratch("unknown");
    let around = write(&home, "url = \"memory:\"\nnamespace = \"s3cret\"");
    let failure = Config::load(Flags::default(), &around).unwrap_err();
    assert_eq!(failure.exit, Exit::Config);
    assert!(
        failure.message.contains("unknown key \"namespace\""),
        "{}",
        failure.message
    );
    assert!(!failure.message.contains("s3cret"), "{}", failure.message);
    fs::remove_dir_all(home).unwrap();
}

#[test]
fn a_file_that_was_asked_for_must_be_there() {
    let flags = Flags {
        file: Some("/nowhere/locktopus.toml".into()),
        ..Flags::default()
    };
    let failure = Config::load(flags, &Around::default()).unwrap_err();
    assert_eq!(failure.exit, Exit::Config);
}
