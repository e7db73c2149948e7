"""Decides which documents of token files are kept: an expression over columns, or a Python function.

Both decide on batches, as arrays with one element for each document, so that no Python code runs for each
document.
"""

import ast
import fnmatch
from collections.abc import Callable
from functools import reduce
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from packtok._packtok import Reshaper
from packtok.errors import ConfigError

__all__ = ["DocumentFilter", "Documents", "filter_documents"]

_Array = npt.NDArray[Any]
_COLUMNS = ("number", "length", "hash", "offset")
_TOKENS = ("eod", "bos")
_FUNCTIONS = ("count(ID)", "matches(source, GLOB)")

_COMPARISONS: dict[type[ast.cmpop], Callable[[Any, Any], Any]] = {
    ast.Eq: lambda left, right: left == right,
    ast.NotEq: lambda left, right: left != right,
    ast.Lt: lambda left, right: left < right,
    ast.LtE: lambda left, right: left <= right,
    ast.Gt: lambda left, right: left > right,
    ast.GtE: lambda left, right: left >= right,
    ast.In: lambda left, right: _any_equal(left, right),
    ast.NotIn: lambda left, right: np.logical_not(_any_equal(left, right)),
}
_OPERATIONS: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: lambda left, right: _narrow(left) + _narrow(right),
    ast.Sub: lambda left, right: _narrow(left) - _narrow(right),
    ast.Mult: lambda left, right: _narrow(left) * _narrow(right),
    ast.Div: lambda left, right: left / right,
    ast.FloorDiv: lambda left, right: _signed(left // _divisor(left, right), right, least=2),
    ast.Mod: lambda left, right: _signed(left % _divisor(left, right), right, least=1),
}


class Documents:
    """Documents of token files, as columns.

    A column is a NumPy array with one element for each document. It is computed when it is read.
    """

    def __init__(self, reshaper: Reshaper, number: _Array) -> None:
        """Creates the columns of the documents with these numbers."""
        self.number: _Array = number.astype(np.int64)
        """Numbers of the documents among those of all files, from 0; int64."""
        self._reshaper = reshaper
        self._numbers = number
        self._origins: tuple[_Array, _Array] | None = None

    def __len__(self) -> int:
        """Returns the number of documents."""
        return len(self.number)

    @property
    def length(self) -> _Array:
        """The number of tokens of each document, BOS and EOD included; int64."""
        return self._reshaper.lengths(self._numbers).astype(np.int64)

    @property
    def hash(self) -> _Array:
        """XXH64 of the ids of each document, independent of its file; uint64."""
        return self._reshaper.hashes(self._numbers, 0)

    @property
    def source(self) -> _Array:
        """Index of the source of each document in `sources`; int64."""
        return self._place()[0].astype(np.int64)

    @property
    def offset(self) -> _Array:
        """The place of each document in its source; int64.

        As the file records it, such as the byte of the record; without origins, the number of the document
        in its token file.
        """
        return self._place()[1].astype(np.int64)

    @property
    def sources(self) -> list[str]:
        """Names of the sources: files of the corpus, or without origins the token files."""
        return self._reshaper.source_names

    def count(self, id: int) -> _Array:
        """Returns how often an id is in each document; int64."""
        return self._reshaper.counts(self._numbers, id).astype(np.int64)

    def ids(self, i: int) -> npt.NDArray[np.uint32]:
        """Returns the ids of document ``i`` of this batch."""
        return self._reshaper.ids(int(self._numbers[i]))

    def _place(self) -> tuple[_Array, _Array]:
        if self._origins is None:
            self._origins = self._reshaper.origins(self._numbers)
        return self._origins


_Value = Callable[[Documents], Any]
DocumentFilter = str | Callable[[Documents], Any]


