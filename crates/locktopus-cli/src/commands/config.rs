//! `config`: shows the settings and where they come from.

use serde::Serialize;

use super::Context;
use crate::config::{FORMAT_VARIABLE, Setting, URL_VARIABLE};
use crate::failure::Failure;
use crate::output::{Format, visible};

/// The options of a URL, shown below `config --help`.
pub(crate) const URL_OPTIONS: &str = "URL options:
  They follow after ? and are joined by &, as in redis://h?client=fred&checks=refuse.

  safety=plain|replicated|quarantine  what a grant is worth when a server fails; plain
  replicas=one|majority|all           with replicated: who must confirm a grant; majority
  replication_timeout=TIME            with replicated: how long they have; 500ms
  quarantine_max_lease=TIME           with quarantine: the longest lease allowed; 30s
  timeout=TIME                        for one answer; 1s
  connect_timeout=TIME                for one connection; timeout, at least 2s
  namespace=TEXT                      a prefix of every name
  names=plain|escaped                 with escaped, names may be any bytes
  renewed_lease=TIME                  the default of --lease; 30s
  token_retention=TIME|forever        how long the servers remember an unused name; 1d
  label=TEXT, label_host=TEXT         who holds a lock, for operators
  client=redis|fred                   the client library; redis
  connect=now|lazy                    with lazy, start even if no server answers
  checks=off|warn|refuse              checks at connect: skip, log, or fail on dangers; warn
  pubsub=auto|plain|sharded           the messages that announce releases
  router=own|client                   what finds the node of a cluster
  client_name=TEXT                    shown by CLIENT LIST
  sentinel_user=TEXT, sentinel_password=TEXT  login for the sentinels
  db=NUMBER                           the database, for a unix socket
  ca=FILE, cert=FILE, key=FILE        with TLS: authorities to trust, client certificate, its key
  tls_server_name=HOST                with TLS: the name that certificates must carry
  danger_accept_invalid_certs=true    with TLS: accept any certificate
  sentinel_tls=on|off                 whether sentinels speak TLS
  sentinel_ca=, sentinel_cert=, sentinel_key=, sentinel_tls_server_name=,
  sentinel_danger_accept_invalid_certs=  the same as above for sentinels, if they differ";

#[derive(Serialize)]
struct Settings {
    /// Without passwords.
    url: Option<Sourced<Vec<String>>>,
    format: Sourced<Format>,
    #[serde(skip_serializing_if = "Option::is_none")]
    label: Option<Sourced<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    label_host: Option<Sourced<String>>,
    file: Option<String>,
}

#[derive(Serialize)]
struct Sourced<T> {
    value: T,
    source: String,
}

pub(crate) fn run(context: &Context) -> Result<(), Failure> {
    let config = &context.config;
    if let Some(warning) = &config.warning {
        context.out.say(warning);
    }
    let settings = Settings {
        url: config.shown_urls().map(|urls| Sourced {
            source: urls.source.to_string(),
            value: urls.value,
        }),
        format: Sourced {
            value: config.format.value,
            source: config.format.source.to_string(),
        },
        label: config.label.as_ref().map(sourced),
        label_host: config.label_host.as_ref().map(sourced),
        file: config.file.as_ref().map(|path| path.display().to_string()),
    };
    context.out.answer(&settings, text)?;
    config.check_urls()
}

fn sourced(setting: &Setting<String>) -> Sourced<String> {
    Sourced {
        value: visible(&setting.value).into_owned(),
        source: setting.source.to_string(),
    }
}

fn text(settings: &Settings) -> String {
    let format = match settings.format.value {
        Format::Text => "text",
        Format::Json => "json",
    };
    let format = format!("format  {format}  ({})", settings.format.source);
    let url = match &settings.url {
        Some(urls) => {
            let lines = urls.value.iter();
            let lines = lines.map(|url| format!("url     {url}  ({})", urls.source));
            lines.collect::<Vec<_>>().join("\n")
        }
        None => format!(
            "url     none; give --url or set {URL_VARIABLE} ({FORMAT_VARIABLE} sets only the format)"
        ),
    };
    let file = match &settings.file {
        Some(path) => format!("file    {path}"),
        None => "file    none".to_owned(),
    };
    let label = |name, label: &Option<Sourced<String>>| {
        let label = label.as_ref();
        let line = label.map(|label| format!("{name}  {}  ({})\n", label.value, label.source));
        line.unwrap_or_default()
    };
    let host = label("host  ", &settings.label_host);
    let label = label("label ", &settings.label);
    format!("{url}\n{format}\n{label}{host}{file}")
}
