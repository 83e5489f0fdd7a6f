//! `config`: shows the settings and where they come from.

use serde::Serialize;

use super::Context;
use crate::config::{FORMAT_VARIABLE, Setting, URL_VARIABLE};
use crate::failure::Failure;
use crate::output::{Format, visible};

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
