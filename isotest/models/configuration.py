"""A transformers configuration with overrides that are checked, not silently stored."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from isotest.errors import SourceError, one_line
from isotest.models.architectures import MODEL_TYPES, register
from isotest.models.quiet import quiet
from isotest.models.untrusted import (
    raw_configuration,
    refuse_adapter,
    refuse_reaching_out,
)
from isotest.source import did_you_mean

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path


# Of how a model was saved; they would be accepted and change nothing.
_BOOKKEEPING = frozenset({"_name_or_path", "dtype", "model_type", "transformers_version"})


def default_configuration(model_type: str, overrides: Mapping[str, object], what: str) -> Any:
    """The library's default configuration of ``model_type`` with ``overrides``.

    Args:
        model_type: as in transformers' ``config.json``, e.g. ``"vit"``.
        overrides: keys of the configuration to other values.
        what: the source as text, for messages.

    Raises:
        SourceError: an unknown model type or key, or a value that the configuration refuses.
    """
    from transformers import CONFIG_MAPPING, AutoConfig

    register(model_type)
    if model_type not in CONFIG_MAPPING:
        hint = did_you_mean(model_type, (*CONFIG_MAPPING, *MODEL_TYPES))
        if "did you mean" not in hint:
            hint = "; expected a transformers model type such as 'vit', 'resnet', 'convnext'"
        raise SourceError(f"source {what!r}: unknown model type {model_type!r}{hint}")
    with quiet():
        default = AutoConfig.for_model(model_type)
        _require_known(default, overrides, what)
    refuse_reaching_out(overrides, what)
    with quiet():
        try:
            return AutoConfig.for_model(model_type, **overrides)
        except Exception as error:
            raise _refused(error, what) from error


def folder_configuration(
    folder: Path, overrides: Mapping[str, object], what: str, trust_remote_code: bool
) -> Any:
    """The configuration in ``folder`` with ``overrides``.

    Raises:
        SourceError: no ``config.json``, an unreadable one, or as in :func:`default_configuration`.
    """
    from transformers import AutoConfig

    if not (folder / "config.json").is_file():
        raise SourceError(
            f"source {what!r}: expected a folder written by save_pretrained, found no config.json "
            f"in {folder}"
        )
    refuse_adapter(folder, what)
    raw = raw_configuration(folder)
    refuse_reaching_out({**raw, **overrides}, what)
    register(str(raw.get("model_type")))
    with quiet():
        try:
            config = AutoConfig.from_pretrained(
                folder, local_files_only=True, trust_remote_code=trust_remote_code
            )
            _require_known(config, overrides, what)
            if not overrides:
                return config
            return type(config).from_dict({**config.to_dict(), **overrides})
        except SourceError:
            raise
        except Exception as error:
            if "trust_remote_code" in str(error):
                raise remote_code_error(what) from None
            raise SourceError(
                f"source {what!r}: cannot use {folder / 'config.json'}: {one_line(error)}"
            ) from error


def remote_code_error(what: str) -> SourceError:
    """For a model that comes with its own Python code, which may not run unasked."""
    return SourceError(
        f"source {what!r}: this model runs Python code that comes with its weights; read that "
        "code, then allow it with --isotest-trust-remote-code"
    )


def _require_known(config: Any, overrides: Mapping[str, object], what: str) -> None:
    """Configurations accept any key as an attribute and then ignore it; refuse those."""
    known = (set(config.to_dict()) - _BOOKKEEPING) | set(config.attribute_map) | {"num_labels"}
    for key in overrides:
        if key not in known:
            hint = did_you_mean(key, known)
            raise SourceError(
                f"source {what!r}: {type(config).__name__} has no configuration key {key!r}{hint}"
            )


def _refused(error: Exception, what: str) -> SourceError:
    return SourceError(
        f"source {what!r}: its configuration refuses the values given: {one_line(error)}"
    )
