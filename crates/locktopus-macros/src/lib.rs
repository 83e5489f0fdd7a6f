//! The attribute `#[locked]`. Use it as `locktopus::locked`, with the feature `macros`.
//!
//! | module | what is in it |
//! |---|---|
//! | `template` | names with arguments in them |
//! | `options` | the options in the attribute, checked |
//! | `expand` | the generated function |
//!
//! Layers, lowest first: template, options, expand.

mod expand;
mod options;
mod template;

use proc_macro::TokenStream;
use syn::parse_macro_input;

/// Runs an `async fn` under a lock. Documented where it is exported: `locktopus::locked`.
#[proc_macro_attribute]
pub fn locked(options: TokenStream, function: TokenStream) -> TokenStream {
    let options = parse_macro_input!(options as options::Written);
    let written = proc_macro2::TokenStream::from(function.clone());
    let expanded = syn::parse(function)
        .map_err(|error| {
            let message = format!("{error}: #[locked] goes on an `async fn` with a body");
            syn::Error::new(error.span(), message)
        })
        .and_then(|function| expand::expand(options, &function));
    let with_error = |error: syn::Error| {
        // Keeps the original function, so that its callers get no errors of their own.
        let error = error.into_compile_error();
        quote::quote!(#error #written)
    };
    expanded.unwrap_or_else(with_error).into()
}
