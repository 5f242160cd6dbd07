"""The real-size ViT of the shipped suite, loaded once, with faults that can be taken back."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import nn

from isotest.comparability import comparable
from isotest.data.load import open_data
from isotest.gate.checks import FiniteCheck
from isotest.gate.evaluate import evaluate
from isotest.gate.message import MessageContext
from isotest.measurement import measure_loaded
from isotest.models.load import load_model
from isotest.suite import load_suite
from isotest.wanted import wanted_metrics

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from torch import Tensor

    from isotest.data.dataset import Dataset
    from isotest.gate.checks import Check
    from isotest.gate.verdict import Verdict
    from isotest.models.loaded import LoadedModel
    from isotest.profile import Profile
    from isotest.suite import ModelSpec, Suite

ROOT = Path(__file__).resolve().parent.parent.parent
SUITES = ROOT / "suites"
# One crop of each of the 15 photographs: every sample is a unit.
PHOTOGRAPHS = "package:isotest/samples/photographs?pattern=*-0.png"


@dataclass
class RealVit:
    """The entry, its model and a reduced sample; everything else is the suite's own."""

    suite: Suite
    spec: ModelSpec
    loaded: LoadedModel
    data: Dataset

    def measure(self, *, batch_size: int = 15, data: Dataset | None = None) -> Profile:
        protocol = self.suite.measure_of(self.spec)
        return measure_loaded(
            self.loaded,
            data or self.data,
            source=self.spec.source,
            model=self.spec.name,
            suite=self.suite.id,
            modality=self.suite.modality,
            representation=protocol.representation,
            special_tokens=protocol.special_tokens,
            batch_size=batch_size,
            metrics=wanted_metrics(protocol.metrics, self.suite.checks_of(self.spec)),
        )

    @property
    def checks(self) -> dict[str, Check]:
        return {"finite": FiniteCheck(), **self.suite.checks_of(self.spec)}

    @property
    def blocks(self) -> nn.ModuleList:
        blocks = self.loaded.module.get_submodule("layers")
        assert isinstance(blocks, nn.ModuleList)
        return blocks

    def verdicts(
        self, profile: Profile, baseline: Profile, checks: Mapping[str, Check] | None = None
    ) -> dict[str, Verdict]:
        """As the plugin judges an entry, by check."""
        return {
            name: evaluate(
                profile,
                baseline,
                name,
                check,
                differences=comparable(profile, baseline),
                context=MessageContext.for_library(self.suite.id, self.spec.name),
            )
            for name, check in (self.checks if checks is None else checks).items()
        }

    @contextmanager
    def rewritten(self, layer: str, rewrite: Callable[[Tensor], Tensor]) -> Iterator[None]:
        """The output of ``layer`` replaced, for it and for all that follows."""
        observed = next(o for o in self.loaded.layers if o.name == layer)

        def hook(_module: nn.Module, _inputs: Any, output: Any) -> None:
            x = observed.select(output)
            x.copy_(rewrite(x))

        handle = self.loaded.module.get_submodule(observed.path).register_forward_hook(hook)
        try:
            yield
        finally:
            handle.remove()

    @contextmanager
    def perturbed(self, relative: float) -> Iterator[None]:
        """Every weight multiplied by 1 + ``relative`` × a standard normal number."""
        generator = torch.Generator().manual_seed(0)
        kept = [(p, p.detach().clone()) for p in self.loaded.module.parameters()]
        try:
            with torch.no_grad():
                for p, _ in kept:
                    p.mul_(1 + relative * torch.randn(p.shape, generator=generator))
            yield
        finally:
            with torch.no_grad():
                for p, before in kept:
                    p.copy_(before)

    @contextmanager
    def swapped(self, first: int, second: int) -> Iterator[None]:
        """Two blocks (from 1) in each other's place."""
        blocks = self.blocks
        one, other = blocks[first - 1], blocks[second - 1]
        blocks[first - 1], blocks[second - 1] = other, one
        try:
            yield
        finally:
            blocks[first - 1], blocks[second - 1] = one, other

    @contextmanager
    def without_block(self, number: int) -> Iterator[None]:
        """The network one block shorter; the blocks after it move up, as in any library."""
        whole, loaded = list(self.blocks), self.loaded
        last = str(len(whole))
        layers = tuple(layer for layer in loaded.layers if layer.name != last)
        del self.blocks[number - 1]
        self.loaded = replace(loaded, layers=layers)
        try:
            yield
        finally:
            self.loaded = loaded
            del self.blocks[:]
            self.blocks.extend(whole)


def open_vit() -> RealVit:
    suite = load_suite(SUITES / "vision" / "transformers.toml", root=SUITES)
    spec = next(spec for spec in suite.models if spec.name == "vit-base-untrained")
    loaded = load_model(
        spec.source,
        config=spec.config,
        layers=spec.layers,
        preprocess=spec.preprocess,
        base=suite.path.parent,
    )
    return RealVit(suite, spec, loaded, open_data(PHOTOGRAPHS))
