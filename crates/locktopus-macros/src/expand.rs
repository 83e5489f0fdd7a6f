//! The function that comes out.

use proc_macro2::{Span, TokenStream};
use quote::{quote, quote_spanned};
use syn::spanned::Spanned;
use syn::visit_mut::{self, VisitMut};
use syn::{AttrStyle, FnArg, Ident, ItemFn, Pat, ReturnType, Type, TypeInfer};

use crate::options::{KINDS, Timed, WhenBusy, Written};
use crate::template::Template;

/// The function with its body under the lock.
pub(crate) fn expand(options: Written, function: &ItemFn) -> syn::Result<TokenStream> {
    let output = check_function(function)?;
    let arguments = arguments(function);
    check_options(&options, &arguments)?;
    let request = request(&options, &arguments)?;
    let ItemFn {
        attrs,
        vis,
        sig,
        block,
    } = function;
    let (outer, inner): (Vec<_>, Vec<_>) = attrs
        .iter()
        .partition(|attribute| matches!(attribute.style, AttrStyle::Outer));
    let returned = returned(output);
    let output = output.span();
    let helper = Ident::new(
        match options.when_busy {
            Some(WhenBusy::Skip) => "run_or_skip",
            _ => "run",
        },
        output,
    );
    let lease = match &options.bind {
        Some(bind) => quote!(#bind),
        None => quote!(_),
    };
    // Of one span, so that both places mean the same in whatever wrote the function.
    let taken = Ident::new("__locktopus_request", Span::call_site());
    // At the place of the return type: if that is none, the compiler complains about it.
    let run = quote_spanned! {output=>
        ::locktopus::locked::#helper(#taken, |#lease: ::locktopus::Lease| async move {
            #returned
            #block
        }).await
    };
    Ok(quote! {
        #(#outer)*
        #vis #sig {
            #(#inner)*
            let #taken = #request;
            #run
        }
    })
}

/// Tells the body what it returns, as a function tells its own: so
/// `Err(Box::new(error))` becomes a `Box<dyn Error>` in it, and nothing has to be spelt out that
/// needs not be without the attribute.
fn returned(output: &Type) -> TokenStream {
    let mut output = output.clone();
    InferImplTrait.visit_type_mut(&mut output);
    quote_spanned! {output.span()=>
        #[allow(unreachable_code, clippy::diverging_sub_expression, clippy::let_and_return, clippy::needless_return,
            clippy::empty_loop, clippy::let_underscore_untyped, clippy::let_with_type_underscore,
            clippy::type_complexity)]
        if false {
            let __locktopus_never: #output = loop {};
            return __locktopus_never;
        }
    }
}

/// What stands behind an `impl Trait` is known by the body alone.
struct InferImplTrait;

impl VisitMut for InferImplTrait {
    fn visit_type_mut(&mut self, part: &mut Type) {
        match part {
            Type::ImplTrait(_) => {
                *part = Type::Infer(TypeInfer {
                    underscore_token: syn::Token![_](part.span()),
                })
            }
            _ => visit_mut::visit_type_mut(self, part),
        }
    }
}

