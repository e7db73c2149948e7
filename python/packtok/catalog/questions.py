"""The questions that fill in a dataset's metadata: tatm's, with its order and defaults, and two more."""

import datetime
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from packtok.catalog.schema import DatasetMetadata, TokenizedInfo
from packtok.errors import ConfigError

Answers = dict[str, Any]
# Asks one question and returns the answer; an empty one means the default.
Ask = Callable[["Question", str], str]


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
    """Whether it is asked until the answer is empty; the answer is a list."""
    applies: Callable[[Answers], bool] = lambda _: True
    """Whether it is asked, given the earlier answers."""

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
        # Replaced by a guess from the data, if there is one.
        default=lambda answers: answers.get("guessed_field", "text"),
    ),
    Question(
        name="corpus",
        text="Add a corpus (leave blank to finish)",
        help="A part of the dataset with a name of its own; repeatable.",
        is_list=True,
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
        default=_fixed("uint16"),
        choices=("uint8", "uint16", "uint32"),
        applies=_is_tokenized,
    ),
    Question(name="language", text="Language", help="Language of the texts, such as en or multilingual."),
    Question(name="license", text="License", help="Licence of the data, such as ODC-By-1.0."),
)


def answer_all(given: Mapping[str, Any], ask: Ask | None, guess: Callable[[Answers], None]) -> Answers:
    """Returns an answer to every question.

    Args:
        given: Answers that are known already, by name of the question; ``None`` counts as not given.
        ask: Asks the other questions; ``None`` takes their defaults.
        guess: Called with the answers once the dataset path is known, to add ``guessed_field``.

    Raises:
        ConfigError: If a given answer is not allowed, or answers a question that does not apply.
    """
    answers: Answers = {}
    for question in QUESTIONS:
        known = given.get(question.name)
        known = None if known is None or known == [] else known
        if not question.applies(answers):
            if known is not None:
                raise ConfigError(f"{question.flag} does not apply to the other answers")
            continue
        if question.is_list:
            answers[question.name] = list(known) if known is not None else _listed(question, ask)
        elif known is not None:
            answers[question.name] = _allowed(question, str(known))
        else:
            answers[question.name] = _asked(question, ask, answers)
        if question.name == "data_content":
            guess(answers)
    return answers


def _asked(question: Question, ask: Ask | None, answers: Answers) -> str:
    default = question.default(answers)
    if ask is None:
        return default
    while True:
        answer = ask(question, default).strip() or default
        if not question.choices or answer in question.choices:
            return answer


def _listed(question: Question, ask: Ask | None) -> list[str]:
    found: list[str] = []
    while ask is not None and (answer := ask(question, ", ".join(found)).strip()):
        found.append(answer)
    return found


def _allowed(question: Question, answer: str) -> str:
    if question.choices and answer not in question.choices:
        raise ConfigError(f"{question.flag} is {answer!r}, expected one of {', '.join(question.choices)}")
    return answer


def metadata_of(answers: Answers) -> DatasetMetadata:
    """Returns the metadata for the answers to all questions."""
    output, dataset_path = Path(answers["output"]), Path(answers["dataset_path"])
    # Without the key, the dataset is in the folder of its metadata, wherever both are moved.
    is_same_folder = dataset_path.absolute().resolve() == output.absolute().parent.resolve()
    return DatasetMetadata(
        name=answers["name"],
        description=answers["description"],
        date_downloaded=answers["date_downloaded"],
        download_source=answers["download_source"],
        data_content=answers["data_content"],
        dataset_path=None if is_same_folder else str(dataset_path.absolute()),
        content_field=answers["content_field"],
        corpuses=answers["corpus"],
        corpus_separation_strategy=answers.get("corpus_separation_strategy"),
        corpus_data_dir_parent=answers.get("corpus_data_dir_parent") or None,
        tokenized_info=_tokenized_info(answers) if _is_tokenized(answers) else None,
        path=output,
    )


def _tokenized_info(answers: Answers) -> TokenizedInfo:
    return TokenizedInfo(
        tokenizer=answers["tokenizer"],
        file_prefix=answers["token_file_prefix"],
        dtype=answers["token_dtype"],
        file_extension=answers["token_file_extension"],
    )
