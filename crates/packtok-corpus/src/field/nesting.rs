//! Limits the nesting of terms in a pattern: evaluating and dropping a pattern recurse as deeply.

use jaq_core::load::lex::StrPart;
use jaq_core::load::parse::{BinaryOp, Def, Pattern, Term};
use jaq_core::path::{Part, Path};

use super::PatternError;

/// Maximum nesting of terms. A chain of operators nests too: each contains the previous one.
const MAX_NESTING: usize = 2000;

/// Maximum number of parts in one path. Each evaluation of a path extends a path value by as many
/// components.
const MAX_PARTS: usize = 256;

/// Checks that the terms of a pattern are not nested too deeply.
///
/// # Errors
/// The pattern exceeds [`MAX_NESTING`] or [`MAX_PARTS`].
pub(super) fn check(pattern: &Term<&str>) -> Result<(), PatternError> {
    let mut todo = vec![(Node::Term(pattern), 1)];
    while let Some((node, depth)) = todo.pop() {
        if depth > MAX_NESTING {
            return Err(PatternError::TooDeep { max: MAX_NESTING });
        }
        node.parts(&mut |part| todo.push((part, depth + 1)));
        if let Node::Term(Term::Path(_, Path(parts))) = node
            && parts.len() > MAX_PARTS
        {
            return Err(PatternError::LongPath { max: MAX_PARTS });
        }
    }
    Ok(())
}

enum Node<'p, 's> {
    Term(&'p Term<&'s str>),
    Pattern(&'p Pattern<&'s str>),
}

impl<'p, 's> Node<'p, 's> {
    /// Calls `visit` for the direct children of a node.
    fn parts(&self, visit: &mut impl FnMut(Node<'p, 's>)) {
        match self {
            Self::Term(term) => term_parts(term, visit),
            Self::Pattern(Pattern::Var(_)) => {}
            Self::Pattern(Pattern::Arr(items)) => items.iter().map(Node::Pattern).for_each(visit),
            Self::Pattern(Pattern::Obj(entries)) => {
                for (key, item) in entries {
                    visit(Node::Term(key));
                    visit(Node::Pattern(item));
                }
            }
        }
    }
}

fn term_parts<'p, 's>(term: &'p Term<&'s str>, visit: &mut impl FnMut(Node<'p, 's>)) {
    let mut each = |terms: &mut dyn Iterator<Item = &'p Term<&'s str>>| {
        terms.for_each(|term| visit(Node::Term(term)));
    };
    match term {
        Term::Id
        | Term::Recurse
        | Term::Num(_)
        | Term::Arr(None)
        | Term::Break(_)
        | Term::Var(_) => {}
        Term::Str(_, parts) => each(&mut parts.iter().filter_map(|part| match part {
            StrPart::Term(term) => Some(term),
            _ => None,
        })),
        Term::Arr(Some(inner)) | Term::Neg(inner) | Term::Label(_, inner) => {
            each(&mut std::iter::once(&**inner));
        }
        Term::Obj(entries) => {
            each(
                &mut entries
                    .iter()
                    .flat_map(|(key, value)| std::iter::once(key).chain(value)),
            );
        }
        Term::BinOp(left, op, right) => {
            each(&mut [&**left, &**right].into_iter());
            if let BinaryOp::Pipe(Some(variables)) = op {
                visit(Node::Pattern(variables));
            }
        }
        Term::Fold(_, inputs, variables, arguments) => {
            each(&mut std::iter::once(&**inputs).chain(arguments));
            visit(Node::Pattern(variables));
        }
        Term::TryCatch(body, catch) => {
            each(&mut std::iter::once(&**body).chain(catch.as_deref()));
        }
        // The branches are nested: each is in the `else` of the previous one.
        Term::IfThenElse(branches, otherwise) => {
            let branches = branches
                .iter()
                .flat_map(|(condition, then)| [condition, then]);
            each(&mut branches.chain(otherwise.as_deref()));
        }
        Term::Def(definitions, body) => {
            let bodies = definitions.iter().map(|Def { body, .. }| body);
            each(&mut bodies.chain([&**body]));
        }
        Term::Call(_, arguments) => each(&mut arguments.iter()),
        Term::Path(start, Path(parts)) => {
            each(&mut std::iter::once(&**start));
            for (part, _) in parts {
                match part {
                    Part::Index(index) => each(&mut std::iter::once(index)),
                    Part::Range(start, stop) => each(&mut start.iter().chain(stop)),
                }
            }
        }
    }
}