def filter_documents(reshaper: Reshaper, chosen: DocumentFilter) -> None:
    """Leaves out the documents for which a filter is false.

    Raises:
        ConfigError: If an expression is none, or a result is not a bool for each document.
    """
    is_expression = isinstance(chosen, str)
    decide = _compiled(chosen, reshaper) if isinstance(chosen, str) else chosen
    name = chosen if isinstance(chosen, str) else getattr(chosen, "__qualname__", type(chosen).__name__)
    reshaper.start_filter(name)
    first = 0
    while (numbers := reshaper.batch(first)) is not None:
        with np.errstate(divide="ignore", invalid="ignore"):
            flags = np.asarray(decide(Documents(reshaper, numbers)))
        if is_expression and flags.ndim == 0:
            flags = np.full(len(numbers), flags)
        if flags.dtype != np.bool_ or flags.ndim != 1:
            raise ConfigError(
                f"--filter (filter): {name} gives {flags.dtype} of {flags.ndim} dimensions; expected a bool "
                "for each document"
            )
        reshaper.decide(numbers, np.ascontiguousarray(flags))
        first = int(numbers[-1]) + 1


def _compiled(text: str, reshaper: Reshaper) -> Callable[[Documents], Any]:
    """Returns the function of an expression, which is checked as a whole before any document is read."""
    try:
        tree = ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise ConfigError(f"--filter (filter): {text!r} is no expression: {error}") from None
    try:
        compiled: _Value = _Compiler(text.strip(), reshaper.meaning).visit(tree)
    except RecursionError:
        raise ConfigError(f"--filter (filter): {text[:40]!r}… is nested too deeply; simplify it") from None
    return compiled


class _Compiler(ast.NodeVisitor):
    """Turns an expression in Python's syntax into a function of documents.

    Nothing of it is executed: each kind of node has a method here, and all others are errors.
    """

    def __init__(self, text: str, meaning: dict[str, Any]) -> None:
        self._text = text
        self._meaning = meaning

    def visit_BoolOp(self, node: ast.BoolOp) -> _Value:
        values = [self.visit(value) for value in node.values]
        combine = np.logical_and if isinstance(node.op, ast.And) else np.logical_or
        return lambda documents: reduce(combine, [value(documents) for value in values])

    def visit_UnaryOp(self, node: ast.UnaryOp) -> _Value:
        operand = self.visit(node.operand)
        if isinstance(node.op, ast.Not):
            return lambda documents: np.logical_not(operand(documents))
        if isinstance(node.op, ast.USub):
            return lambda documents: -_narrow(operand(documents))
        return self.generic_visit(node)

    def visit_BinOp(self, node: ast.BinOp) -> _Value:
        operation = _OPERATIONS.get(type(node.op))
        if operation is None:
            return self.generic_visit(node)
        return self._calculated(node, operation, self.visit(node.left), self.visit(node.right))

    def visit_Compare(self, node: ast.Compare) -> _Value:
        values = [self.visit(value) for value in (node.left, *node.comparators)]
        comparisons = [_COMPARISONS.get(type(operator)) for operator in node.ops]
        results = [
            self.generic_visit(node) if compare is None else self._calculated(node, compare, left, right)
            for compare, (left, right) in zip(comparisons, pairwise(values), strict=True)
        ]
        return lambda documents: reduce(np.logical_and, [result(documents) for result in results])

    def visit_Call(self, node: ast.Call) -> _Value:
        match node:
            case ast.Call(func=ast.Name(id="count"), args=[argument], keywords=[]):
                return self._count(node, self.visit(argument))
            case ast.Call(
                func=ast.Name(id="matches"), args=[ast.Name(id="source"), ast.Constant(value=str(glob))]
            ):
                return lambda documents: _of_sources(documents, lambda name: fnmatch.fnmatchcase(name, glob))
        return self.generic_visit(node)

    def visit_Tuple(self, node: ast.Tuple | ast.List) -> _Value:
        elements = [self.visit(element) for element in node.elts]
        return lambda documents: tuple(element(documents) for element in elements)

    def visit_List(self, node: ast.List) -> _Value:
        return self.visit_Tuple(node)

    def visit_Name(self, node: ast.Name) -> _Value:
        name = node.id
        if name == "source":
            return _SourceColumn
        if name in _COLUMNS:
            return lambda documents: getattr(documents, name)
        if name not in _TOKENS:
            return self.generic_visit(node)
        token = self._meaning[name]
        if token is None:
            raise self._error(node, f"the files record no {name.upper()}; give its id")
        return lambda _: token["id"]

    def visit_Constant(self, node: ast.Constant) -> _Value:
        if not isinstance(node.value, int | float | str):
            return self.generic_visit(node)
        return lambda _: node.value

    def generic_visit(self, node: ast.AST) -> _Value:
        names = ", ".join((*_COLUMNS, "source", *_TOKENS, *_FUNCTIONS))
        raise self._error(node, f"expected {names}, numbers, strings and operators")

    def _count(self, node: ast.Call, id: _Value) -> _Value:
        def counts(documents: Documents) -> Any:
            value = id(documents)
            if not isinstance(value, int) or not 0 <= value < 1 << 32:
                raise self._error(node, "expected the id of one token, an integer from 0")
            return documents.count(value)

        return counts

    def _calculated(
        self, node: ast.AST, operation: Callable[[Any, Any], Any], left: _Value, right: _Value
    ) -> _Value:
        def calculated(documents: Documents) -> Any:
            try:
                return operation(left(documents), right(documents))
            except (TypeError, ZeroDivisionError, OverflowError) as error:
                raise self._error(node, str(error)) from None

        return calculated

    def _error(self, node: ast.AST, message: str) -> ConfigError:
        part = ast.get_source_segment(self._text, node) or self._text
        return ConfigError(f"--filter (filter): {part!r} in {self._text!r}: {message}")


