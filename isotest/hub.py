"""What the hub refuses or fails at, as one message that says what to do; models and data alike.

No host is named: where the hub is, ``huggingface_hub`` knows.
"""

from __future__ import annotations

from typing import Literal

from isotest.errors import MissingError, SourceError

Kind = Literal["model", "data set"]

LOG_IN = "'hf auth login', or HF_TOKEN"


def hub_fault(
    error: BaseException, where: str, kind: Kind, repository: str, revision: str | None
) -> SourceError:
    """An error of ``huggingface_hub`` or of what it connects with, for whoever has to act on it.

    Args:
        error: as it was raised.
        where: the source, as a message starts.
        kind: what the repository holds.
        repository: ``owner/name``.
        revision: that was asked for.

    Returns:
        A ``SourceError`` where the source has to be corrected, a ``MissingError`` where it names
        something that could be had: with a token, with access, over a network that works.
    """
    from huggingface_hub import errors, get_token

    if isinstance(error, errors.LocalEntryNotFoundError) and error.__cause__ is not None:
        # It looked in its cache last; why it had to is what can be acted on.
        error = error.__cause__
    name = f"the {kind} {repository}"
    if isinstance(error, errors.HFValidationError):
        return SourceError(f"{where}: {_first_line(error)}")
    if isinstance(error, errors.GatedRepoError):
        return _gated(where, kind, repository, sent=error.response.status_code == 403)
    if isinstance(error, errors.RevisionNotFoundError):
        return SourceError(
            f"{where}: {repository} has no revision {revision!r}; give a branch, tag or commit "
            "that it has, or leave '@' out for its main branch"
        )
    if isinstance(error, errors.RepositoryNotFoundError):
        return SourceError(
            f"{where}: the hub has no {kind} {repository}; correct the name, or, if it is private, "
            f"give a read token of an account that may see it: {LOG_IN}"
        )
    if isinstance(error, errors.HfHubHTTPError):
        status = f"{error.response.status_code} {error.response.reason_phrase}"
        if error.response.status_code == 401 and get_token() is None:
            return MissingError(
                f"{where}: the hub shows {name} to nobody without a token ({status})",
                f"give a read token: {LOG_IN}",
            )
        if error.response.status_code == 401:
            return MissingError(
                f"{where}: the hub does not accept the token that was sent for {name} ({status})",
                f"give a read token that is valid: {LOG_IN}",
            )
        if error.response.status_code == 403:
            return MissingError(
                f"{where}: the token that was sent gives no access to {name} ({status})",
                f"give a read token of an account that has access: {LOG_IN}",
            )
        return MissingError(f"{where}: the hub answers {status} for {name}", "run again later")
    if isinstance(error, errors.OfflineModeIsEnabled):
        return MissingError(
            f"{where}: fetching {name} from the hub is forbidden by HF_HUB_OFFLINE", "unset it"
        )
    return MissingError(
        f"{where}: fetching {name} from the hub failed ({_first_line(error)})",
        "check the network and the disk, then run again",
    )


def require_access(repository: str, revision: str | None, where: str) -> None:
    """Ask the hub whether a data set is there and its files may be read, before they are.

    ``datasets`` retries for half a minute where there is no network, and says of a refusal only
    that there was one.

    Raises:
        SourceError: as :func:`hub_fault`.
    """
    from huggingface_hub import HfApi

    api = HfApi()
    try:
        described = api.dataset_info(repository, revision=revision)
        if described.gated:
            api.auth_check(repository, repo_type="dataset")
    except Exception as error:
        raise hub_fault(error, where, "data set", repository, revision) from None


def _gated(where: str, kind: Kind, repository: str, *, sent: bool) -> MissingError:
    page = f"its terms on the page of the {kind} {repository} on the hub"
    if not sent:
        return MissingError(
            f"{where}: the {kind} {repository} is gated, and no token was sent",
            f"accept {page}, then give a read token of the account that accepted them: {LOG_IN}",
        )
    return MissingError(
        f"{where}: the {kind} {repository} is gated, and the account of the token that was sent "
        "has no access",
        f"accept {page} with that account (some are granted by hand), or give a read token of an "
        f"account that accepted them: {LOG_IN}; a fine-grained token must allow gated repositories",
    )


def _first_line(error: BaseException) -> str:
    """``Type: text`` without the advice for callers of the library that follows."""
    lines = [line for line in str(error).splitlines() if line.strip()] or [""]
    return f"{type(error).__name__}: {lines[0].strip()[:300]}".rstrip(": .")
