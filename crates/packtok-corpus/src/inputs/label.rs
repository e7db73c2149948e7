//! Labels of sources: their paths relative to the common folder, so that outputs do not depend on
//! where the corpus is stored.

use std::borrow::Cow;
use std::path::{Component, Path, PathBuf};

use crate::error::{Error, Result};
use crate::is_url;

/// The labels of `paths`, in order.
pub(crate) fn labels<'a>(paths: impl Iterator<Item = &'a Path> + Clone) -> Result<Vec<String>> {
    let current = CurrentFolder::of(paths.clone())?;
    let mut root: Option<Vec<u8>> = None;
    for path in paths.clone() {
        let path = current.absolute(path);
        let path = path.as_os_str().as_encoded_bytes();
        match &mut root {
            // The label includes the file name even if there is only one file.
            None => root = Some(path[..=last_slash(path).unwrap_or(0)].to_vec()),
            Some(root) => {
                while !path.starts_with(root) {
                    root.pop();
                    root.truncate(last_slash(root).map_or(0, |slash| slash + 1));
                }
            }
        }
    }
    let root_bytes = root.map_or(0, |root| root.len());
    let label = |path: &Path| {
        let path = current.absolute(path);
        String::from_utf8_lossy(&path.as_os_str().as_encoded_bytes()[root_bytes..]).into_owned()
    };
    Ok(paths.map(label).collect())
}

fn last_slash(path: &[u8]) -> Option<usize> {
    memchr::memrchr(b'/', path)
}

/// The folder that relative paths start from, queried once.
pub struct CurrentFolder(PathBuf);

impl CurrentFolder {
    /// The current folder if any of `paths` is relative; otherwise it is not needed.
    pub fn of<'a>(mut paths: impl Iterator<Item = &'a Path>) -> Result<Self> {
        match paths.find(|path| path.is_relative() && !is_url(path)) {
            None => Ok(Self(PathBuf::new())),
            Some(path) => std::env::current_dir()
                .map(Self)
                .map_err(|cause| Error::io(path, cause)),
        }
    }

    /// The absolute path with `.` and `..` resolved lexically; symbolic links are kept as the user
    /// wrote them.
    pub fn absolute<'a>(&self, path: &'a Path) -> Cow<'a, Path> {
        if is_url(path) {
            return Cow::Borrowed(path);
        }
        if is_plain(path) {
            return if path.is_absolute() {
                Cow::Borrowed(path)
            } else {
                Cow::Owned(self.0.join(path))
            };
        }
        let mut absolute = PathBuf::new();
        for component in self.0.join(path).components() {
            match component {
                Component::ParentDir => {
                    absolute.pop();
                }
                Component::CurDir => {}
                component => absolute.push(component),
            }
        }
        Cow::Owned(absolute)
    }
}

/// Whether the path consists of plain names only.
fn is_plain(path: &Path) -> bool {
    let path = path.as_os_str().as_encoded_bytes();
    let mut names = path
        .strip_prefix(b"/")
        .unwrap_or(path)
        .split(|&byte| byte == b'/');
    names.all(|name| !matches!(name, b"" | b"." | b".."))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(paths: &[&str]) -> Vec<String> {
        labels(paths.iter().map(Path::new)).unwrap()
    }

    #[test]
    fn the_label_of_a_single_file_is_its_name() {
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
    fn the_common_folder_may_be_the_root() {
        assert_eq!(of(&["/a/x", "/b/x", "/x"]), ["a/x", "b/x", "x"]);
        assert_eq!(of(&["/x"]), ["x"]);
        assert_eq!(of(&["/data/ab/x", "/data/a/x"]), ["ab/x", "a/x"]);
    }

    #[test]
    fn relative_paths_start_from_the_current_folder() {
        let current = std::env::current_dir().unwrap();
        let absolute = current.join("b/y").display().to_string();
        assert_eq!(of(&["a/./x", &absolute]), ["a/x", "b/y"]);
        assert_eq!(of(&["a//x", "a/b/../x/"]), ["x", "x"]);
    }

    #[test]
    fn dots_are_resolved() {
        assert_eq!(
            of(&["/data/./a/../x.jsonl", "/data/y.jsonl"]),
            ["x.jsonl", "y.jsonl"]
        );
    }
}
