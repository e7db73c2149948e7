"""The questions that fill in a dataset's metadata: tatm's, with tatm's order and defaults, and two more."""

import datetime
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from packtok.catalog.candidates import corpora_in
from packtok.catalog.places import written_path
from packtok.catalog.schema import DatasetMetadata, TokenizedInfo
from packtok.choices import check_choice
from packtok.errors import ConfigError, PacktokError

Answers = dict[str, Any]
# Asks one question, given the default and the answers to offer. An empty answer means the default.
Ask = Callable[["Question", str, Sequence[str]], str]
# Checks an answer (for a list, one of its items), given the earlier answers. Any `PacktokError`, `OSError` or
# `ValueError` refuses the answer. The check may add values from the data to the earlier answers.
Check = Callable[["Question", str, Answers], None]


class AnswerError(ConfigError):
    """An answer is refused.

    Args:
        message: Why.
        again: The earlier question to answer again too, because its answer may be the wrong one.
    """

    def __init__(self, message: str, again: str | None = None) -> None:
        super().__init__(message)
        self.again = again


class NoAnswerError(ConfigError):
    """The answers ended before the questions."""


@dataclass(frozen=True, kw_only=True)
class Question:
    """One question of ``packtok data create-metadata``."""

    name: str
    """Name of the answer; with hyphens, that of the flag."""
    text: str
    """The question as it is asked."""
    help: str
    """One sentence for ``--help``."""
    default: Callable[[Answers], str] = lambda _: ""
    """The answer if there is none, given the earlier answers."""
    choices: tuple[str, ...] = ()
    """The allowed answers, if there is a fixed set."""
    is_path: bool = False
    """Whether paths are offered as completions."""
    is_list: bool = False
    """Whether the question repeats until an empty answer; the answer is a list."""
    applies: Callable[[Answers], bool] = lambda _: True
    """Whether the question is asked, given the earlier answers."""
    offered: Callable[[Answers], Sequence[str]] | None = None
    """Answers to offer as completions, given the earlier answers. Default: ``choices``."""
    is_of_tatm: bool = True
    """Whether tatm asks this question too; if the answers end early, only the others get their defaults."""

    @property
    def flag(self) -> str:
        """The flag that gives the answer."""
        return f"--{self.name.replace('_', '-')}"


def _fixed(text: str) -> Callable[[Answers], str]:
    return lambda _: text


def _has_corpora(answers: Answers) -> bool:
    return len(answers["corpus"]) > 1


def _is_tokenized(answers: Answers) -> bool:
    return bool(answers["tokenized"] == "y")


QUESTIONS = (
    Question(
        name="output_format",
        text="Output format",
        help="Format of the metadata file.",
        default=_fixed("json"),
        choices=("json", "yaml"),
    ),
    Question(
        name="output",
        text="Output path",
        help="The metadata file to write.",
        default=lambda answers: os.path.join(os.getcwd(), f"metadata.{answers['output_format']}"),
        is_path=True,
    ),
    Question(
        name="name",
        text="Name",
        help="Name of the dataset.",
        default=lambda _: Path.cwd().name,
    ),
    Question(
        name="dataset_path",
        text="Dataset path",
        help="Folder or file of the data.",
        default=lambda _: os.getcwd(),
        is_path=True,
    ),
    Question(name="description", text="Dataset description", help="What the dataset contains."),
    Question(
        name="date_downloaded",
        text="Date downloaded",
        help="Date of the download.",
        default=lambda _: datetime.date.today().isoformat(),
    ),
    Question(name="download_source", text="Download source", help="Where the data comes from."),
    Question(
        name="data_content",
        text="Data content",
        help="What kind of data it is.",
        default=_fixed("text"),
        choices=("text", "image", "audio", "video", "other"),
    ),
    Question(
        name="content_field",
        text="Content field",
        help="The column or field that contains the texts.",
        # A guess from the data replaces this default, if there is one.
        default=lambda answers: answers.get("guessed_field", "text"),
        offered=lambda answers: answers.get("fields", ()),
    ),
    Question(
        name="corpus",
        text="Add a corpus (leave blank to finish)",
        help="A part of the dataset with a name of its own; repeatable.",
        is_list=True,
        offered=lambda answers: corpora_in(answers["dataset_path"]),
    ),
    Question(
        name="corpus_separation_strategy",
        text="Corpus separation strategy",
        help="Whether corpora are folders or configs of Hugging Face datasets.",
        default=_fixed("data_dirs"),
        choices=("data_dirs", "configs"),
        applies=_has_corpora,
    ),
    Question(
        name="corpus_data_dir_parent",
        text="Parent directory of corpus data directories",
        help="Folder of the corpora's folders, relative to the dataset path.",
        applies=lambda answers: (
            _has_corpora(answers) and answers["corpus_separation_strategy"] == "data_dirs"
        ),
        is_path=True,
    ),
    Question(
        name="tokenized",
        text="Is the dataset tokenized? (y/n)",
        help="Whether the dataset consists of token files.",
        default=_fixed("n"),
        choices=("y", "n"),
    ),
    Question(
        name="tokenizer",
        text="Tokenizer name or path to JSON",
        help="The tokenizer of the token files.",
        default=_fixed("t5-base"),
        is_path=True,
        applies=_is_tokenized,
    ),
    Question(
        name="token_file_prefix",
        text="Token file prefix",
        help="Start of the names of the token files.",
        default=_fixed("tokenized"),
        applies=_is_tokenized,
    ),
    Question(
        name="token_file_extension",
        text="Token file extension",
        help="End of the names of the token files.",
        default=_fixed("bin"),
        applies=_is_tokenized,
    ),
    Question(
        name="token_dtype",
        text="Token data type",
        help="Type of the tokens in the files.",
        # If another type is impossible, the type that the files have replaces this default.
        default=lambda answers: answers.get("guessed_dtype", "uint16"),
        choices=("uint8", "uint16", "uint32"),
        applies=_is_tokenized,
    ),
    Question(
        name="language",
        text="Language",
        help="Language of the texts, such as en or multilingual.",
        is_of_tatm=False,
    ),
    Question(
        name="license", text="License", help="Licence of the data, such as ODC-By-1.0.", is_of_tatm=False
    ),
)


