"""What a configuration may not ask for: code, or weights from other places than the source names.

Suites and folders of weights come with pull requests and from hubs, and the libraries' arguments
and configurations are more than descriptions of an architecture.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from isotest.errors import SourceError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

# Arguments of timm.create_model and of what it calls, with which weights come from elsewhere.
_TIMM_WEIGHTS = frozenset(
    {"checkpoint_path", "cache_dir", "pretrained", "pretrained_cfg", "pretrained_cfg_overlay"}
    | {"pretrained_custom_load", "pretrained_filter_fn", "pretrained_model_args"}
)
# Any other implementation, such as "owner/name", may be compiled code that is fetched from the hub.
_IMPLEMENTATIONS = (None, "eager", "sdpa", "flex_attention", "grouped_mm", "batched_mm")


def refuse_timm_weights(arguments: Mapping[str, object], what: str) -> None:
    """Refuse arguments for ``timm.create_model`` that are not about the architecture.

    Raises:
        SourceError: one of them would bring weights.
    """
    for key in arguments:
        if key in _TIMM_WEIGHTS:
            raise SourceError(
                f"source {what!r}: {key!r} would bring weights from elsewhere; they are those of "
                "the source, so name another one (timm:, or path: with a stand-in)"
            )


def refuse_reaching_out(config: Mapping[str, object], what: str) -> None:
    """Refuse a transformers configuration that would bring code or weights from elsewhere.

    Args:
        config: as in ``config.json``, or overrides from a suite.
        what: the source as text, for messages.

    Raises:
        SourceError: it asks for a kernel, a quantiser or a file; names the key.
    """
    for path, key, value in _entries(config):
        if key.endswith(("_implementation", "_implementation_internal")):
            if not isinstance(value, str | None) or value not in _IMPLEMENTATIONS:
                raise SourceError(
                    f"source {what!r}: {path!r} is {value!r} in its configuration, which may be "
                    "code from the hub; remove it, or choose 'eager' or 'sdpa'"
                )
        elif key == "quantization_config" and value is not None:
            raise SourceError(
                f"source {what!r}: {path!r} in its configuration: quantised weights need code of "
                "their own and are not measured; dequantise the model and save it again"
            )
        elif key == "transformers_weights" and value is not None:
            raise SourceError(
                f"source {what!r}: {path!r} in its configuration names a weight file, {value!r}; "
                "remove it, and save the weights under save_pretrained's own names"
            )
        elif key in ("architecture", "backbone") and ":" in str(value):
            raise SourceError(
                f"source {what!r}: expected {path!r} to be the name of an architecture, found "
                f"the place {value!r}"
            )
        elif key in ("model_args", "backbone_kwargs") and isinstance(value, dict):
            refuse_timm_weights(value, what)


def refuse_adapter(folder: Path, what: str) -> None:
    """Refuse a folder with an adapter, which would be read from wherever its file names.

    Raises:
        SourceError: there is an ``adapter_config.json``.
    """
    if (folder / "adapter_config.json").exists():
        raise SourceError(
            f"source {what!r}: {folder} holds an adapter (adapter_config.json), which is not "
            "loaded; merge it into the model (peft's merge_and_unload) and save that"
        )


def raw_configuration(folder: Path) -> dict[str, object]:
    """``config.json`` as written; empty where it is unreadable, which transformers will refuse."""
    try:
        config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return {}
    return config if isinstance(config, dict) else {}


def _entries(config: Mapping[Any, object], prefix: str = "") -> Iterator[tuple[str, str, object]]:
    """Dotted path, key and value of every entry, at any depth."""
    for key, value in config.items():
        yield f"{prefix}{key}", str(key), value  # labels are numbers
        if isinstance(value, dict):
            yield from _entries(value, f"{prefix}{key}.")
