"""Reads the issues, tests and patches that callers pass as paths or as text."""

from __future__ import annotations

import difflib
import os
import re
from pathlib import Path
from typing import Any, Callable, Dict, Iterable, List, Mapping, NamedTuple, Optional, Sequence, Tuple, Union

from .errors import TestwrightError

PathLike = Union[str, "os.PathLike[str]"]
#: Path, URL of an issue, its number in the repository (`12` or `OWNER/NAME#12`), or text: a title line and a body.
Issue = PathLike
#: Paths of patches, or a mapping of names to patches. A patch is its text or its path.
Patches = Union[PathLike, Sequence[PathLike], Mapping[str, PathLike]]
#: Like `Patches`, and a path may also be a Python file, or `PATH=FILE`.
Tests = Patches
#: Paths in the repository, with the contents of the files. A `Path` is the file with the content.
Files = Mapping[str, PathLike]

_ISSUE_HINT = "pass text with a title line and a body, a URL, or the path of a file, as a string or a `Path`"
_NUMBER = re.compile(r"(?:(?P<repository>[^/#\s]+(?:/[^/#\s]+)+)#|#)?(?P<number>[0-9]+)")
_REPOSITORY = re.compile(r"(?P<site>https?://[^/@\s]+)/[^?#\s]+?(?=/?$|\.git/?$)")
_DIFF_STARTS = ("diff --git ", "--- ", "Index: ")
_MAX_SHOWN = 80


class GivenTest(NamedTuple):
    """A test that a caller passed."""

    name: str
    #: A path, or `PATH=FILE`; `None` if there is a text.
    argument: Optional[str]
    text: Optional[str] = None
    #: Path in the repository, if the text is a test file rather than a patch.
    target: Optional[str] = None


def issue_argument(issue: Issue) -> Tuple[str, Optional[str]]:
    """Return the program's argument for the issue, and the text for standard input."""
    kind, value = _classify(issue)
    if kind == "text":
        return "-", value
    # The program reads standard input for `-`.
    return os.path.join(".", "-") if value == "-" else value, None


def issue_text(issue: Issue, repository: Optional[PathLike] = None) -> str:
    """Return the text of the issue or its URL, for a server."""
    kind, value = _classify(issue)
    if kind == "path":
        return _decode_issue(_read_bytes(value), value)
    return _issue_url(value, repository) if kind == "number" else value


def given_tests(tests: Optional[Tests], files: Optional[Files]) -> List[GivenTest]:
    """Return the tests in order."""
    found = [GivenTest(name, *_text_or_path(value)) for name, value in _pairs(tests, "tests", str)]
    if files is not None and not isinstance(files, Mapping):
        raise TypeError(f"`files` must map paths in the repository to contents, not be {_type_name(files)}")
    for path, content in (files or {}).items():
        # The content of a file can be one line, so a string is not a path.
        text = content if isinstance(content, str) else read_text(content)
        found.append(GivenTest(path, None, text, path))
    return found


def server_test(test: GivenTest, repository: Optional[PathLike]) -> Dict[str, str]:
    """Return a test as a server expects it."""
    if test.text is not None:
        return _record(test.name, test.text, test.target)
    argument = test.argument or ""
    target, is_placed, file = argument.partition("=")
    if is_placed and not os.path.exists(argument):
        return _record(test.name, read_text(file), target)
    text = read_text(argument)
    if argument.endswith((".patch", ".diff")) or text.lstrip().startswith(_DIFF_STARTS):
        return _record(test.name, text, None)
    path = _path_in(argument, repository) if argument.endswith(".py") else None
    if path is None:
        detail = f"{_shorten(argument)} is neither a patch nor a Python file in the repository's folder"
        raise TestwrightError("Cannot use the test", detail, hint="pass a unified diff, or PATH=FILE for a Python file")
    return _record(test.name, text, path)


def write_tests(tests: Sequence[GivenTest], folder: Path) -> List[Tuple[str, str]]:
    """Return the program's arguments and the names of the tests. Texts become files in the folder."""
    arguments: List[Tuple[str, str]] = []
    for number, test in enumerate(tests):
        argument = test.argument
        if argument is None:
            file = folder / f"{number}.{'py' if test.target else 'patch'}"
            file.write_bytes((test.text or "").encode())
            argument = f"{test.target}={file}" if test.target else str(file)
        arguments.append((argument, test.name))
    return arguments


def patch_records(patches: Optional[Patches], parameter: str) -> List[Dict[str, str]]:
    """Return named patches as a server expects them. Those of a list have the names of their files."""
    pairs = _pairs(patches, parameter, os.path.basename)
    given = [(name, *_text_or_path(value)) for name, value in pairs]
    return [_record(name, text if path is None else read_text(path), None) for name, path, text in given]


def read_text(path: PathLike) -> str:
    """Return the content of a file, with its line ends."""
    try:
        return _read_bytes(path).decode()
    except UnicodeDecodeError:
        raise TestwrightError("Cannot read the file", f"{os.fspath(path)} is not UTF-8") from None


def items(value: Any, single: Tuple[type, ...], parameter: str) -> List[Any]:
    """Return the items of a list, or a single item as a list."""
    if value is None:
        return []
    if isinstance(value, single):
        return [value]
    if isinstance(value, (str, bytes)) or not isinstance(value, Iterable):
        raise TypeError(f"`{parameter}` must be a list, not {_type_name(value)}")
    return list(value)


