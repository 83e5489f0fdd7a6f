//! Names with arguments in them: `invoice:{id}`, `shop:{order.shop}:{order.id:04}`.

use proc_macro2::{Span, TokenStream};
use quote::{ToTokens, quote};
use syn::{Expr, Ident, LitStr, Member};

/// The name of a lock: text for `format!` and its arguments.
pub(crate) struct Template {
    format: LitStr,
    arguments: Vec<Expr>,
}

/// A part of the text.
enum Piece<'a> {
    Text(&'a str),
    /// The text between two braces.
    Argument(&'a str),
}

impl Template {
    /// Reads a template. `known`: the arguments of the function, including `self` if it has one.
    pub(crate) fn parse(text: &LitStr, known: &[String]) -> syn::Result<Self> {
        let (value, span) = (text.value(), text.span());
        if value.is_empty() {
            return Err(syn::Error::new(span, "a lock needs a name"));
        }
        let (mut format, mut arguments) = (String::new(), Vec::new());
        for piece in pieces(&value).map_err(|why| syn::Error::new(span, why))? {
            match piece {
                Piece::Text(text) => format.push_str(text),
                Piece::Argument(inner) => {
                    let (path, spec) = inner
                        .split_once(':')
                        .map_or((inner, None), |(path, spec)| (path, Some(spec)));
                    arguments.push(argument(path, known, span)?);
                    format.push('{');
                    if let Some(spec) = spec {
                        format.push(':');
                        format.push_str(spec);
                    }
                    format.push('}');
                }
            }
        }
        let format = LitStr::new(&format, span);
        Ok(Self { format, arguments })
    }
}

impl ToTokens for Template {
    fn to_tokens(&self, tokens: &mut TokenStream) {
        let Self { format, arguments } = self;
        tokens.extend(quote!(::std::format!(#format, #(#arguments),*)));
    }
}

/// Text and arguments in turn. Doubled braces stay, because `format!` reads them.
fn pieces(value: &str) -> Result<Vec<Piece<'_>>, String> {
    let mut pieces = Vec::new();
    let mut rest = value;
    while let Some(at) = rest.find(['{', '}']) {
        let (text, from) = rest.split_at(at);
        pieces.push(Piece::Text(text));
        if from.starts_with("{{") || from.starts_with("}}") {
            pieces.push(Piece::Text(&from[..2]));
            rest = &from[2..];
            continue;
        }
        let Some(inside) = from.strip_prefix('{') else {
            return Err("a `}` without its `{`; write `}}` for a brace in the name".to_owned());
        };
        let Some((inner, behind)) = inside.split_once('}') else {
            return Err("a `{` without its `}`; write `{{` for a brace in the name".to_owned());
        };
        pieces.push(Piece::Argument(inner));
        rest = behind;
    }
    pieces.push(Piece::Text(rest));
    Ok(pieces)
}

/// `id`, or a field of an argument, such as `order.id`.
fn argument(path: &str, known: &[String], span: Span) -> syn::Result<Expr> {
    let parts: Vec<_> = path.split('.').map(|part| raw(part.trim())).collect();
    let root = &parts[0];
    if root.is_empty() {
        let rule = "write the name of an argument between the braces, as in `invoice:{id}`";
        return Err(syn::Error::new(span, rule));
    }
    if !known.contains(root) {
        let there = match known {
            [] => "it has none".to_owned(),
            _ => format!("there are: {}", known.join(", ")),
        };
        let message = format!("the function has no argument `{root}`; {there}");
        return Err(syn::Error::new(span, message));
    }
    let message = format!("`{path}` is neither an argument nor a field of one");
    let mut expression: Expr =
        syn::parse_str(&parts.join(".")).map_err(|_| syn::Error::new(span, &message))?;
    if !is_path(&expression) {
        return Err(syn::Error::new(span, message));
    }
    respan(&mut expression, span);
    Ok(expression)
}

/// `r#type` for `type`, as in `format!`.
fn raw(part: &str) -> String {
    let raw = format!("r#{part}");
    let keyword = syn::parse_str::<Ident>(part).is_err() && syn::parse_str::<Ident>(&raw).is_ok();
    if keyword { raw } else { part.to_owned() }
}

fn is_path(expression: &Expr) -> bool {
    match expression {
        Expr::Path(_) => true,
        Expr::Field(field) => is_path(&field.base),
        _ => false,
    }
}

/// Treats the expression as if it were written at the name: resolved by the caller's rules, with
/// errors shown there.
fn respan(expression: &mut Expr, span: Span) {
    match expression {
        Expr::Path(path) => {
            for segment in &mut path.path.segments {
                segment.ident.set_span(span);
            }
        }
        Expr::Field(field) => {
            match &mut field.member {
                Member::Named(name) => name.set_span(span),
                Member::Unnamed(index) => index.span = span,
            }
            field.dot_token = syn::Token![.](span);
            respan(&mut field.base, span);
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<String, String> {
        let known = ["self", "id", "order", "r#type"].map(str::to_owned);
        let text = LitStr::new(text, Span::call_site());
        Template::parse(&text, &known)
            .map(|name| name.into_token_stream().to_string().replace(' ', ""))
            .map_err(|error| error.to_string())
    }

    #[test]
    fn arguments_and_their_fields_go_into_a_format() {
        let format = |arguments: &str| Ok(format!("::std::format!({arguments})"));
        assert_eq!(read("a"), format("\"a\","));
        assert_eq!(read("a:{id}:b"), format("\"a:{}:b\",id"));
        assert_eq!(
            read("{order.shop.0}{order.id:04}{self.name:?}"),
            format("\"{}{:04}{:?}\",order.shop.0,order.id,self.name")
        );
        assert_eq!(read("{{id}}{id}"), format("\"{{id}}{}\",id"));
        assert_eq!(
            read("{type}{r#type}{id.0.fn}"),
            format("\"{}{}{}\",r#type,r#type,id.0.r#fn")
        );
    }

    #[test]
    fn what_is_no_argument_is_refused() {
        for (text, why) in [
            ("", "a lock needs a name"),
            (
                "{ids}",
                "no argument `ids`; there are: self, id, order, r#type",
            ),
            ("{}", "write the name of an argument"),
            ("{id", "a `{` without its `}`"),
            ("id}", "a `}` without its `{`"),
            ("{order.id()}", "neither an argument nor a field"),
            ("{id.}", "neither an argument nor a field"),
        ] {
            let error = read(text).unwrap_err();
            assert!(error.contains(why), "{text}: {error}");
        }
    }
}
