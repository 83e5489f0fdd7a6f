//! Links and headings of one page.

use std::collections::{BTreeSet, HashMap};
use std::ops::Range;

use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd};

/// A link or an image, and its position in the page.
#[derive(Debug)]
pub struct Link {
    /// Its target, as written.
    pub target: String,
    /// Its text, or an image's description.
    pub text: String,
    /// Whether it is an image.
    pub image: bool,
    /// Its bytes in the page.
    pub range: Range<usize>,
}

fn parser(page: &str) -> Parser<'_> {
    Parser::new_ext(
        page,
        Options::ENABLE_TABLES | Options::ENABLE_HEADING_ATTRIBUTES | Options::ENABLE_FOOTNOTES,
    )
}

/// All links and images, including those in HTML.
#[must_use]
pub fn links(page: &str) -> Vec<Link> {
    let mut found = Vec::new();
    let mut open: Vec<usize> = Vec::new();
    for (event, range) in parser(page).into_offset_iter() {
        match event {
            Event::Start(Tag::Link { dest_url, .. }) => {
                open.push(found.len());
                found.push(link(&dest_url, false, range));
            }
            Event::Start(Tag::Image { dest_url, .. }) => {
                open.push(found.len());
                found.push(link(&dest_url, true, range));
            }
            Event::End(TagEnd::Link | TagEnd::Image) => {
                open.pop();
            }
            Event::Text(text) | Event::Code(text) => {
                for &at in &open {
                    found[at].text.push_str(&text);
                }
            }
            Event::Html(html) | Event::InlineHtml(html) => {
                for name in ["href", "src", "srcset"] {
                    for target in attributes(&html, name) {
                        let image = name != "href";
                        found.push(link(target, image, range.clone()));
                    }
                }
            }
            _ => {}
        }
    }
    found
}

fn link(target: &str, image: bool, range: Range<usize>) -> Link {
    Link {
        target: target.to_owned(),
        text: String::new(),
        image,
        range,
    }
}

/// Every anchor of the page: the slugs of its headings, and ids in HTML.
#[must_use]
pub fn anchors(page: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let mut seen: HashMap<String, usize> = HashMap::new();
    let mut heading: Option<(Option<String>, String)> = None;
    for event in parser(page) {
        match event {
            Event::Start(Tag::Heading { id, .. }) => {
                heading = Some((id.map(|id| id.to_string()), String::new()));
            }
            Event::Text(text) | Event::Code(text) => {
                if let Some((_, title)) = &mut heading {
                    title.push_str(&text);
                }
            }
            Event::End(TagEnd::Heading(_)) => {
                if let Some((id, title)) = heading.take() {
                    found.insert(id.unwrap_or_else(|| unique(&mut seen, slug(&title))));
                }
            }
            Event::Html(html) | Event::InlineHtml(html) => {
                found.extend(attributes(&html, "id").map(str::to_owned));
            }
            _ => {}
        }
    }
    found
}

/// The slug of a heading, as mdBook and code hosts make it.
fn slug(title: &str) -> String {
    title
        .trim()
        .chars()
        .filter_map(|c| match c {
            c if c.is_alphanumeric() || c == '_' || c == '-' => Some(c.to_lowercase().to_string()),
            c if c.is_whitespace() => Some("-".to_owned()),
            _ => None,
        })
        .collect()
}

fn unique(seen: &mut HashMap<String, usize>, slug: String) -> String {
    let count = seen.entry(slug.clone()).or_insert(0);
    *count += 1;
    match *count {
        1 => slug,
        n => format!("{slug}-{}", n - 1),
    }
}

/// The values of one attribute in a piece of HTML.
fn attributes<'a>(html: &'a str, name: &str) -> impl Iterator<Item = &'a str> {
    let begin = format!(" {name}=\"");
    html.match_indices(&begin)
        .map(|(at, _)| at + begin.len())
        .collect::<Vec<_>>()
        .into_iter()
        .filter_map(|from| html[from..].split('"').next())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_are_found_where_they_stand() {
        let page = "See [the *table*](a.md#b), ![a `picture`](p.svg)\n\n<img src=\"x.png\">\n\n`[no](link)`\n";
        let found = links(page);
        let targets: Vec<_> = found.iter().map(|link| link.target.as_str()).collect();
        assert_eq!(targets, ["a.md#b", "p.svg", "x.png"]);
        assert_eq!(&page[found[1].range.clone()], "![a `picture`](p.svg)");
        assert_eq!(found[1].text, "a picture");
        assert!(found[1].image && !found[0].image);
    }

    #[test]
    fn headings_are_anchors() {
        let page = "# What tokens *promise*\n## `run`: a program\n## Same\n## Same\n<a id=\"own\"></a>\n## X {#y}\n";
        let expected = [
            "own",
            "run-a-program",
            "same",
            "same-1",
            "what-tokens-promise",
            "y",
        ];
        assert_eq!(anchors(page).iter().collect::<Vec<_>>(), expected);
    }
}
