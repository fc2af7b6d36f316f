"""The error of this package."""

from __future__ import annotations

import json
from typing import Optional
from urllib.error import HTTPError


_TOKEN_HINT = "pass `token=` or set TESTWRIGHT_TOKEN; `testwright tokens create` on the server creates a token"


class TestwrightError(Exception):
    """The program or the server refused a request or failed. The fields are those of problem+json (RFC 9457)."""

    # pytest would collect a class with this name.
    __test__ = False

    def __init__(
        self,
        title: str,
        detail: str,
        *,
        hint: Optional[str] = None,
        status: Optional[int] = None,
        type: str = "about:blank",
    ) -> None:
        super().__init__(f"{title}: {detail}" + (f"\nhint: {hint}" if hint else ""))
        self.title = title
        self.detail = detail
        self.hint = hint
        #: Status of the response; `None` if there is none.
        self.status = status
        self.type = type

    @classmethod
    def from_response(cls, response: HTTPError) -> TestwrightError:
        """Create the error from a response, which may come from a proxy and not be problem+json."""
        try:
            problem = json.loads(response.read())
            return cls(
                problem["title"],
                problem["detail"],
                hint=_TOKEN_HINT if response.code == 401 else problem.get("hint"),
                status=response.code,
                type=problem["type"],
            )
        except (AttributeError, KeyError, OSError, TypeError, ValueError):
            return cls(str(response.reason), "the response is not from testwright", status=response.code)
