"""A loaded model with parts of its blocks switched off, for as long as a context is open."""

from __future__ import annotations

from contextlib import ExitStack, contextmanager
from importlib import import_module
from typing import TYPE_CHECKING, Any

from isotest.errors import SourceError
from isotest.models.ablations.ablation import Ablation
from isotest.models.ablations.edits import Edits
from isotest.models.anatomy import outline

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from torch import nn

    Ablate = Callable[[nn.Module, Ablation, Edits], None]

_LLAMA = "isotest.models.ablations.pre_norm:llama"
_BERT = "isotest.models.ablations.bert:ablate"

# The classes of transformers' blocks, and who switches off their parts. A subclass of one of them
# might compute something else, so names are compared.
_ROWS = {
    "AlbertLayer": "isotest.models.ablations.albert:ablate",
    "BertLayer": _BERT,
    "CamembertLayer": _BERT,
    "ElectraLayer": _BERT,
    "RobertaLayer": _BERT,
    "XLMRobertaLayer": _BERT,
    "GPT2Block": "isotest.models.ablations.pre_norm:gpt2",
    "LlamaDecoderLayer": _LLAMA,
    "MistralDecoderLayer": _LLAMA,
    "Qwen2DecoderLayer": _LLAMA,
    "DeiTLayer": "isotest.models.ablations.pre_norm:vit",
    "ViTLayer": "isotest.models.ablations.pre_norm:vit",
    "XLNetLayer": "isotest.models.ablations.xlnet:ablate",
}


@contextmanager
def ablated(model: nn.Module, ablation: Ablation | str | Mapping[str, bool]) -> Iterator[None]:
    """Switch off parts of all blocks of ``model`` while the context is open.

    Only these instances are changed, neither their classes nor their weights; hooks on them still
    run. When the context is left, by an exception too, the model is what it was.

    Args:
        model: a model of transformers, base model or with a head: BERT, RoBERTa, XLM-RoBERTa,
            CamemBERT, ELECTRA, ALBERT, XLNet, GPT-2, ViT, DeiT, Llama, Mistral, Qwen2.
        ablation: which parts are on; or a name or switches, as for :meth:`Ablation.of`.

    Raises:
        SourceError: an unknown name or switch; a model of another family, or one whose blocks have
            more parts than there are switches for.

    >>> from transformers import BertConfig, BertModel
    >>> config = BertConfig(hidden_size=8, num_attention_heads=2, intermediate_size=16)
    >>> model = BertModel(config).eval()
    >>> x = model.get_input_embeddings().weight[None, :5]
    >>> with ablated(model, {"attention_skip": False, "mlp": False}):
    ...     pure = model(inputs_embeds=x).last_hidden_state
    >>> bool((pure == model(inputs_embeds=x).last_hidden_state).all())
    False
    """
    ablation = Ablation.of(ablation)
    with ExitStack() as undo:
        edits = Edits(undo)
        for block in _blocks(model):
            module, _, name = _ROWS[type(block).__name__].partition(":")
            ablate: Ablate = getattr(import_module(module), name)
            ablate(block, ablation, edits)
        yield


def _blocks(model: nn.Module) -> list[nn.Module]:
    """All blocks, each once.

    Raises:
        SourceError: some are of no family that is known.
    """
    known = {path: module for path, module in model.named_modules() if _is_known(module)}
    places = {place.path for stack in outline(model).stacks for place in stack.blocks}
    # ALBERT's place is a group of blocks.
    unknown = sorted(
        place
        for place in places
        if not any(path == place or path.startswith(f"{place}.") for path in known)
    )
    if unknown or not known:
        of: Any = type(model.get_submodule(unknown[0])) if unknown else type(model)
        found = f"{of.__name__} of {of.__module__.partition('.')[0]}"
        raise SourceError(
            f"ablate: nothing is known of how to switch off parts of {type(model).__name__}, whose "
            f"blocks are {found}; known are transformers' {', '.join(sorted(_ROWS))}"
        )
    return list(known.values())


def _is_known(module: Any) -> bool:
    cls = type(module)
    return cls.__name__ in _ROWS and cls.__module__.partition(".")[0] == "transformers"