fn request(options: &Written, arguments: &[String]) -> syn::Result<TokenStream> {
    let whole = Span::call_site();
    let missing = |message| syn::Error::new(whole, message);
    let text = options.name.as_ref().ok_or_else(|| {
        missing("which lock? Say `name = \"...\"`, with arguments as in \"invoice:{id}\"")
    })?;
    let name = Template::parse(text, arguments)?;
    let locks = options.locks.as_ref().ok_or_else(|| {
        missing(
            "whose locks? Say `locks = ...`: a `Locktopus`, such as `self.locks` or an argument",
        )
    })?;
    let locks = quote_spanned!(locks.span()=> ::locktopus::locked::locks(&(#locks)));
    let kind = options.kind.unwrap_or(KINDS[0].1);
    let (method, then) = (Ident::new(kind.method, whole), kind.then);
    let then: TokenStream = then
        .parse()
        .map_err(|error| syn::Error::new(whole, error))?;
    let request = quote!(#locks.#method(#name)#then);
    let at_once = Timed {
        time: std::time::Duration::ZERO,
        span: whole,
    };
    let wait = match options.when_busy.unwrap_or(WhenBusy::Wait) {
        WhenBusy::Wait => options.wait.as_ref(),
        WhenBusy::Skip | WhenBusy::Error => Some(options.wait.as_ref().unwrap_or(&at_once)),
    };
    let durations = [
        ("wait_at_most", wait),
        ("renewed_lease", options.lease.as_ref()),
        ("fixed_lease", options.fixed_lease.as_ref()),
        ("hold_at_least", options.at_least.as_ref()),
        ("max_hold", options.max_hold.as_ref()),
    ];
    let durations = durations.into_iter().filter_map(|(method, timed)| {
        let timed = timed?;
        let method = Ident::new(method, whole);
        let (seconds, nanos) = (timed.time.as_secs(), timed.time.subsec_nanos());
        Some(quote!(.#method(::core::time::Duration::new(#seconds, #nanos))))
    });
    Ok(quote!(#request #(#durations)*))
}

/// The return type.
fn check_function(function: &ItemFn) -> syn::Result<&Type> {
    let sig = &function.sig;
    if sig.asyncness.is_none() {
        let message = "#[locked] is for `async fn`, which can be stopped when its lock is lost: a thread takes a guard, see \
                       `locktopus::blocking`. What makes a plain function of an `async fn`, as `#[tokio::test]` does, goes \
                       below #[locked]";
        return Err(syn::Error::new(sig.fn_token.span, message));
    }
    match &sig.output {
        ReturnType::Type(_, output) => Ok(output),
        ReturnType::Default => {
            let message = "a function with #[locked] returns a `Result<T, E>` with `E: From<LockError>`: the lock may not be \
                           there to be had, and may be lost";
            Err(syn::Error::new(sig.ident.span(), message))
        }
    }
}

fn check_options(options: &Written, arguments: &[String]) -> syn::Result<()> {
    if let Some(bind) = &options.bind
        && arguments.contains(&bind.to_string())
    {
        let message =
            format!("the function has an argument `{bind}` already, which the body could not use");
        return Err(syn::Error::new(bind.span(), message));
    }
    if let Some(at_least) = &options.at_least {
        check_at_least(at_least, options)?;
    }
    if let (Some(_), Some(fixed)) = (&options.lease, &options.fixed_lease) {
        let message = "either `lease`, which is renewed, or `fixed_lease`, which is not";
        return Err(syn::Error::new(fixed.span, message));
    }
    if let (Some(WhenBusy::Error), Some(wait)) = (options.when_busy, &options.wait) {
        let message =
            "`when_busy = \"error\"` does not wait; leave it out to wait this long and fail then";
        return Err(syn::Error::new(wait.span, message));
    }
    Ok(())
}

/// As the request would at run time.
fn check_at_least(at_least: &Timed, options: &Written) -> syn::Result<()> {
    if !options.kind.unwrap_or(KINDS[0].1).lingers {
        let message = "only a `lock`, a `fair_lock` and a `mutex` are held at least for a time";
        return Err(syn::Error::new(at_least.span, message));
    }
    if let Some(fixed) = &options.fixed_lease
        && fixed.time < at_least.time
    {
        let message = "must not be longer than `fixed_lease`, with which the lock ends by itself";
        return Err(syn::Error::new(at_least.span, message));
    }
    Ok(())
}

/// Everything that the patterns of the arguments bind.
fn arguments(function: &ItemFn) -> Vec<String> {
    let mut names = Vec::new();
    for argument in &function.sig.inputs {
        match argument {
            FnArg::Receiver(_) => names.push("self".to_owned()),
            FnArg::Typed(typed) => bound(&typed.pat, &mut names),
        }
    }
    names
}

fn bound(pattern: &Pat, names: &mut Vec<String>) {
    match pattern {
        Pat::Ident(ident) => {
            names.push(ident.ident.to_string());
            if let Some((_, inner)) = &ident.subpat {
                bound(inner, names);
            }
        }
        Pat::Reference(reference) => bound(&reference.pat, names),
        Pat::Paren(inner) => bound(&inner.pat, names),
        Pat::Slice(slice) => slice.elems.iter().for_each(|part| bound(part, names)),
        Pat::Tuple(tuple) => tuple.elems.iter().for_each(|part| bound(part, names)),
        Pat::TupleStruct(tuple) => tuple.elems.iter().for_each(|part| bound(part, names)),
        Pat::Struct(fields) => {
            let parts = fields.fields.iter();
            parts.for_each(|field| bound(&field.pat, names));
        }
        _ => {}
    }
}
