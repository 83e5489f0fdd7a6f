//! `config`: what is set, and where.

use serde::Serialize;

use super::Context;
use crate::config::{FORMAT_VARIABLE, URL_VARIABLE};
use crate::failure::Failure;
use crate::output::Format;

#[derive(Serialize)]
struct Shown {
    /// Without passwords.
    url: Option<Sourced<Vec<String>>>,
    format: Sourced<Format>,
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
    let shown = Shown {
        url: config.shown_urls().map(|urls| Sourced {
            source: urls.source.to_string(),
            value: urls.value,
        }),
        format: Sourced {
            value: config.format.value,
            source: config.format.source.to_string(),
        },
        file: config.file.as_ref().map(|path| path.display().to_string()),
    };
    context.out.answer(&shown, text)
}

fn text(shown: &Shown) -> String {
    let format = match shown.format.value {
        Format::Text => "text",
        Format::Json => "json",
    };
    let format = format!("format  {format}  ({})", shown.format.source);
    let url = match &shown.url {
        Some(urls) => {
            let lines = urls.value.iter();
            let lines = lines.map(|url| format!("url     {url}  ({})", urls.source));
            lines.collect::<Vec<_>>().join("\n")
        }
        None => format!(
            "url     none: give --url, or set {URL_VARIABLE} (formats are set by {FORMAT_VARIABLE})"
        ),
    };
    let file = match &shown.file {
        Some(path) => format!("file    {path}"),
        None => "file    none".to_owned(),
    };
    format!("{url}\n{format}\n{file}")
}
