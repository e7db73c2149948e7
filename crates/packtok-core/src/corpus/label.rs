//! Names sources by their place relative to the folder they have in common, so that what is written
//! about them does not depend on where the corpus lies.

use std::path::{Component, Path, PathBuf};

use crate::error::{Error, Result};

/// The labels of `paths`, in their order.
pub(super) fn labels<'a>(paths: impl Iterator<Item = &'a Path>) -> Result<Vec<String>> {
    let paths = paths.map(absolute).collect::<Result<Vec<_>>>()?;
    let root = common_folder(&paths);
    let label = |path: &PathBuf| {
        let names = path.components().skip(root);
        let names = names.map(|name| name.as_os_str().to_string_lossy());
        names.collect::<Vec<_>>().join("/")
    };
    Ok(paths.iter().map(label).collect())
}

/// The absolute path with `.` and `..` resolved by name only: links keep the names that the user
/// gave them.
pub(crate) fn absolute(path: &Path) -> Result<PathBuf> {
    let unresolved = std::path::absolute(path).map_err(|cause| Error::io(path, cause))?;
    let mut normal = PathBuf::new();
    for component in unresolved.components() {
        match component {
            Component::ParentDir => {
                normal.pop();
            }
            Component::CurDir => {}
            component => normal.push(component),
        }
    }
    Ok(normal)
}

/// Number of components of the deepest folder that holds all `paths`.
fn common_folder(paths: &[PathBuf]) -> usize {
    let Some((first, rest)) = paths.split_first() else {
        return 0;
    };
    let in_common = |path: &PathBuf| {
        let pairs = first.components().zip(path.components());
        pairs.take_while(|(a, b)| a == b).count()
    };
    let folder = first.components().count().saturating_sub(1);
    rest.iter().map(in_common).fold(folder, usize::min)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(paths: &[&str]) -> Vec<String> {
        labels(paths.iter().map(Path::new)).unwrap()
    }

    #[test]
    fn one_file_is_called_by_its_name() {
        assert_eq!(of(&["/data/a/x.jsonl"]), ["x.jsonl"]);
    }

    #[test]
    fn labels_start_at_the_common_folder() {
        assert_eq!(
            of(&["/data/a/x.jsonl", "/data/a/b/y.jsonl", "/data/ab/z.jsonl"]),
            ["a/x.jsonl", "a/b/y.jsonl", "ab/z.jsonl"],
        );
    }

    #[test]
    fn dots_are_resolved() {
        assert_eq!(
            of(&["/data/./a/../x.jsonl", "/data/y.jsonl"]),
            ["x.jsonl", "y.jsonl"]
        );
    }
}