_PLACES = {question.name: i for i, question in enumerate(QUESTIONS)}


def answer_all(
    answers: Mapping[str, Any],
    ask: Ask | None,
    check: Check,
    complain: Callable[[Exception], None] = lambda _: None,
) -> Answers:
    """Returns an answer to every question.

    With ``ask``, an answer that is refused is asked for again, and all others are kept.

    Args:
        answers: Answers that are known already, by name of the question; ``None`` counts as no answer.
        ask: Asks the other questions; ``None`` takes their defaults.
        check: Checks each answer.
        complain: Receives the reason why an answer is refused, before it is asked for again.

    Raises:
        ConfigError: If a known answer is not one of the choices; without ``ask``, if any answer is refused
            or does not apply.
    """
    known = {name: answer for name, answer in answers.items() if answer is not None and answer != []}
    for question in QUESTIONS:
        # Reported before any question is asked.
        if question.name in known:
            _check_answer(question, known[question.name])
    return _Session(known, ask, check, complain).run()


@dataclass
class _Session:
    """The questions while they are answered."""

    known: dict[str, Any]
    """Answers that need not be asked for."""
    ask: Ask | None
    check: Check
    complain: Callable[[Exception], None]
    answers: Answers = field(default_factory=dict)
    refused: dict[str, str] = field(default_factory=dict)
    """The last answer to questions that are asked again, as their default."""

    def run(self) -> Answers:
        """Answers all questions in order."""
        place = 0
        while place < len(QUESTIONS):
            question = QUESTIONS[place]
            try:
                self._answer(question)
                place += 1
            except NoAnswerError:
                raise
            except (PacktokError, OSError, ValueError) as error:
                if self.ask is None:
                    raise
                self.complain(error)
                place = self._back(question, getattr(error, "again", None))
        return self.answers

    def _answer(self, question: Question) -> None:
        known = self.known.get(question.name)
        if not question.applies(self.answers):
            if self.known.pop(question.name, None) is not None:
                raise ConfigError(f"{question.flag} does not apply to the other answers")
        elif question.is_list:
            items = self._listed(question) if known is None else self._checked(question, known)
            self.answers[question.name] = items
        else:
            answer = self._answer_or_default(question) if known is None else str(known)
            self._check(question, answer)
            self.answers[question.name] = answer

    def _back(self, question: Question, again: str | None) -> int:
        """Forgets the answers to a question and to an earlier one; returns the place of the earlier one."""
        self.known.pop(question.name, None)
        if again is None:
            return _PLACES[question.name]
        self.refused[again] = self.answers[again]
        self.known |= {name: answer for name, answer in self.answers.items() if name in _PLACES}
        self.known.pop(again, None)
        self.answers = {
            name: answer for name, answer in self.answers.items() if _PLACES.get(name, 0) < _PLACES[again]
        }
        return _PLACES[again]

    def _answer_or_default(self, question: Question) -> str:
        default = self.refused.get(question.name) or question.default(self.answers)
        if self.ask is None:
            return default
        return self.ask(question, default, self._offered(question)).strip() or default

    def _offered(self, question: Question) -> Sequence[str]:
        return question.choices if question.offered is None else question.offered(self.answers)

    def _checked(self, question: Question, items: Sequence[str]) -> list[str]:
        for item in items:
            self._check(question, item)
        return list(items)

    def _listed(self, question: Question) -> list[str]:
        items: list[str] = []
        while self.ask is not None:
            answer = self.ask(question, ", ".join(items), self._offered(question)).strip()
            if not answer:
                break
            try:
                if answer in items:
                    raise AnswerError(f"{answer!r} is listed already")
                self._check(question, answer)
            except (PacktokError, OSError, ValueError) as error:
                self.complain(error)
            else:
                items.append(answer)
        return items

    def _check(self, question: Question, answer: str) -> None:
        _check_answer(question, answer)
        self.check(question, answer, self.answers)


def _check_answer(question: Question, answer: object) -> None:
    if question.choices:
        check_choice(question.flag, answer, question.choices, AnswerError)


def metadata_of(answers: Answers) -> DatasetMetadata:
    """Returns the metadata for the answers to all questions."""
    output = Path(answers["output"])
    return DatasetMetadata(
        name=answers["name"],
        description=answers["description"],
        date_downloaded=answers["date_downloaded"],
        download_source=answers["download_source"],
        data_content=answers["data_content"],
        dataset_path=written_path(Path(answers["dataset_path"]), output),
        content_field=answers["content_field"],
        corpuses=answers["corpus"],
        corpus_separation_strategy=answers.get("corpus_separation_strategy"),
        corpus_data_dir_parent=answers.get("corpus_data_dir_parent") or None,
        tokenized_info=_tokenized_info(answers) if _is_tokenized(answers) else None,
        path=output,
    )


def _tokenized_info(answers: Answers) -> TokenizedInfo:
    facts = answers.get("tokenizer_facts")
    return TokenizedInfo(
        # A path on this machine would mean nothing elsewhere.
        tokenizer=answers["tokenizer"] if facts is None else facts.name,
        file_prefix=answers["token_file_prefix"],
        dtype=answers["token_dtype"],
        file_extension=answers["token_file_extension"],
        vocab_size=None if facts is None else facts.vocab_size,
    )
