"""Checks that the compiled module drops no exception of Python.

    python3 scripts/exceptions.py     checks; prints errors and exits with 1

A signal handler may raise in any call of Python, so an error that is turned into a default, an option or
another error may be `KeyboardInterrupt` or `SystemExit`. Reads the sources as text, and finds each place that
can discard the error of a `Result`, or that looks like it. Casts raise nothing: they compare types.
"""

import re
import sys
from collections.abc import Iterator
from pathlib import Path

SOURCES = Path(__file__).resolve().parent.parent / "crates" / "packtok-py" / "src"

DISCARDS = re.compile(
    r"\.(?:ok|err)\(\)|\.is_(?:ok|err)(?:_and)?\(|\bunwrap_or(?:_default)?\(|\bmap_or\("
    r"|\b(?:map_err|or_else|map_or_else|unwrap_or_else|inspect_err)\(\|_|\blet Ok\(|\bErr\(_\)|\blet _ ="
    r"|\bPyErr::take\b"
)
# A statement begins at most this many lines before the place.
STATEMENT_LINES = 3

# The lines that discard no exception, with the reasons.
OPTION = "an option"
NUMBER = "a conversion of numbers"
ALLOWED: dict[str, dict[str, str]] = {
    "boundary/allocator.rs": {"let _ = writeln!(": "the error of writing a line while memory is lacking"},
    "boundary/arrays.rs": {"Err(_) => array.get_type().to_string(),": "the error of a cast"},
    "boundary/calls.rs": {"Err(_) => {}": "the exception whose text fails is raised itself"},
    "boundary/values.rs": {'let (_, names) = text.rsplit_once(", expected ").unwrap_or_default();': OPTION},
    "boundary/process.rs": {
        "std::thread::available_parallelism().map_or(1, usize::from)": "the error of a system call"
    },
    "boundary/error.rs": {'let message = text.split(" (os error").next().unwrap_or(&text);': OPTION},
    "boundary/integers.rs": {".map(|(at, &number)| U::try_from(number).map_err(|_| at))": NUMBER},
    "boundary/memory.rs": {
        "if fallible(|| ids.try_reserve_exact(num_ids)).is_err() {": "the error of an allocation",
    },
    "boundary/monitor.rs": {"self.raised.unwrap_or(error)": OPTION},
    "boundary/strings.rs": {"Err(_) => None,": "the reason why the layout is unknown, which is no exception"},
    "dataset/blocks.rs": {
        "let dtype = dtype.map_or(Ok(Dtype::File), |dtype| Dtype::parse(&dtype, files.width()))?;": OPTION,
    },
    "dataset/files.rs": {"let options = options_of(&self.read_as.unwrap_or_default())?;": OPTION},
    "dataset/mixture.rs": {".ok()": NUMBER, "context_length.unwrap_or(0),": OPTION},
    "dataset/order.rs": {
        "let num_items = u64::try_from(num_items).map_err(|_| {": NUMBER,
        ".ok()": NUMBER,
        "if fallible(|| numbers.try_reserve_exact(num)).is_err() {": "the error of an allocation",
    },
    "dataset/origin.rs": {
        "let source = usize::try_from(place.source).ok();": NUMBER,
        '(path, source.format.map_or("byte", offset_unit))': OPTION,
    },
    "dataset/plans.rs": {"seed: seed.unwrap_or(0),": OPTION},
    "pack/plugin.rs": {
        "let mut text = kind.unwrap_or_default();": "the name of a class, which runs no Python code",
        "text + &place().unwrap_or_default()": "fields of a traceback, which run no Python code",
        "batch.unwrap_or(Err(Error::Jobs(packtok_jobs::Error::WorkerDied)))": OPTION,
    },
    "pack/scans.rs": {
        "let selection = selection(format, &ignore.unwrap_or_default(), None)?;": OPTION,
    },
    "pack/texts.rs": {
        "let ready = (self.state.try_lock().ok()).and_then(|mut state| state.1.next());": (
            "the error of a lock"
        ),
        "*ready = texts.next_batch()?.unwrap_or_default().into_iter();": OPTION,
    },
    "reshape/mds.rs": {
        "unknown.unwrap_or_default()": OPTION,
        "let (shard, _) = index.find(number).unwrap_or_default();": OPTION,
    },
    "reshape/shuffle.rs": {"py.detach(|| self.lock().as_ref().map_or(0, Filter::num_taken))": OPTION},
    "stream/mod.rs": {
        "let selection = selection(format, &ignore.unwrap_or_default(), split)?;": OPTION,
    },
    "stream/samples.rs": {
        "if let Ok(text) = value.cast_exact::<PyString>() {": "the error of a cast",
        "text.len().unwrap_or(0)": "the length of a str, which runs no Python code",
        'let dict = dict.map_err(|_| PyRuntimeError::new_err("a sample is not one of Python"))?;': (
            "the error of a downcast in Rust"
        ),
        "let len = first_row.map_or(0, |(row, _)| row.ids.len());": OPTION,
        "let input_ids = arrays[i.unwrap_or(0)].1;": OPTION,
        "(row, out) = out.split_at_mut(value.num_tokens().unwrap_or(0));": OPTION,
    },
    "tokenizer/mod.rs": {
        "let mut last = LAST_BUILTIN.try_lock().ok()?;": "the error of a lock",
        "None => Ok(std::thread::available_parallelism().map_or(1, usize::from)),": (
            "the error of a system call"
        ),
        "Some(1..=4096) => Ok(threads.unwrap_or(1)),": OPTION,
    },
}


def places(path: Path) -> Iterator[tuple[int, str]]:
    """Yields number and text of the lines that may discard an exception."""
    lines = path.read_text(encoding="utf-8").splitlines()
    for number, line in enumerate(lines):
        before = lines[max(0, number - STATEMENT_LINES) : number + 1]
        is_cast = any(".cast::<" in earlier or ".cast()" in earlier for earlier in before)
        if DISCARDS.search(line) and not is_cast and not line.lstrip().startswith("//"):
            yield number + 1, line.strip()


def errors() -> Iterator[str]:
    """Yields an error for each place that is not allowed, and for each allowed place that is gone."""
    for path in sorted(SOURCES.glob("**/*.rs")):
        allowed = ALLOWED.get(path.relative_to(SOURCES).as_posix(), {})
        discards = list(places(path))
        for number, line in discards:
            if line not in allowed:
                yield (
                    f"{path}:{number}: may drop an exception of Python: {line}; return the error, or list "
                    "the line in scripts/exceptions.py with the reason why there is none"
                )
        for line in set(allowed) - {line for _, line in discards}:
            yield f"{path}: {line!r} is in scripts/exceptions.py but not in the file; remove it there"


if __name__ == "__main__":
    problems = list(errors())
    print("\n".join(problems) or "no exception is dropped")
    sys.exit(bool(problems))