def _narrow(value: Any) -> Any:
    """Returns an operand of arithmetic whose results fit in 64 bits."""
    if isinstance(value, np.ndarray) and value.dtype == np.uint64:
        raise TypeError("hashes have 64 bits, so that the result would not fit; use hash % N")
    return value


def _divisor(dividend: Any, divisor: Any) -> Any:
    """Returns the divisor of an exact quotient or remainder."""
    if np.any(np.equal(divisor, 0)):
        raise ZeroDivisionError("division by zero")
    is_hash = isinstance(dividend, np.ndarray) and dividend.dtype == np.uint64
    # NumPy would divide a hash by a column or a float as floats of 53 bits.
    if is_hash and not (isinstance(divisor, int) and 0 < divisor < 1 << 63):
        raise TypeError("a hash can be divided by a positive integer only")
    return divisor


def _signed(result: Any, divisor: Any, *, least: int) -> Any:
    """Returns a quotient or remainder of hashes as signed integers, if the divisor makes it small enough."""
    is_unsigned = isinstance(result, np.ndarray) and result.dtype == np.uint64
    if is_unsigned and divisor >= least:
        return result.astype(np.int64)
    return result


def _of_sources(documents: Documents, of: Callable[[str], bool]) -> _Array:
    """Returns a bool for each document, which depends on the name of its source."""
    values = np.array([of(name) for name in documents.sources], dtype=bool)
    return values[documents.source]


class _SourceColumn:
    """The names of sources, which are compared once each instead of once a document."""

    def __init__(self, documents: Documents) -> None:
        self._documents = documents

    def __eq__(self, name: object) -> Any:
        return _of_sources(self._documents, lambda source: source == name)

    def __ne__(self, name: object) -> Any:
        return np.logical_not(self == name)

    __hash__ = None  # type: ignore[assignment]


def _any_equal(left: Any, values: Any) -> Any:
    if not isinstance(values, tuple):
        raise TypeError("`in` needs a tuple or a list on its right")
    return reduce(np.logical_or, [left == value for value in values], np.False_)
