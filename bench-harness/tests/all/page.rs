//! The HTML page as a whole: self-contained, well-formed, and safe against its own data.

use bench_harness::measure::model::{self, Report};
use bench_harness::measure::report::html;
use bench_harness::measure::synthetic;

fn reports() -> Vec<Report> {
    vec![
        synthetic::shared().clone(),
        synthetic::memory_only(),
        synthetic::empty(),
    ]
}

/// The page without the embedded report, which is data and may contain anything.
fn markup(page: &str) -> String {
    let start = page
        .find("<script type=\"application/json\"")
        .expect("the page embeds JSON");
    let end = start + page[start..].find("</script>").expect("the element ends");
    format!("{}{}", &page[..start], &page[end..])
}

#[test]
fn nothing_is_fetched() {
    for report in reports() {
        let page = markup(&html::render(&report).unwrap());
        for wanted in [
            "http:",
            "https:",
            "//",
            "url(",
            "@import",
            "fetch(",
            "XMLHttpRequest",
            " src=",
        ] {
            let found: Vec<_> = page
                .lines()
                .filter(|line| line.contains(wanted) && !line.trim_start().starts_with("//"))
                .collect();
            assert!(found.is_empty(), "{wanted}: {found:?}");
        }
        for link in page.split(" href=\"").skip(1) {
            assert!(link.starts_with('#'), "{}", &link[..link.len().min(60)]);
        }
        assert!(page.contains("default-src 'none'"));
    }
}

#[test]
fn contention_shows_latencies_and_commands_against_workers() {
    let page = markup(&html::render(synthetic::shared()).unwrap());
    for wanted in [
        "<figcaption>hand-off, W=128 P=8</figcaption>",
        "<figcaption>Commands per acquisition</figcaption>",
        "<figcaption>Commands per acquisition, including those of scripts</figcaption>",
    ] {
        assert!(page.contains(wanted), "{wanted}");
    }
}

#[test]
fn words_come_before_the_charts_that_use_them() {
    let page = markup(&html::render(synthetic::shared()).unwrap());
    let (words, charts) = page.split_once("<section id=\"section-0\"").unwrap();
    for word in ["RTT", "W, P", "Fairness (Jain)", "R1", "bare"] {
        assert!(words.contains(&format!("<dt>{word}</dt>")), "{word}");
    }
    assert!(charts.contains("From the start of a release until the next holder knows"));
}

#[test]
fn peers_are_labelled_lines() {
    let page = markup(&html::render(synthetic::shared()).unwrap());
    let mut figures = page.split("<figure>").skip(1);
    let caption = "<figcaption>hand-off, W=128 P=8</figcaption>";
    let figure = figures.find(|figure| figure.contains(caption)).unwrap();
    let labels = figure.split("<text class=\"end\"").skip(1);
    let labels: Vec<_> = labels
        .filter_map(|text| text.split("</text>").next())
        .collect();
    assert!(
        labels.iter().any(|text| text.contains(">rslock")),
        "{labels:?}"
    );
}

#[test]
fn empty_charts_are_left_out() {
    let scaling = |report: &Report| {
        let page = markup(&html::render(report).unwrap());
        page.contains("<h3>Scaling</h3>")
    };
    let mut report = synthetic::shared().clone();
    assert!(scaling(&report));
    report.cells.retain(|cell| {
        let subject = &cell.subject;
        let left = [("rslock", 8), ("locktopus", 32)];
        subject.scenario == "hot-lock" && left.contains(&(&*subject.strategy, subject.workers))
    });
    assert!(!scaling(&report));
}

#[test]
fn tags_are_balanced() {
    for report in reports() {
        balanced(&html::render(&report).unwrap());
    }
}

#[test]
fn embedded_json_is_the_report() {
    for report in reports() {
        let page = html::render(&report).unwrap();
        let start = page.find("id=\"data\">").unwrap() + "id=\"data\">".len();
        let end = start + page[start..].find("</script>").unwrap();
        assert_eq!(
            model::read_str(&page[start..end], "embedded").unwrap(),
            report
        );
    }
}

#[test]
fn data_cannot_become_markup() {
    let evil = "</script><script>alert(1)</script><img onerror=x>\"'&";
    let mut report = synthetic::shared().clone();
    report.run.id = evil.to_owned();
    report.run.scenario = evil.to_owned();
    report.note(evil);
    report.skip(evil, evil);
    report.environment.cpu_model = evil.to_owned();
    for cell in &mut report.cells {
        cell.subject.scenario = evil.to_owned();
        cell.subject.strategy.push_str(evil);
        cell.subject
            .options
            .insert(evil.to_owned(), evil.to_owned());
        for round in &mut cell.rounds {
            round.errors.insert(evil.to_owned(), 1);
            let operations = std::mem::take(&mut round.operations);
            round.operations = operations
                .into_iter()
                .map(|(name, stored)| (name + evil, stored))
                .collect();
        }
    }
    let page = html::render(&report).unwrap();
    assert!(!page.contains("<script>alert"));
    assert!(!page.contains("<img"));
    balanced(&page);
}

/// A small parser for tags: checks that every opened element is closed, in order.
fn balanced(page: &str) {
    const VOID: [&str; 2] = ["meta", "!doctype"];
    let mut open: Vec<&str> = Vec::new();
    let mut rest = page;
    while let Some(start) = rest.find('<') {
        rest = &rest[start + 1..];
        let end = rest.find('>').expect("a tag ends");
        let tag = &rest[..end];
        rest = &rest[end + 1..];
        let name = tag.trim_start_matches('/');
        let name = name.split([' ', '/', '\n']).next().unwrap_or(name);
        if let Some(closed) = tag.strip_prefix('/') {
            assert_eq!(
                open.pop(),
                Some(closed),
                "before {}",
                &rest[..rest.len().min(80)]
            );
        } else if !tag.ends_with('/') && !VOID.contains(&name) {
            open.push(name);
        }
        if ["script", "style"].contains(&name) && !tag.starts_with('/') {
            let end = rest.find(&format!("</{name}>")).expect("raw text ends");
            rest = &rest[end..];
        }
    }
    assert!(open.is_empty(), "{open:?}");
}
