//! Notes down every path and every name of a parsed file.

use syn::{
    Arm, Attribute, Block, Expr, ExprPath, Field, FieldPat, FieldValue, ForeignItem, ImplItem, Item, ItemExternCrate,
    ItemMod, ItemUse, Macro, Meta, Pat, Path, QSelf, Stmt, TraitItem, Type, TypePath, UseTree, Variant, VisRestricted,
    ext::IdentExt,
    visit::{self, Visit},
};

use super::{
    attributes,
    notes::{Binding, Written},
    reader::Reader,
    tokens::Strings,
};

impl<'ast> Visit<'ast> for Reader<'_> {
    fn visit_item(&mut self, item: &'ast Item) {
        if attributes::test_only(attributes::of_item(item)) {
            return;
        }
        self.bind_item(item);
        if let Item::Verbatim(tokens) = item {
            self.scan(tokens.clone(), Strings::AreText);
        }
        visit::visit_item(self, item);
    }

    fn visit_item_mod(&mut self, item: &'ast ItemMod) {
        item.attrs.iter().for_each(|attribute| self.visit_attribute(attribute));
        self.module(item);
    }

    fn visit_item_use(&mut self, item: &'ast ItemUse) {
        item.attrs.iter().for_each(|attribute| self.visit_attribute(attribute));
        self.note_use(item);
    }

    fn visit_item_extern_crate(&mut self, item: &'ast ItemExternCrate) {
        let ours = item.ident == "self";
        let name = if ours { "crate".to_owned() } else { item.ident.unraw().to_string() };
        let bound = item.rename.as_ref().map_or(name.clone(), |(_, rename)| rename.unraw().to_string());
        let written = Written { global: !ours, segments: vec![name] };
        self.note(written.clone(), false, item.ident.span().start().line);
        self.bind(&bound, Binding::Import(written));
    }

    fn visit_block(&mut self, block: &'ast Block) {
        self.in_block(|reader| visit::visit_block(reader, block));
    }

    fn visit_stmt(&mut self, statement: &'ast Stmt) {
        if !attributes::test_only(attributes::of_statement(statement)) {
            visit::visit_stmt(self, statement);
        }
    }

    fn visit_impl_item(&mut self, item: &'ast ImplItem) {
        if let ImplItem::Verbatim(tokens) = item {
            self.scan(tokens.clone(), Strings::AreText);
        }
        if !attributes::test_only(attributes::of_impl_item(item)) {
            visit::visit_impl_item(self, item);
        }
    }

    fn visit_trait_item(&mut self, item: &'ast TraitItem) {
        if let TraitItem::Verbatim(tokens) = item {
            self.scan(tokens.clone(), Strings::AreText);
        }
        if !attributes::test_only(attributes::of_trait_item(item)) {
            visit::visit_trait_item(self, item);
        }
    }

    fn visit_foreign_item(&mut self, item: &'ast ForeignItem) {
        if let ForeignItem::Verbatim(tokens) = item {
            self.scan(tokens.clone(), Strings::AreText);
        }
        visit::visit_foreign_item(self, item);
    }

    fn visit_field(&mut self, field: &'ast Field) {
        if !attributes::test_only(&field.attrs) {
            visit::visit_field(self, field);
        }
    }

    fn visit_variant(&mut self, variant: &'ast Variant) {
        if !attributes::test_only(&variant.attrs) {
            visit::visit_variant(self, variant);
        }
    }

    fn visit_arm(&mut self, arm: &'ast Arm) {
        if !attributes::test_only(&arm.attrs) {
            visit::visit_arm(self, arm);
        }
    }

    fn visit_field_value(&mut self, field: &'ast FieldValue) {
        if !attributes::test_only(&field.attrs) {
            visit::visit_field_value(self, field);
        }
    }

    fn visit_field_pat(&mut self, field: &'ast FieldPat) {
        if !attributes::test_only(&field.attrs) {
            visit::visit_field_pat(self, field);
        }
    }

    fn visit_expr(&mut self, expression: &'ast Expr) {
        if let Expr::Verbatim(tokens) = expression {
            self.scan(tokens.clone(), Strings::AreText);
        }
        visit::visit_expr(self, expression);
    }

    fn visit_type(&mut self, kind: &'ast Type) {
        if let Type::Verbatim(tokens) = kind {
            self.scan(tokens.clone(), Strings::AreText);
        }
        visit::visit_type(self, kind);
    }

    fn visit_pat(&mut self, pattern: &'ast Pat) {
        if let Pat::Verbatim(tokens) = pattern {
            self.scan(tokens.clone(), Strings::AreText);
        }
        visit::visit_pat(self, pattern);
    }

    fn visit_expr_path(&mut self, path: &'ast ExprPath) {
        self.note_of_type(path.qself.as_ref(), &path.path);
        visit::visit_expr_path(self, path);
    }

    fn visit_type_path(&mut self, path: &'ast TypePath) {
        self.note_of_type(path.qself.as_ref(), &path.path);
        visit::visit_type_path(self, path);
    }

    fn visit_path(&mut self, path: &'ast Path) {
        // A name alone is a local one, or a `use` brings it in and is noted itself. `<T>::f` comes here as `::f`.
        if path.segments.len() > 1 {
            self.note(written(path), false, line(path));
        }
        visit::visit_path(self, path);
    }

    fn visit_macro(&mut self, call: &'ast Macro) {
        self.visit_path(&call.path);
        self.scan(call.tokens.clone(), Strings::AreText);
    }

    fn visit_attribute(&mut self, attribute: &'ast Attribute) {
        if !attributes::holds_code(attribute) {
            return;
        }
        self.visit_path(attribute.path());
        match &attribute.meta {
            Meta::Path(_) => {}
            Meta::List(list) => self.scan(list.tokens.clone(), Strings::MayBePaths),
            Meta::NameValue(pair) => self.visit_expr(&pair.value),
        }
    }

    /// `pub(in crate::a)` says who may look in, and looks nowhere itself.
    fn visit_vis_restricted(&mut self, _: &'ast VisRestricted) {}
}

