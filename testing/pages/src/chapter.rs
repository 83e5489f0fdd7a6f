//! Changes a chapter before mdBook renders it.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use crate::links::links;
use crate::repository::{Place, Repository};

/// Shared by all chapters.
#[derive(Debug)]
pub struct Book {
    /// The folder of all chapters and pictures, relative to the root of the repository.
    pub source: PathBuf,
    /// The chapters, relative to the root of the repository.
    pub chapters: BTreeSet<PathBuf>,
    /// The web address of the repository.
    pub repository_url: String,
}

impl Book {
    /// The chapter with links out of the book pointing to the web, and drawings embedded in the
    /// page.
    ///
    /// # Errors
    ///
    /// A sentence for each dead link.
    pub fn prepare(
        &self,
        repository: &mut Repository,
        page: &Path,
        text: &str,
    ) -> Result<String, Vec<String>> {
        let mut wrong = Vec::new();
        let mut changed = text.to_owned();
        // From the end, so that earlier text keeps its position.
        for link in links(text).into_iter().rev() {
            let (file, fragment) = match repository.place(page, &link.target) {
                Ok(Place::Elsewhere) => continue,
                Ok(Place::Inside(file, fragment)) => (file, fragment),
                Err(error) => {
                    wrong.push(error);
                    continue;
                }
            };
            // Other images need their own style.
            let is_drawing = file.starts_with(self.source.join("book/pictures"))
                && file.extension().is_some_and(|extension| extension == "svg");
            if link.image && is_drawing && text[link.range.clone()].starts_with("![") {
                match repository.read(&file) {
                    Ok(wide) => {
                        let narrow = narrow(&file).and_then(|file| repository.read(&file).ok());
                        let figure = figure(&wide, narrow.as_deref(), &link.text);
                        changed.replace_range(link.range, &figure);
                    }
                    Err(error) => wrong.push(error),
                }
            } else if !self.has(&file) {
                let url = self.url(repository.root(), &file, fragment.as_deref(), link.image);
                let source = &text[link.range.clone()];
                if let Some(at) = source.rfind(&link.target) {
                    let from = link.range.start + at;
                    changed.replace_range(from..from + link.target.len(), &url);
                } else {
                    // A reference link, `[text][name]` or `[name]`, has its target elsewhere in the
                    // page.
                    let label = source.split_once("][").map_or(source, |(label, _)| label);
                    let label = label.trim_end_matches(']');
                    changed.replace_range(link.range, &format!("{label}]({url})"));
                }
            }
        }
        wrong.reverse();
        if wrong.is_empty() {
            Ok(changed)
        } else {
            Err(wrong)
        }
    }

    fn has(&self, file: &Path) -> bool {
        self.chapters.contains(file)
            || (file.starts_with(&self.source)
                && file.extension().is_some_and(|extension| extension != "md"))
    }

    /// The web address of a file. An image needs the file itself, not the page that shows it.
    fn url(&self, root: &Path, file: &Path, fragment: Option<&str>, image: bool) -> String {
        let sort = if image {
            "raw"
        } else if root.join(file).is_dir() {
            "tree"
        } else {
            "blob"
        };
        let fragment = fragment.map(|fragment| format!("#{fragment}"));
        format!(
            "{}/{sort}/main/{}{}",
            self.repository_url,
            file.display(),
            fragment.unwrap_or_default()
        )
    }
}

/// The version of a drawing for narrow screens, if it has one: `pictures/narrow/NAME.svg`.
fn narrow(file: &Path) -> Option<PathBuf> {
    Some(file.parent()?.join("narrow").join(file.file_name()?))
}

/// A drawing embedded in the page, so that it has the colour of the text in every theme. If there
/// is a version for narrow windows, the style sheet of the book chooses one.
fn figure(wide: &str, narrow: Option<&str>, says: &str) -> String {
    let says = says.replace('"', "&quot;");
    let drawing = match narrow {
        None => inside(wide),
        Some(narrow) => format!(
            "<div class=\"wide\">\n{}\n</div>\n<div class=\"narrow\">\n{}\n</div>",
            inside(wide),
            inside(narrow)
        ),
    };
    format!("<figure class=\"drawing\" role=\"img\" aria-label=\"{says}\">\n{drawing}\n</figure>")
}

/// A drawing as HTML.
fn inside(svg: &str) -> String {
    let mut inside = svg;
    // The style of a drawing is only for viewers of the file itself.
    let mut text = String::new();
    while let Some((before, rest)) = inside.split_once("<style>") {
        text.push_str(before);
        inside = rest.split_once("</style>").map_or("", |(_, after)| after);
    }
    text.push_str(inside);
    // A blank line would end the block of HTML.
    let lines: Vec<&str> = text
        .lines()
        .filter(|line| !line.trim().is_empty())
        .collect();
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn book() -> Book {
        Book {
            source: "docs".into(),
            chapters: ["docs/fencing.md", "docs/glossary.md"]
                .map(PathBuf::from)
                .into(),
            repository_url: "https://example.com/r".to_owned(),
        }
    }

    fn prepare(text: &str) -> Result<String, Vec<String>> {
        book().prepare(&mut Repository::this(), Path::new("docs/fencing.md"), text)
    }

    #[test]
    fn links_out_of_the_book_lead_to_the_web() {
        let text = "[a](glossary.md), [b](../README.md), [c](../crates), `[d](../x)`";
        let expected = "[a](glossary.md), [b](https://example.com/r/blob/main/README.md), \
                        [c](https://example.com/r/tree/main/crates), `[d](../x)`";
        assert_eq!(prepare(text).unwrap(), expected);
    }

    #[test]
    fn links_with_their_target_elsewhere_lead_to_the_web() {
        let text = "[`b`], [c][b]\n\n[`b`]: ../README.md\n[b]: ../README.md";
        let url = "https://example.com/r/blob/main/README.md";
        let prepared = prepare(text).unwrap();
        assert!(
            prepared.starts_with(&format!("[`b`]({url}), [c]({url})")),
            "{prepared}"
        );
    }

    #[test]
    fn every_dead_link_is_named() {
        let wrong =
            prepare("[a](one.md) [b](glossary.md#no) [c](https://example.com)").unwrap_err();
        assert_eq!(wrong.len(), 2, "{wrong:?}");
        assert!(wrong[0].contains("one.md") && wrong[1].contains("glossary.md#no"));
    }

    #[test]
    fn drawings_have_no_style_of_their_own() {
        let svg = "<svg>\n<style>a</style>\n\n<g/>\n</svg>\n";
        let expected = "<figure class=\"drawing\" role=\"img\" aria-label=\"x\">\n<svg>\n<g/>\n</svg>\n</figure>";
        assert_eq!(figure(svg, None, "x"), expected);
    }

    #[test]
    fn a_drawing_for_narrow_windows_stands_beside_the_wide_one() {
        let both = figure("<svg>w</svg>", Some("<svg>n</svg>"), "x");
        let expected = "<figure class=\"drawing\" role=\"img\" aria-label=\"x\">\n<div class=\"wide\">\n<svg>w</svg>\n</div>\n\
                        <div class=\"narrow\">\n<svg>n</svg>\n</div>\n</figure>";
        assert_eq!(both, expected);
        let place = Path::new("docs/book/pictures/choose.svg");
        let beside = narrow(place).unwrap();
        assert_eq!(beside, Path::new("docs/book/pictures/narrow/choose.svg"));
        assert!(Repository::this().read(&beside).is_ok(), "{beside:?}");
    }
}
