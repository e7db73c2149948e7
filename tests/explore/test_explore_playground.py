"""The playground of `packtok explore`: a pasted text as tokens, compared with the tokenizers themselves."""

from __future__ import annotations

import json
import pickle
import re
import socket
import struct
import urllib.parse
from collections.abc import Iterator
from itertools import accumulate
from pathlib import Path

import pytest
from explore_site import Answer, Page, Served, notes, served, served_folder, write_metadata
from small_tokenizers import word_piece

import packtok
from packtok.explore.pages import playground
from packtok.explore.site import site_of_file, site_of_folder

TEXT = 'Grüße <b>&amp;</b> "quoted"\n\n\tnaïve café 🙂 zero\u200bwidth <|endoftext|> end'
TOKEN = "a-long-token-for-tests-0123456789"
WORD_PIECE = "file:x/data/tokenized/words/all/tokenizer.json"


@pytest.fixture(scope="module")
def words() -> bytes:
    """Returns a tokenizer that changes letters and spaces."""
    return word_piece().to_str().encode()


@pytest.fixture(scope="module")
def server(words: bytes, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    base = tmp_path_factory.mktemp("playground")
    folder = base / "x" / "data" / "tokenized" / "words" / "all"
    info = {"tokenizer": "words", "file_prefix": "a", "file_extension": "pbin"}
    write_metadata(folder, name="D", tokenized_info=info)
    (folder / "tokenizer.json").write_bytes(words)
    with served_folder(base) as running:
        yield running


def send(server: Served, query: str = "", headers: dict[str, str] | None = None, **fields: str) -> Answer:
    body = urllib.parse.urlencode(fields)
    type_ = {"Content-Type": "application/x-www-form-urlencoded"}
    return server.get(f"/playground{query}", method="POST", body=body, headers={**type_, **(headers or {})})


def shown(server: Served, **fields: str) -> Page:
    answer = send(server, **fields)
    assert answer.status == 200, notes(answer.text)
    return Page(answer.text)


def ringed(page: Page, target: str) -> list[int]:
    """Returns the positions of tokens with a ring."""
    spans = [values for tag, values, _ in page.elements if tag == "span"]
    ids = [values.get("id") or "" for values in spans if "d" in (values.get("class") or "").split()]
    return [int(id_[1:]) for id_ in ids if re.fullmatch(rf"{target}\d+", id_)]


def spans(tokenizer: packtok.Tokenizer, text: str) -> list[tuple[int, int]]:
    """Returns the bytes at which each token starts and stops."""
    stops = [*accumulate(len(piece) for piece in tokenizer.pieces(tokenizer.encode(text)))]
    return list(zip([0, *stops], stops, strict=False))


def test_text_becomes_the_tokens_of_both_tokenizers_and_differences_have_a_ring(server: Served) -> None:
    page = shown(server, text=TEXT.replace("\n", "\r\n"), tokenizer="gpt2", compare="cl100k_base")
    tokenizers = [packtok.Tokenizer.builtin(name) for name in ("gpt2", "cl100k_base")]
    first, second = (tokenizer.encode(TEXT).tolist() for tokenizer in tokenizers)
    assert [id_ for _, id_ in page.tokens()] == first
    assert [id_ for _, id_ in page.tokens("o")] == second
    # The special token is one, as it is by default when a text is packed.
    assert 50256 in first
    ends = [spans(tokenizer, TEXT) for tokenizer in tokenizers]
    expected = [[i for i, span in enumerate(ends[k]) if span not in ends[1 - k]] for k in range(2)]
    assert [ringed(page, "t"), ringed(page, "o")] == expected
    assert all(0 < len(positions) < len(first) for positions in expected)
    assert page.details(expected[0][0]).endswith(" · divided differently")
    num_bytes = len(TEXT.encode())
    texts = [" ".join(text.split()) for text in page.all("li")]
    assert f"{num_bytes} bytes" in texts
    assert f"{len(TEXT)} characters" in texts
    assert f"gpt2: {len(first)} tokens, {num_bytes / len(first):.2f} bytes per token" in texts
    assert f"cl100k_base: {len(second)} tokens, {num_bytes / len(second):.2f} bytes per token" in texts
    assert page.text_of("h2", id="tokens-2") == (
        f"cl100k_base {len(second)} tokens, {len(expected[1])} divided differently"
    )
    # The text is in the form again, without the first new line, and it is text.
    assert page.all("textarea") == [f"\n{TEXT}"]
    assert "<b>&" not in page.html
    assert "\u200b" not in page.html.partition("</textarea>")[2]


def test_json_has_the_facts_of_the_page(server: Served) -> None:
    answer = send(server, "?format=json", text=TEXT, tokenizer="gpt2", compare="cl100k_base")
    assert answer.headers["content-type"] == "application/json"
    page = shown(server, text=TEXT, tokenizer="gpt2", compare="cl100k_base")
    facts = json.loads(answer.text)
    assert facts["text_bytes"] == len(TEXT.encode())
    assert (facts["from"], facts["until"]) == (0, len(page.tokens()))
    for one, target in zip(facts["tokenizers"], "to", strict=True):
        tokenizer = packtok.Tokenizer.builtin(one["name"])
        assert one["ids"] == [id_ for _, id_ in page.tokens(target)]
        assert b"".join(map(bytes.fromhex, one["pieces"])) == TEXT.encode()
        assert (one["fingerprint"], one["from"], one["reason"]) == (tokenizer.fingerprint, 0, None)
        assert one["tokens"] == len(one["ids"])
        assert one["differing"] == len(ringed(page, target))
        assert one["bytes_per_token"] == len(TEXT.encode()) / one["tokens"]
    choices = json.loads(server.get("/playground?format=json").text)["tokenizers"]
    assert choices[0] == {"key": "gpt2", "name": "gpt2"}
    assert {"key": WORD_PIECE, "name": "words"} in choices
    error = send(server, "?format=json", text="a", tokenizer="none")
    assert (error.status, json.loads(error.text)) == (404, {"error": "none: no such tokenizer"})


def test_long_text_is_shown_in_parts_of_both_tokenizers(server: Served) -> None:
    text = "Grüße aus Köln 🙂 " * 40 + "x" * 100
    gpt2, other = (packtok.Tokenizer.builtin(name).encode(text).tolist() for name in ("gpt2", "cl100k_base"))
    start: str | None = "0"
    seen: list[list[int]] = [[], []]
    for _ in range(1000):
        page = shown(
            server, text=text, tokenizer="gpt2", compare="cl100k_base", window="50", **{"from": start}
        )
        for ids, target in zip(seen, "to", strict=True):
            tokens = page.tokens(target)
            assert len(tokens) <= 50
            ids += [id_ for _, id_ in tokens]
        following = [
            values for tag, values, text_ in page.elements if (tag, text_) == ("button", "Next part")
        ]
        if not following:
            break
        assert {values["form"] for values in following} == {"play"}
        start = following[0]["value"]
    assert seen == [gpt2, other]
    answer = send(server, text=text, tokenizer="gpt2", **{"from": str(len(gpt2))})
    assert answer.status == 400


def test_tokens_that_are_no_parts_of_the_text_have_no_rings(server: Served, words: bytes) -> None:
    page = shown(server, text="The Best Words", tokenizer="gpt2", compare=WORD_PIECE)
    expected = packtok.Tokenizer(words).encode("The Best Words", add_special_tokens=False).tolist()
    assert [id_ for _, id_ in page.tokens("o")] == expected
    assert ringed(page, "t") == ringed(page, "o") == []
    assert "words changes the text before it divides it, so that differences are not marked." in page.text
    assert "words changes the text" not in shown(server, text="The", tokenizer=WORD_PIECE).text


def test_empty_text_and_no_text_make_pages(server: Served) -> None:
    assert shown(server, text="", tokenizer="gpt2", compare="gpt2").tokens() == []
    assert shown(server).tokens() == []
    page = server.page("/playground?tokenizer=cl100k_base")
    assert not page.all("div", class_="tokens")
    selected = [
        values["value"] for tag, values, _ in page.elements if tag == "option" and "selected" in values
    ]
    assert selected == ["cl100k_base"]
    assert "/playground" in server.page("/").links()


def test_text_of_more_than_1_mb_is_refused_and_pages_stay_small(server: Served) -> None:
    answer = send(server, text="é" * 500_001)
    assert answer.status == 413
    assert notes(answer.text)[0].startswith(
        "the text has 1,000,002 bytes, more than the 1,000,000 of this page"
    )
    answer = send(server, text="a" * 4_000_000)
    assert answer.status == 413
    assert notes(answer.text) == ["the form is too large: it has more than 3,016,384 bytes"]
    answer = send(server, text="a\n" * 500_000, tokenizer="gpt2", window="5000")
    assert answer.status == 200
    assert len(answer.text) < 2_000_000


def test_text_is_in_no_address_and_no_log(
    server: Served, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    answer = server.get("/playground?text=secret")
    assert (answer.status, "secret" in answer.text) == (400, False)
    answer = send(server, text="secret words", tokenizer="gpt2")
    assert not any("secret" in f"{name}{value}" for name, value in answer.headers.items())
    assert answer.headers["cache-control"] == "no-store"
    assert not [link for link in Page(answer.text).links() if "secret" in link]

    def failing(*_: object) -> None:
        raise KeyError("secret words")

    monkeypatch.setattr(playground, "_encoded", failing)
    assert send(server, text="secret words").status == 500
    out, err = capfd.readouterr()
    assert out == ""
    assert err.startswith("packtok explore: /playground/: KeyError (")
    assert "secret" not in err


def test_forms_of_other_sites_are_refused(server: Served) -> None:
    own = f"127.0.0.1:{server.port}"
    for headers, status in (
        ({}, 200),
        ({"Sec-Fetch-Site": "same-origin", "Sec-Fetch-Mode": "navigate"}, 200),
        ({"Sec-Fetch-Site": "same-origin", "Origin": "null"}, 200),
        ({"Origin": f"http://{own}"}, 200),
        ({"Origin": "null"}, 200),
        ({"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate"}, 403),
        # Another port of this machine.
        ({"Sec-Fetch-Site": "same-site", "Sec-Fetch-Mode": "navigate"}, 403),
        ({"Origin": "http://evil.example"}, 403),
        ({"Origin": f"http://127.0.0.1:{server.port + 1}"}, 403),
        ({"Origin": "http://[evil"}, 403),
        ({"Host": "evil.example"}, 421),
    ):
        assert send(server, text="a", headers=headers).status == status, headers
    # Other pages take no form.
    for path in ("/", "/playground/", "//playground", "/documents/a.pbin", "/static/style.css"):
        assert server.get(path, method="POST", body="text=a").status == 405, path
    answer = server.get("/playground", method="PUT", body="text=a")
    assert (answer.status, answer.headers["allow"]) == (405, "GET, HEAD, POST")


def write_pbin(path: Path) -> Path:
    """Writes a file with one token, which does not record its tokenizer."""
    path.write_bytes(struct.pack("<QIH", 2, 2, 0) + pickle.dumps([(0, 2)]))
    return path


def test_form_needs_the_access_token(tmp_path: Path) -> None:
    site = site_of_file(write_pbin(tmp_path / "a.pbin"))
    with served(site, host="0.0.0.0", token=TOKEN) as server:
        answer = send(server, text="secret words")
        assert (answer.status, "secret" in answer.text) == (401, False)
        assert 'name="next" value="/playground"' in answer.text
        login = server.get("/login", method="POST", body=f"token={TOKEN}")
        cookie = {"Cookie": login.headers["set-cookie"].partition(";")[0]}
        assert send(server, text="a b", headers=cookie).status == 200
        assert send(server, text="a b", headers={"Authorization": f"Bearer {TOKEN}"}).status == 200
        assert send(server, text="a b", headers={**cookie, "Sec-Fetch-Site": "same-site"}).status == 403


def test_odd_forms_are_errors_of_the_page(server: Served) -> None:
    for body, type_, message in (
        ("text=%FF", "application/x-www-form-urlencoded", "the form has a text that is not UTF-8"),
        ("a=1&" * 20, "application/x-www-form-urlencoded; charset=UTF-8", "the form has more than 8 fields"),
        (
            "text=a",
            "text/plain",
            "the form has the type 'text/plain', expected application/x-www-form-urlencoded",
        ),
    ):
        answer = server.get("/playground", method="POST", body=body, headers={"Content-Type": type_})
        assert (answer.status, notes(answer.text)) == (400, [message])
    with socket.create_connection(("127.0.0.1", server.port)) as client:
        client.sendall(b"POST /playground HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\ntext=a")
    assert server.get("/playground").status == 200


def test_tokenizer_of_the_only_file_is_the_default(tmp_path: Path, words: bytes) -> None:
    path = write_pbin(tmp_path / "a.pbin")
    (tmp_path / "tokenizer.json").write_bytes(words)
    own, builtin = packtok.Tokenizer(words), packtok.Tokenizer.builtin("cl100k_base")
    for site, key, tokenizer in (
        (site_of_file(path), "own", own),
        (site_of_file(path, builtin), "cl100k_base", builtin),
        (site_of_folder(tmp_path, own), "own", own),
    ):
        with served(site) as server:
            page = server.page("/playground")
            assert [values["value"] for _, values, _ in page.elements if "selected" in values] == [key]
            ids = [id_ for _, id_ in shown(server, text="best words").tokens()]
        assert ids == tokenizer.encode("best words", add_special_tokens=False).tolist()