impl Reader<'_> {
    /// Notes what a `use` brings in.
    pub(super) fn note_use(&mut self, item: &ItemUse) {
        let start = Written { global: item.leading_colon.is_some(), segments: Vec::new() };
        self.note_tree(&item.tree, &start);
    }

    fn note_tree(&mut self, tree: &UseTree, before: &Written) {
        match tree {
            UseTree::Path(path) => self.note_tree(&path.tree, &before.then(&path.ident)),
            UseTree::Group(group) => group.items.iter().for_each(|tree| self.note_tree(tree, before)),
            UseTree::Glob(glob) => {
                self.note(before.clone(), true, glob.star_token.span.start().line);
                self.bind_glob(before.clone());
            }
            UseTree::Name(name) => self.note_leaf(before.then(&name.ident), None, name.ident.span().start().line),
            UseTree::Rename(rename) => {
                let bound = rename.rename.unraw().to_string();
                self.note_leaf(before.then(&rename.ident), Some(bound), rename.ident.span().start().line);
            }
        }
    }

    fn note_leaf(&mut self, mut path: Written, bound: Option<String>, line: usize) {
        if path.segments.len() > 1 && path.segments.last().is_some_and(|last| last == "self") {
            path.segments.pop();
        }
        let bound = bound.or_else(|| path.segments.last().cloned()).unwrap_or_default();
        self.note(path.clone(), false, line);
        self.bind(&bound, Binding::Import(path));
    }

    fn bind_item(&mut self, item: &Item) {
        let (name, binding) = match item {
            Item::Struct(syn::ItemStruct { ident, .. })
            | Item::Enum(syn::ItemEnum { ident, .. })
            | Item::Union(syn::ItemUnion { ident, .. })
            | Item::Trait(syn::ItemTrait { ident, .. })
            | Item::TraitAlias(syn::ItemTraitAlias { ident, .. })
            | Item::Type(syn::ItemType { ident, .. }) => (ident, Binding::Type),
            Item::Const(syn::ItemConst { ident, .. }) | Item::Static(syn::ItemStatic { ident, .. }) => {
                (ident, Binding::Value)
            }
            Item::Fn(function) => (&function.sig.ident, Binding::Value),
            Item::Macro(syn::ItemMacro { ident: Some(ident), .. }) => (ident, Binding::Value),
            _ => return,
        };
        self.bind(&name.unraw().to_string(), binding);
    }

    /// Notes `<a::T>::f` as `a::T::f`.
    fn note_of_type(&mut self, of: Option<&QSelf>, path: &Path) {
        let Some(QSelf { position: 0, ty, .. }) = of else { return };
        if let Type::Path(TypePath { qself: None, path: owner }) = &**ty {
            let mut whole = written(owner);
            whole.segments.extend(written(path).segments);
            self.note(whole, false, line(path));
        }
    }
}

impl Written {
    fn then(&self, segment: &proc_macro2::Ident) -> Self {
        let mut longer = self.clone();
        longer.segments.push(segment.unraw().to_string());
        longer
    }
}

fn written(path: &Path) -> Written {
    Written {
        global: path.leading_colon.is_some(),
        segments: path.segments.iter().map(|segment| segment.ident.unraw().to_string()).collect(),
    }
}

fn line(path: &Path) -> usize {
    path.segments.first().map_or(0, |segment| segment.ident.span().start().line)
}
