"""The page of a profile: what the documents of a file or dataset contain, with links to examples."""

from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import wait
from dataclasses import dataclass
from typing import Any

from markupsafe import Markup
from starlette.datastructures import QueryParams
from starlette.responses import Response

from packtok._packtok import PROFILE_TOKENS
from packtok.explore.contents.packed import FileGroup
from packtok.explore.html.rendering import count, link
from packtok.explore.pages.answers import answer
from packtok.explore.pages.loading import command_of_profile
from packtok.explore.site import Site

# Most profiles are finished during this time. After it, the page says how far it is, and loads itself again.
_WAIT_SECONDS = 1.0
_RELOAD_SECONDS = 1
# Figures about texts by their keys.
_COUNTED = {
    "emails": "E-mail addresses",
    "phones": "Phone numbers",
    "keys": "Secret keys",
    "control_characters": "Control characters",
    "replacement_characters": "U+FFFD",
}


@dataclass(frozen=True)
class Row:
    """A row of a table: a figure, the number of documents, another number, and examples."""

    name: str
    documents: int
    amount: str
    examples: Sequence[tuple[Markup, str]]
    """The URL and the text of each link to a document."""


def profile_page(site: Site, name: str, parameters: QueryParams) -> Response:
    """Returns the profile of a file or dataset, or how much of it is computed."""
    group = site.group(name)
    decoder = site.decoder(group)
    texts = site.document_texts(group, decoder)
    job = site.profiles.job(
        site.key_of_texts(group, decoder),
        lambda show: texts.profile(sample_tokens=PROFILE_TOKENS, on_progress=show),
    )
    if not job.fraction:
        wait([job.profile], _WAIT_SECONDS)
    values: dict[str, Any] = {"group": group, "trail": site.trail(name)}
    if not job.profile.done():
        percent = int(100 * job.fraction)
        response = answer(
            parameters,
            lambda: {"progress": job.fraction},
            lambda: site.pages.html("profiling.html", percent=percent, **values),
        )
        response.status_code = 202
        response.headers["Refresh"] = str(_RELOAD_SECONDS)
        return response
    profile = job.profile.result()
    links = _Links(group)

    def page() -> Response:
        return site.pages.html(
            "profile.html",
            decoder=decoder,
            profile=profile,
            rows=list(_rows(profile, links)),
            scripts=_scripts(profile["text"], links),
            words=[(word, links.of(word)) for word in (profile["text"] or {}).get("longest_words", ())],
            tokens=[(token, links.of(token["example"])) for token in profile["vocabulary"]["most_used"]],
            command=command_of_profile(site, group, 10 * PROFILE_TOKENS),
            **values,
        )

    return answer(parameters, lambda: {"files": group.files, **profile}, page)


class _Links:
    """Links to documents by their numbers in the group of the page."""

    def __init__(self, group: FileGroup) -> None:
        self._group = group

    def of(self, place: Mapping[str, Any], note: str = "") -> tuple[Markup, str]:
        number = self._group.starts[place["file"]] + place["document"]
        return link("documents", self._group.name, document=number), count(number) + note


def _rows(profile: Mapping[str, Any], links: _Links) -> Iterator[Row]:
    duplicates = profile["duplicates"]
    yield Row(
        "Equal to an earlier document",
        duplicates["documents"],
        f"{_percent(duplicates['tokens'], duplicates['compared_tokens'])} of tokens",
        [
            links.of(place, f" ({equal['copies']:,} copies)" if i == 0 else "")
            for equal in duplicates["examples"]
            for i, place in enumerate(equal["documents"])
        ],
    )
    yield _counted("Without text", profile["empty"], links, has_amount=False)
    text = profile["text"]
    if text is not None:
        yield _repeats("Repeated lines", "bytes of lines", text["repeated_lines"], links)
    yield _repeats("Repeated n-grams", "tokens", profile["repeated_ngrams"], links)
    if text is not None:
        for key, name in _COUNTED.items():
            yield _counted(name, text[key], links)


def _repeats(name: str, unit: str, figure: Mapping[str, Any], links: _Links) -> Row:
    return Row(
        f"{name}, above {figure['limit']:.0%}",
        figure["documents"],
        f"{_percent(figure['repeated'], figure['total'])} of {unit}",
        [links.of(example, f" ({example['share']:.0%})") for example in figure["examples"]],
    )


def _counted(name: str, figure: Mapping[str, Any], links: _Links, *, has_amount: bool = True) -> Row:
    return Row(
        name,
        figure["documents"],
        count(figure["occurrences"]) if has_amount else "",
        [
            links.of(example, f" ({example['occurrences']:,})" if has_amount else "")
            for example in figure["examples"]
        ],
    )


def _scripts(text: Mapping[str, Any] | None, links: _Links) -> list[Row]:
    if text is None:
        return []
    return [
        Row(
            script["script"],
            script["documents"],
            _percent(script["occurrences"], text["letters"]),
            [links.of(example) for example in script["examples"]],
        )
        for script in text["scripts"]
    ]


def _percent(part: int, whole: int) -> str:
    return f"{part / whole:.1%}" if whole else "–"
