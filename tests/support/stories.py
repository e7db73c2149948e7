"""Generates short stories as JSON lines: training data that the tiniest model learns in a few steps.

A story is a few sentence templates with filled gaps. Its names and things agree in all sentences. Equal seeds
give equal stories.
"""

import json
import random
from pathlib import Path

# Its 512 ids were trained on 4,000 such stories.
TOKENIZER = str(Path(__file__).with_name("stories_tokenizer.json"))
_NAMES = ["Ada", "Bruno", "Clara", "Dario", "Elif", "Farid", "Greta", "Hugo", "Ines", "Jonas", "Kaya", "Lena"]
_KINDS = ["baker", "fisher", "gardener", "painter", "sailor", "teacher", "weaver", "young fox", "old bear"]
_PLACES = ["by the sea", "in the hills", "at the edge of the forest", "on an island", "behind the mill"]
_THINGS = ["key", "lantern", "letter", "map", "red scarf", "silver bell", "spoon", "wooden boat"]
_FINDERS = ["a child", "a neighbour", "the postman", "a stranger", "a grey cat", "the wind"]
_SPOTS = ["under the stairs", "in the old well", "behind a loose stone", "in the snow", "between two books"]
_FEELINGS = ["sad", "worried", "angry", "tired"]
_WEATHERS = ["It was raining.", "The sun was shining.", "It had snowed all night.", "A storm was coming."]

_BEGINNINGS = [
    "Once there was a {kind} called {name}, who lived {place}.",
    "{name} the {kind} lived {place}.",
    "Everybody {place} knew {name}, the {kind}.",
]
_MIDDLES = [
    "One day {name} lost a {thing}. {weather}",
    "{weather} That morning the {thing} was gone, and {name} was {feeling}.",
    "{name} had a {thing} and liked it more than anything. {weather} Then it was lost.",
]
_SEARCHES = [
    "{name} looked for the {thing} everywhere, for {days} days.",
    "For {days} days {name} asked everybody about the {thing}.",
    "Nobody had seen the {thing}, and {name} went home {feeling}.",
]
_ENDS = [
    "At last {finder} found the {thing} {spot}. {name} was happy again.",
    'Then {finder} came to the door. "Your {thing} was {spot}," they heard, and {name} laughed.',
    "{name} found the {thing} {spot}, where {finder} had put it.",
]


def story(rng: random.Random) -> str:
    """Returns one story, whose sentences agree on the names of people and things."""
    parts = [rng.choice(sentences) for sentences in (_BEGINNINGS, _MIDDLES, _SEARCHES, _ENDS)]
    return " ".join(parts).format(
        name=rng.choice(_NAMES),
        kind=rng.choice(_KINDS),
        place=rng.choice(_PLACES),
        thing=rng.choice(_THINGS),
        finder=rng.choice(_FINDERS),
        spot=rng.choice(_SPOTS),
        feeling=rng.choice(_FEELINGS),
        weather=rng.choice(_WEATHERS),
        days=rng.choice(["two", "three", "seven", "ten"]),
    )


def main(output: Path, *, stories: int, seed: int) -> None:
    """Writes ``stories`` stories to ``output``, one JSON object with a field "text" per line."""
    rng = random.Random(seed)
    output.parent.mkdir(parents=True, exist_ok=True)
    with output.open("w", encoding="utf-8") as file:
        for _ in range(stories):
            file.write(json.dumps({"text": story(rng)}) + "\n")
