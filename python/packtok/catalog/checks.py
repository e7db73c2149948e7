"""Checks each answer of ``packtok data create-metadata`` at its question, against the data."""

import datetime
import errno
import os
from collections.abc import Callable, Sequence
from pathlib import Path

from packtok.catalog.candidates import configs_in, corpora_in
from packtok.catalog.questions import AnswerError, Answers, Question
from packtok.catalog.schema import check_output
from packtok.catalog.survey import Guesses, guess
from packtok.catalog.token_ids import checked_dtype, facts_of_tokenizer, fitting_dtype, token_files_of
from packtok.choices import suggestion
from packtok.errors import PacktokError

# File name endings of token files.
_TOKEN_SUFFIXES = (".bin", ".npy", ".pbin")


class Checks:
    """Checks answers; remembers the facts about the data.

    Args:
        given: Answers that are known before the first question.
        replaces: Whether an existing metadata file is replaced.
        asks: Whether somebody can answer again.
        ignore: Globs of files that are no data.
        on_guesses: Called with what the data tells, before the question for the content field.
        remark: Receives a remark that does not refuse an answer.
    """

    def __init__(
        self,
        known: Answers,
        *,
        replaces: bool,
        asks: bool,
        ignore: Sequence[str] = (),
        on_guesses: Callable[[Guesses], None],
        remark: Callable[[str], None],
    ) -> None:
        self._known = known
        self._replaces = replaces
        self._asks = asks
        self._ignore = ignore
        self._on_guesses = on_guesses
        self._remark = remark
        self._guesses: Guesses | None = None
        self._checks: dict[str, Callable[[str, Answers], None]] = {
            "output": self._output,
            "dataset_path": self._dataset_path,
            "date_downloaded": self._date,
            "data_content": self._data_content,
            "content_field": self._content_field,
            "corpus": self._corpus,
            "corpus_separation_strategy": self._strategy,
            "corpus_data_dir_parent": self._parent,
            "tokenized": self._tokenized,
            "tokenizer": self._tokenizer,
            "token_file_extension": self._extension,
            "token_dtype": self._dtype,
        }

    def __call__(self, question: Question, answer: str, answers: Answers) -> None:
        """Checks an answer, given the earlier ones; an exception refuses it."""
        check = self._checks.get(question.name)
        if check is not None:
            check(answer, answers)

    def _output(self, answer: str, answers: Answers) -> None:
        path = Path(answer)
        check_output(path, replace=self._replaces)
        if not path.parent.is_dir():
            raise FileNotFoundError(errno.ENOENT, "no such folder", str(path.parent))

    def _dataset_path(self, answer: str, answers: Answers) -> None:
        if not Path(answer).exists():
            raise FileNotFoundError(errno.ENOENT, "the dataset does not exist", answer)

    def _date(self, answer: str, answers: Answers) -> None:
        for form in ("%Y-%m-%d", "%Y-%m", "%Y"):
            try:
                parsed = datetime.datetime.strptime(answer, form)
            except ValueError:
                continue
            # The comparison refuses 2025-1-2, which strptime accepts: as text, such a date does not sort.
            if parsed.strftime(form) == answer:
                return
        if answer:
            raise AnswerError(
                f"--date-downloaded is {answer!r}, expected a date such as 2025-01-31, 2025-01 or 2025"
            )

    def _data_content(self, answer: str, answers: Answers) -> None:
        self._guesses = None
        for name in ("fields", "guessed_field"):
            answers.pop(name, None)
        if answer != "text" or self._known.get("tokenized") == "y":
            return
        path = answers["dataset_path"]
        try:
            self._guesses = guess(path, self._ignore)
        except (PacktokError, OSError, ValueError) as error:
            # If the command cannot ask again, the error is reported when the texts are read.
            if self._asks and not _has_token_files(Path(path)):
                raise AnswerError(
                    f"the data cannot be read as texts: {_message_of(error)} (for token files, start with "
                    "--tokenized y)",
                    "dataset_path",
                ) from None
            return
        answers["fields"] = self._guesses.fields
        if self._guesses.content_field is not None:
            answers["guessed_field"] = self._guesses.content_field
        self._on_guesses(self._guesses)

    def _content_field(self, answer: str, answers: Answers) -> None:
        guesses = self._guesses
        if guesses is None or not guesses.fields or guesses.format == "text" or answer in guesses.fields:
            return
        raise AnswerError(f"--content-field is {answer!r}, but the data has {_listed(guesses.fields)}")

    def _corpus(self, answer: str, answers: Answers) -> None:
        folder = Path(answers["dataset_path"])
        parent = self._known.get("corpus_data_dir_parent")
        is_config = self._known.get("corpus_separation_strategy") == "configs"
        if is_config or parent is not None or not folder.is_dir() or (folder / answer).is_dir():
            return
        known = corpora_in(answers["dataset_path"])
        if answer not in known:
            raise AnswerError(
                f"--corpus is {answer!r}, but {folder} has no such folder and its README.md no such "
                f"config{suggestion(answer, known)}"
            )

    def _strategy(self, answer: str, answers: Answers) -> None:
        known = configs_in(answers["dataset_path"])
        missing = [corpus for corpus in answers["corpus"] if corpus not in known]
        # If the command cannot ask again, the corpora may be parts that a plug-in reads.
        if answer == "configs" and self._asks and known and missing:
            raise AnswerError(
                f"{missing[0]!r} is not a config of {answers['dataset_path']}, which has {_listed(known)}"
            )

    def _parent(self, answer: str, answers: Answers) -> None:
        folder = Path(answers["dataset_path"], answer)
        missing = [corpus for corpus in answers["corpus"] if not (folder / corpus).is_dir()]
        if missing:
            raise AnswerError(f"corpus {missing[0]!r}: {folder / missing[0]} is not a folder")

    def _tokenized(self, answer: str, answers: Answers) -> None:
        if answer == "n" and answers["data_content"] == "text" and self._asks and self._guesses is None:
            try:
                guess(answers["dataset_path"], self._ignore)
            except (PacktokError, OSError, ValueError) as error:
                raise AnswerError(
                    f"the data cannot be read as texts: {_message_of(error)}; answer y if it is tokenized, "
                    "or give another path",
                    "dataset_path",
                ) from None

    def _tokenizer(self, answer: str, answers: Answers) -> None:
        try:
            answers["tokenizer_facts"] = facts_of_tokenizer(answer)
        except (PacktokError, OSError) as error:
            answers.pop("tokenizer_facts", None)
            is_path = answer.startswith(("/", ".")) or answer.endswith((".json", ".model"))
            if is_path or os.path.exists(answer):
                raise
            self._remark(f"{_message_of(error)}; its vocabulary size and EOS are not recorded")

    def _extension(self, answer: str, answers: Answers) -> None:
        files = token_files_of({**answers, "token_file_extension": answer})
        if not files:
            raise AnswerError(
                f"no file {answers['token_file_prefix']}*.{answer.removeprefix('.')} in "
                f"{answers['dataset_path']}; give the --token-file-prefix and --token-file-extension of the "
                "files",
                "token_file_prefix",
            )
        dtype = fitting_dtype(files, _vocab_size(answers))
        answers.pop("guessed_dtype", None)
        if dtype is not None:
            answers["guessed_dtype"] = dtype

    def _dtype(self, answer: str, answers: Answers) -> None:
        fault = checked_dtype(token_files_of(answers), answer, _vocab_size(answers))
        if fault is not None:
            raise AnswerError(f"--token-dtype is {answer}, but {fault}")


def _vocab_size(answers: Answers) -> int | None:
    facts = answers.get("tokenizer_facts")
    return None if facts is None else facts.vocab_size


def _has_token_files(path: Path) -> bool:
    names = os.listdir(path) if path.is_dir() else [path.name]
    return any(name.endswith(_TOKEN_SUFFIXES) for name in names)


def _listed(names: Sequence[str]) -> str:
    return ", ".join(map(repr, names))


def _message_of(error: Exception) -> str:
    """Returns the message of an error; an OSError keeps its path in a separate attribute."""
    if isinstance(error, OSError) and error.filename is not None:
        return f"{error.filename}: {error.strerror}"
    return str(error)
