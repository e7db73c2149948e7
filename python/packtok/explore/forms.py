"""Reads the forms that browsers send with POST, up to a number of bytes."""

import urllib.parse

from starlette.requests import ClientDisconnect, Request

_MAX_FIELDS = 8
# Browsers show an answer only after the form was read, so the rest of one that is too large is read too.
_MAX_READ_BYTES = 64 << 20
_TYPE = "application/x-www-form-urlencoded"


class FormError(Exception):
    """A form that cannot be used.

    Args:
        status: The status of the response.
        message: What is wrong.
    """

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


async def form_body(request: Request, max_bytes: int) -> bytes:
    """Returns the body of a request.

    Raises:
        FormError: If it has more than ``max_bytes`` or another type, or the client leaves before its end.
    """
    type_ = request.headers.get("content-type", _TYPE)
    if type_.partition(";")[0].strip().lower() != _TYPE:
        raise FormError(400, f"the form has the type {type_[:80]!r}, expected {_TYPE}")
    body, num_bytes = bytearray(), 0
    try:
        async for block in request.stream():
            num_bytes += len(block)
            if num_bytes <= max_bytes:
                body += block
            elif num_bytes > _MAX_READ_BYTES:
                break
    except ClientDisconnect:
        raise FormError(400, "the form is incomplete") from None
    if num_bytes > max_bytes:
        raise FormError(413, f"the form is too large: it has more than {max_bytes:,} bytes")
    return bytes(body)


def form_fields(body: bytes) -> list[tuple[str, str]]:
    """Returns the names and values of a form.

    Raises:
        FormError: If it has too many fields, or a text that is not UTF-8.
    """
    try:
        return urllib.parse.parse_qsl(
            body.decode(), keep_blank_values=True, errors="strict", max_num_fields=_MAX_FIELDS
        )
    except UnicodeDecodeError:
        raise FormError(400, "the form has a text that is not UTF-8") from None
    except ValueError:
        raise FormError(400, f"the form has more than {_MAX_FIELDS} fields") from None
