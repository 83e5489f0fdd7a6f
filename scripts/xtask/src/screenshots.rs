//! Pictures of programs at work: `scripts/screenshots`.

use std::fs;
use std::path::Path;

use crate::failure::{Done, fail};
use crate::measure::bench;
use crate::shell::{Shell, say, tail};
use crate::{observe, packages};

pub(crate) const HELP: &str = "\
Takes the pictures in docs/images that show a running program, so that none is out of date.

Usage: scripts/screenshots [report [FILE] | prometheus | top]

  (nothing)      all three
  report         the HTML report, light and dark, from FILE or from a new run of scripts/bench (ten minutes)
  prometheus     the recipe's alerts and graphs in Prometheus (seven minutes, to collect data)
  top            `locktopus top` in a terminal (scripts/record-top)

Needs Chromium for the first two and ImageMagick for the second. Installs them if permitted.";

const IMAGES: &str = "docs/images";

pub(crate) fn main(sh: &Shell, arguments: &[String]) -> Done {
    let picture = || observe::main(&sh.again("observe"), &["--picture".to_owned()]);
    let top = || sh.cmd(sh.root.join("scripts/record-top")).run();
    match arguments.first().map_or("", String::as_str) {
        "report" => report(sh, arguments.get(1)),
        "prometheus" => picture(),
        "top" => top(),
        "" => report(sh, None).and_then(|()| picture()).and_then(|()| top()),
        other => fail!("unknown picture {other} (see --help)"),
    }
}

/// Takes a picture of the page at an address, after giving its scripts `settle` milliseconds.
fn shoot(sh: &Shell, address: &str, size: &str, settle: u32, picture: &Path) -> Done {
    let _ = fs::remove_file(picture);
    // Chromium would take a picture of an error page too.
    let open = "import sys, urllib.request; urllib.request.urlopen(sys.argv[1], timeout=30)";
    if sh.cmd("python3").args(["-c", open, address]).code()? != 0 {
        fail!("there is nothing at {address}");
    }
    let data = format!("--user-data-dir={}/chromium", sh.scratch()?.display());
    let (shown, said) = sh
        .cmd("timeout")
        .args([
            "120",
            "chromium",
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--hide-scrollbars",
            "--force-device-scale-factor=1",
        ])
        .args([data, format!("--window-size={size}"), format!("--virtual-time-budget={settle}")])
        .args([format!("--screenshot={}", picture.display()), address.to_owned()])
        .told()?;
    if !shown || !fs::metadata(picture).is_ok_and(|about| about.len() > 0) {
        fail!("chromium left no picture of {address}: {}", tail(&said, 3));
    }
    Ok(())
}

fn report(sh: &Shell, file: Option<&String>) -> Done {
    let room = sh.scratch()?;
    let report = match file {
        Some(file) => sh.from.join(file),
        None => {
            let out = room.join("run");
            bench::main(
                &sh.again("bench"),
                &["--out".to_owned(), out.to_string_lossy().into_owned()],
            )?;
            out.join("report.html")
        }
    };
    let (page, mark) = (fs::read_to_string(&report)?, "<html lang=\"en\">");
    if !page.contains(mark) {
        fail!("{} is no report of locktopus-bench", report.display());
    }
    packages::program(sh, "chromium", "chromium")?;
    let mut pictures = Vec::new();
    for theme in ["light", "dark"] {
        let themed = room.join(format!("{theme}.html"));
        fs::write(
            &themed,
            page.replace(mark, &format!("<html lang=\"en\" data-theme=\"{theme}\">")),
        )?;
        let picture = room.join(format!("report-{theme}.png"));
        shoot(sh, &format!("file://{}", themed.display()), "1200,1500", 2000, &picture)?;
        pictures.push((fs::read(picture)?, format!("report-{theme}.png")));
    }
    if pictures[0].0 == pictures[1].0 {
        fail!("light and dark look the same");
    }
    for (picture, name) in pictures {
        fs::write(sh.root.join(IMAGES).join(name), picture)?;
    }
    say(format!("{IMAGES}/report-light.png and report-dark.png, of {}", report.display()));
    Ok(())
}

/// Pictures of a Prometheus with data.
pub(crate) fn prometheus_at(sh: &Shell, address: &str) -> Done {
    packages::program(sh, "chromium", "chromium")?;
    packages::program(sh, "convert", "imagemagick")?;
    let part = |number: usize| {
        Ok::<_, crate::failure::Failure>(sh.scratch()?.join(format!("part-{number}.png")))
    };
    shoot(sh, &format!("{address}/classic/alerts"), "900,420", 10_000, &part(0)?)?;
    let queries = [
        "sum by (outcome) (rate(locktopus_wait_seconds_count[30s]))",
        "sum by (cause) (increase(locktopus_lost_total[30s]))",
    ];
    for (number, query) in queries.iter().enumerate() {
        let page = format!(
            "{address}/classic/graph?g0.tab=0&g0.range_input=5m&g0.expr={}",
            encoded(query)
        );
        shoot(sh, &page, "900,900", 10_000, &part(number + 1)?)?;
    }
    let picture = format!("{IMAGES}/prometheus.png");
    sh.cmd("convert").args([part(0)?, part(1)?, part(2)?]).args(["-append", &picture]).run()?;
    say(picture);
    Ok(())
}

/// Percent-encodes a text for an address.
fn encoded(text: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.~".contains(&byte);
    text.bytes()
        .map(|byte| if plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queries_fit_into_an_address() {
        assert_eq!(encoded("a_b (c[30s])"), "a_b%20%28c%5B30s%5D%29");
    }
}
