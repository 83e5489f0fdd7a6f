//! Tokens as one line of Rust.

use proc_macro2::{Delimiter, Spacing, TokenStream, TokenTree};
use quote::ToTokens;

/// Spaced as people write it, as far as that can be told without knowing what the tokens mean; the same tokens always give
/// the same text.
pub(super) fn line(of: impl ToTokens) -> String {
    let mut line = Line::default();
    line.add(of.into_token_stream());
    line.text
}

#[derive(Default)]
struct Line {
    text: String,
    /// What was written last belongs to what comes next.
    tight: bool,
}

impl Line {
    fn add(&mut self, tokens: TokenStream) {
        for token in tokens {
            match token {
                TokenTree::Group(group) => self.group(group.delimiter(), group.stream()),
                TokenTree::Ident(word) => self.word(&word.to_string()),
                TokenTree::Literal(literal) => self.word(&literal.to_string()),
                TokenTree::Punct(sign) => self.sign(sign.as_char(), sign.spacing()),
            }
        }
    }

    fn group(&mut self, delimiter: Delimiter, inside: TokenStream) {
        let (open, close) = match delimiter {
            Delimiter::Parenthesis => ("(", ")"),
            Delimiter::Bracket => ("[", "]"),
            Delimiter::Brace => ("{ ", " }"),
            Delimiter::None => ("", ""),
        };
        let own = delimiter == Delimiter::Brace
            || self.text.ends_with([',', '=', ':', '|'])
            || self.text.ends_with("->");
        if own && !self.tight && !self.text.is_empty() {
            self.text.push(' ');
        }
        self.text.push_str(open);
        self.tight = true;
        self.add(inside);
        self.text
            .truncate(self.text.trim_end_matches([',', ' ']).len());
        self.text.push_str(close);
        self.tight = false;
    }

    fn word(&mut self, word: &str) {
        if !self.tight && !self.text.is_empty() {
            self.text.push(' ');
        }
        self.text.push_str(word);
        self.tight = false;
    }

    fn sign(&mut self, sign: char, spacing: Spacing) {
        let joined = spacing == Spacing::Joint;
        match sign {
            ',' | ';' => {
                self.text.push(sign);
                self.tight = false;
            }
            '.' => {
                self.text.push(sign);
                self.tight = true;
            }
            ':' if self.text.ends_with(':') && self.tight => self.text.push(sign),
            ':' => {
                self.text.push(sign);
                self.tight = joined;
            }
            '<' | '#' | '&' | '*' | '\'' | '?' | '!' => {
                let opens = sign != '<';
                if opens && !self.tight && !self.text.is_empty() {
                    self.text.push(' ');
                }
                self.text.push(sign);
                self.tight = true;
            }
            '>' => {
                self.text.push(sign);
                self.tight = false;
            }
            _ => {
                if !self.tight && !self.text.is_empty() {
                    self.text.push(' ');
                }
                self.text.push(sign);
                self.tight = joined;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signatures_look_as_they_are_written() {
        for text in [
            "pub fn name(&self) -> &LockName",
            "pub async fn run<T, F>(self, work: impl FnOnce(Lease) -> F) -> Result<T, LockError> where F: Future<Output = T>",
            "pub fn new(url: impl Into<String>, of: &[u8; 16]) -> Option<Box<dyn Error + Send + 'static>>",
            "pub const fn at(self: Arc<Self>, to: (u64, Duration)) -> std::io::Result<()>",
            "impl<'a, B: LockBackend + ?Sized> From<&'a mut B> for Cow<'_, str>",
            "pub fn for_all(of: for<'b> fn(&'b str) -> Vec<Vec<u8>>) -> !",
        ] {
            let tokens: TokenStream = text.parse().unwrap();
            assert_eq!(line(tokens), text);
        }
    }
}