def options_list(options: Iterable[str]) -> List[str]:
    """Return the options for the program. A single string is refused, because splitting it would be a guess."""
    if isinstance(options, (str, bytes)) or not isinstance(options, Iterable):
        raise TypeError(f'`options` must be a list such as ["--sandbox", "docker"], not {_type_name(options)}')
    words = list(options)
    for word in words:
        if not isinstance(word, (str, os.PathLike)):
            raise TypeError(f"`options` must contain only strings, not {_type_name(word)}")
    return [os.fspath(word) for word in words]


def is_text(value: object) -> bool:
    """Return whether a value is text rather than a path: a string with at least two lines."""
    return isinstance(value, str) and len(value.strip().splitlines()) > 1


def _classify(issue: Issue) -> Tuple[str, str]:
    """Return `text`, `url`, `number` or `path`, and the issue."""
    if not isinstance(issue, (str, os.PathLike)):
        raise TypeError(f"`issue` must be a path, a URL or text, not {_type_name(issue)}")
    if isinstance(issue, str) and is_text(issue):
        return "text", issue
    name = issue.strip() if isinstance(issue, str) else os.fspath(issue)
    if not name:
        raise TestwrightError("Cannot read the issue", "it is empty", hint=_ISSUE_HINT)
    if isinstance(issue, str) and "://" in name:
        return "url", name
    if os.path.exists(name):
        return "path", name
    if isinstance(issue, str) and name.startswith(("github.com/", "www.github.com/")):
        return "url", f"https://{name}"
    if isinstance(issue, str) and _NUMBER.fullmatch(name):
        return "number", name
    raise _missing(name)


def _missing(name: str) -> TestwrightError:
    folder, file = os.path.split(name)
    try:
        near = difflib.get_close_matches(file, os.listdir(folder or "."), 1)
    except (OSError, ValueError):
        near = []
    hint = f"did you mean {os.path.join(folder, near[0])}? Otherwise, {_ISSUE_HINT}" if near else _ISSUE_HINT
    return TestwrightError("Cannot read the issue", f"the file {_shorten(name)} does not exist", hint=hint)


def _issue_url(name: str, repository: Optional[PathLike]) -> str:
    """Return the URL of an issue from its number. A server reads only URLs and texts."""
    match = _NUMBER.fullmatch(name)
    address = _REPOSITORY.match(repository) if isinstance(repository, str) else None
    if match and match["repository"]:
        return f"{address['site'] if address else 'https://github.com'}/{match['repository']}/issues/{match['number']}"
    if match and address:
        return f"{address[0]}/issues/{match['number']}"
    detail = f"the number {name} needs a repository with a URL"
    raise TestwrightError("Cannot find the issue", detail, hint="pass the URL of the issue, or OWNER/NAME#NUMBER")


def _decode_issue(content: bytes, name: str) -> str:
    """Decode the text of an issue, as the program does."""
    if content.startswith((b"\xff\xfe", b"\xfe\xff")):
        return content.decode("utf-16", errors="replace")
    if b"\0" in content:
        detail = f"{name} is not text: it contains NUL bytes"
        raise TestwrightError("Cannot read the issue", detail, hint="pass a Markdown or text file")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError:
        return content.decode("latin-1")


def _pairs(values: Optional[Patches], parameter: str, name_of: Callable[[str], str]) -> List[Tuple[str, PathLike]]:
    """Return names and values. In a list, texts are numbered, and paths with the same name keep their folders."""
    if isinstance(values, Mapping):
        return list(values.items())
    found = items(values, (str, os.PathLike), parameter)
    for value in found:
        if not isinstance(value, (str, os.PathLike)):
            raise TypeError(f"`{parameter}` must contain paths or patches, not {_type_name(value)}")
    paths = [str(number) if is_text(value) else os.fspath(value) for number, value in enumerate(found, 1)]
    names = [name_of(path) for path in paths]
    return [(name if names.count(name) == 1 else path, value) for name, path, value in zip(names, paths, found)]


def _text_or_path(value: PathLike) -> Tuple[Optional[str], Optional[str]]:
    """Return the path, or the text."""
    if isinstance(value, str) and is_text(value):
        return None, value
    if not isinstance(value, (str, os.PathLike)):
        raise TypeError(f"a patch must be its text or a path, not {_type_name(value)}")
    return os.fspath(value), None


def _record(name: str, text: Optional[str], path: Optional[str]) -> Dict[str, str]:
    if path is None:
        return {"name": name, "patch": text or ""}
    return {"name": name, "path": path, "content": text or ""}


def _path_in(file: str, folder: Optional[PathLike]) -> Optional[str]:
    """Return the path of a file relative to a folder; `None` if it is not in the folder."""
    if folder is None or not os.path.isdir(folder):
        return None
    try:
        return Path(file).resolve().relative_to(Path(folder).resolve()).as_posix()
    except ValueError:
        return None


def _read_bytes(path: PathLike) -> bytes:
    try:
        return Path(path).read_bytes()
    except (OSError, ValueError) as error:
        missing = isinstance(error, FileNotFoundError)
        name = _shorten(os.fspath(path))
        detail = f"the file {name} does not exist" if missing else f"{name}: {getattr(error, 'strerror', error)}"
        raise TestwrightError("Cannot read the file", detail, hint="pass a path, or text with several lines") from None


def _shorten(text: str) -> str:
    return text if len(text) <= _MAX_SHOWN else text[:_MAX_SHOWN] + "…"


def _type_name(value: Any) -> str:
    return type(value).__name__
