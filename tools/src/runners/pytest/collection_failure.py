"""Records the exceptions that keep modules and conftest files from being collected.

Runs on Python 3.6 and later, and pytest 3.0 and later.
"""

import os

from testwright_record import emit, failure, locate


def _original(error):
    """Returns the original exception of a failed import, without pytest's wrappers for modules and conftest.py."""
    kind = type(error).__name__
    if kind == "ConftestImportFailure":
        cause = getattr(error, "cause", None)
        wrapped = getattr(error, "excinfo", None)
        if cause is None and wrapped is not None:
            cause = wrapped[1] if isinstance(wrapped, tuple) else wrapped.value
        return cause or error.__cause__ or error.__context__ or error
    if kind == "CollectError":
        inner = error.__cause__ or error.__context__
        return inner if inner is not None else error
    return error


def _conftest(error):
    """Returns the path of the conftest file whose import or registration raised an exception. pytest has no wrapper for
    one that exits, skips, or names a missing plugin."""
    if type(error).__name__ == "ConftestImportFailure":
        return getattr(error, "path", None) or "conftest.py"
    conftest, traceback = None, error.__traceback__
    while traceback is not None:
        frame = traceback.tb_frame
        registered = getattr(frame.f_locals.get("conftestmodule"), "__file__", None)
        for path in (frame.f_code.co_filename, registered):
            if os.path.basename(path or "") == "conftest.py":
                conftest = path
        traceback = traceback.tb_next
    return conftest


def record_failure(node_id, error, path):
    if type(error).__name__ == "ConftestImportFailure":
        record_conftest(error)
    else:
        emit("collection_error", id=node_id, failure=failure(_original(error), path=path))


def record_conftest(error):
    """Records the failure if a conftest file caused it."""
    path = _conftest(error)
    if path is not None and not isinstance(error, KeyboardInterrupt):
        path = str(path)
        base, name = locate(path)
        node_id = name if base == "workspace" else path
        emit("collection_error", id=node_id, failure=failure(_original(error), path=path))
