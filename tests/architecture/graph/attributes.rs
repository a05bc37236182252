//! What attributes say: which code is for tests alone, where a module's file lies, which ones hold code.

use syn::{
    Attribute, Expr, ExprLit, ImplItem, Item, Lit, Meta, MetaNameValue, Stmt, Token, TraitItem, punctuated::Punctuated,
};

/// Attributes that hold prose, conditions and the names of lints, never a path of the crate.
const WITHOUT_CODE: &[&str] = &["allow", "cfg", "deny", "doc", "expect", "forbid", "path", "warn"];

/// Tells whether what carries these attributes is compiled for tests alone.
pub fn test_only(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        is_test(attribute)
            || (attribute.path().is_ident("cfg") && condition(attribute).is_some_and(|it| needs_test(&it)))
    })
}

/// Tells whether the attribute may hold paths to modules.
pub fn holds_code(attribute: &Attribute) -> bool {
    if attribute.path().is_ident("cfg_attr") {
        return !condition(attribute).is_some_and(|it| needs_test(&it));
    }
    !WITHOUT_CODE.iter().any(|name| attribute.path().is_ident(name))
}

/// The file that `#[path = ".."]` names.
pub fn path(attributes: &[Attribute]) -> Option<String> {
    attributes.iter().filter(|attribute| attribute.path().is_ident("path")).find_map(|attribute| {
        match &attribute.meta {
            Meta::NameValue(MetaNameValue { value: Expr::Lit(ExprLit { lit: Lit::Str(text), .. }), .. }) => {
                Some(text.value())
            }
            _ => None,
        }
    })
}

/// `#[test]`, and its likes as `#[tokio::test]`.
fn is_test(attribute: &Attribute) -> bool {
    attribute.path().segments.last().is_some_and(|segment| segment.ident == "test")
}

/// The condition of `cfg(..)` or `cfg_attr(.., ..)`.
fn condition(attribute: &Attribute) -> Option<Meta> {
    let parts = attribute.parse_args_with(|input: syn::parse::ParseStream<'_>| {
        let condition: Meta = input.parse()?;
        input.parse::<proc_macro2::TokenStream>()?;
        Ok(condition)
    });
    parts.ok()
}

/// Tells whether a condition holds in tests alone.
fn needs_test(condition: &Meta) -> bool {
    let Meta::List(list) = condition else { return condition.path().is_ident("test") };
    let Ok(parts) = list.parse_args_with(Punctuated::<Meta, Token![,]>::parse_terminated) else { return false };
    if list.path.is_ident("all") {
        parts.iter().any(needs_test)
    } else {
        list.path.is_ident("any") && !parts.is_empty() && parts.iter().all(needs_test)
    }
}

/// The attributes of an item.
pub fn of_item(item: &Item) -> &[Attribute] {
    match item {
        Item::Const(syn::ItemConst { attrs, .. })
        | Item::Enum(syn::ItemEnum { attrs, .. })
        | Item::ExternCrate(syn::ItemExternCrate { attrs, .. })
        | Item::Fn(syn::ItemFn { attrs, .. })
        | Item::ForeignMod(syn::ItemForeignMod { attrs, .. })
        | Item::Impl(syn::ItemImpl { attrs, .. })
        | Item::Macro(syn::ItemMacro { attrs, .. })
        | Item::Mod(syn::ItemMod { attrs, .. })
        | Item::Static(syn::ItemStatic { attrs, .. })
        | Item::Struct(syn::ItemStruct { attrs, .. })
        | Item::Trait(syn::ItemTrait { attrs, .. })
        | Item::TraitAlias(syn::ItemTraitAlias { attrs, .. })
        | Item::Type(syn::ItemType { attrs, .. })
        | Item::Union(syn::ItemUnion { attrs, .. })
        | Item::Use(syn::ItemUse { attrs, .. }) => attrs,
        _ => &[],
    }
}

/// The attributes of something in an `impl`.
pub fn of_impl_item(item: &ImplItem) -> &[Attribute] {
    match item {
        ImplItem::Const(syn::ImplItemConst { attrs, .. })
        | ImplItem::Fn(syn::ImplItemFn { attrs, .. })
        | ImplItem::Type(syn::ImplItemType { attrs, .. })
        | ImplItem::Macro(syn::ImplItemMacro { attrs, .. }) => attrs,
        _ => &[],
    }
}

/// The attributes of something in a `trait`.
pub fn of_trait_item(item: &TraitItem) -> &[Attribute] {
    match item {
        TraitItem::Const(syn::TraitItemConst { attrs, .. })
        | TraitItem::Fn(syn::TraitItemFn { attrs, .. })
        | TraitItem::Type(syn::TraitItemType { attrs, .. })
        | TraitItem::Macro(syn::TraitItemMacro { attrs, .. }) => attrs,
        _ => &[],
    }
}

/// The attributes of a statement. Those of an item in a block are asked for as an item's.
pub fn of_statement(statement: &Stmt) -> &[Attribute] {
    match statement {
        Stmt::Local(syn::Local { attrs, .. }) | Stmt::Macro(syn::StmtMacro { attrs, .. }) => attrs,
        Stmt::Expr(expression, _) => of_expression(expression),
        Stmt::Item(_) => &[],
    }
}

/// The attributes of an expression, of the kinds that carry any in practice.
fn of_expression(expression: &Expr) -> &[Attribute] {
    match expression {
        Expr::Assign(syn::ExprAssign { attrs, .. })
        | Expr::Block(syn::ExprBlock { attrs, .. })
        | Expr::Call(syn::ExprCall { attrs, .. })
        | Expr::ForLoop(syn::ExprForLoop { attrs, .. })
        | Expr::If(syn::ExprIf { attrs, .. })
        | Expr::Macro(syn::ExprMacro { attrs, .. })
        | Expr::Match(syn::ExprMatch { attrs, .. })
        | Expr::MethodCall(syn::ExprMethodCall { attrs, .. })
        | Expr::Return(syn::ExprReturn { attrs, .. })
        | Expr::Unsafe(syn::ExprUnsafe { attrs, .. }) => attrs,
        _ => &[],
    }
}
