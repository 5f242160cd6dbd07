"""Changes of single modules of a loaded model, all undone at the end."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from isotest.errors import SourceError
from isotest.models.select import first

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import ExitStack

    from torch import Tensor, nn

_ABSENT = object()


class Held:
    """The tensor that a module made, or was given, last.

    Attributes:
        tensor: the first one where there are several.
    """

    tensor: Tensor

    def __call__(self, _module: nn.Module, _inputs: Any, output: Any) -> None:
        """A forward hook."""
        self.tensor = first(output)


class Edits:
    """Edits of instances: the library's classes, and models next to this one, stay as they are.

    Args:
        undo: what takes everything back when it closes.
    """

    def __init__(self, undo: ExitStack) -> None:
        self._undo = undo

    def replace(self, owner: nn.Module, method: str, function: Callable[..., Any]) -> None:
        """Let ``function`` run where ``owner.method`` would; hooks of ``owner`` still run."""
        own = vars(owner).get(method, _ABSENT)
        setattr(owner, method, function)

        def back() -> None:
            if own is _ABSENT:
                delattr(owner, method)
            else:
                setattr(owner, method, own)

        self._undo.callback(back)

    def hold(self, module: nn.Module) -> Held:
        """Keep what ``module`` puts out, whenever it runs."""
        held = Held()
        self._undo.callback(module.register_forward_hook(held).remove)
        return held

    def hold_input(self, module: nn.Module) -> Held:
        """Keep what ``module`` works on, whenever it runs."""
        held = Held()
        handle = module.register_forward_pre_hook(lambda _, inputs: held(module, (), inputs))
        self._undo.callback(handle.remove)
        return held

    def feed(self, module: nn.Module, held: Held) -> None:
        """Let ``module`` work on what is held, whatever it is given."""
        handle = module.register_forward_pre_hook(lambda _module, _inputs: (held.tensor,))
        self._undo.callback(handle.remove)

    def bypass(self, module: nn.Module) -> None:
        """Let ``module`` give back what it is given."""
        self.replace(module, "forward", unchanged)


def unchanged(x: Tensor) -> Tensor:
    """The identity."""
    return x


def part(block: nn.Module, path: str) -> nn.Module:
    """The part of a block at a dotted path.

    Raises:
        SourceError: this release of the library builds the block otherwise.
    """
    try:
        return block.get_submodule(path)
    except AttributeError:
        from transformers import __version__

        raise SourceError(
            f"ablate: expected a {type(block).__name__} to have a part {path!r}, found "
            f"{', '.join(name for name, _ in block.named_children())} in transformers "
            f"{__version__}; use another release, such as 5.24"
        ) from None
