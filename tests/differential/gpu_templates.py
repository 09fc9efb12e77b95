"""Templates for GPUs of the kernels of the papers: those that the filters keep, by numbers, and those that the tuner lists."""

from __future__ import annotations

from functools import cache
from random import Random

from sparsetune.compiler.concrete.check import formats_of
from sparsetune.compiler.notation.parser import parse
from sparsetune.compiler.space.candidates import candidates
from sparsetune.compiler.space.template_space import Transformation
from sparsetune.compiler.space.templates import templates

from .scheduled import Scheduled, kinds_of

TEMPLATES: tuple[tuple[str, str], ...] = (
    ("y(i) = A(i,j) * x(j)", "A=csr"), ("y(i) = A(i,j) * x(j)", "A=csc x=compressed"), ("Y(i,k) = A(i,j) * X(j,k)", "A=csr"),
    ("Z(i,k) = B(i,k) * C(i,j) * D(j,k)", "B=csr Z=csr"), ("T(i,j) = B(i,j,k) * c(k)", "B=csf T=dcsr"),
)  # fmt: skip

LARGE: tuple[tuple[str, str], ...] = (
    ("C(i,j) = A(i,k) * B(k,j)", "A=csr B=csr"),
    ("T(i,j,l) = B(i,j,k) * C(k,l)", "B=csf T=ssd"), ("M(i,r) = B(i,j,k) * C(j,r) * D(k,r)", "B=csf"),
    ("R(i,l,m) = B(i,j,k) * C(j,l) * D(k,m)", "B=csf"),
)  # fmt: skip
"""Of which there are thousands, but for SpGEMM; that with a sparse result has them among what the tuner lists alone. TTMc has 240,000."""

KERNELS = range(len((*TEMPLATES, *LARGE)))
TTMC, PARTS = KERNELS[-1], 30
NIGHT = [*((kernel, 0, 1) for kernel in KERNELS[:-1]), *((TTMC, part, PARTS) for part in range(PARTS))]
"""Kernels, and the parts of those that have more templates than one test compiles or runs in minutes."""

EACH = 1_000_000
"""Templates of a kernel have numbers from this times the kernel's on."""


@cache
def mapped_templates(kernel: int) -> tuple[Transformation, ...]:
    """Return the templates for GPUs that the filters keep of a kernel."""
    expression, text = (*TEMPLATES, *LARGE)[kernel]
    assignment = parse(expression)
    return tuple(templates(assignment, formats_of(assignment, dict(kinds_of(text))), "cuda"))


def numbers_of_templates(kernel: int) -> range:
    return range(kernel * EACH, kernel * EACH + len(mapped_templates(kernel)))


def one_template(seed: int, sizes: int = 4) -> Scheduled:
    """Return the template of a number, with tiles of a size."""
    expression, text = (*TEMPLATES, *LARGE)[seed // EACH]
    template = mapped_templates(seed // EACH)[seed % EACH]
    return Scheduled(seed, expression, kinds_of(text), str(template.template.fill(dict.fromkeys(template.sizes, sizes))))


@cache
def searched_templates() -> tuple[Scheduled, ...]:
    """Return what the tuner lists for GPUs, each template with its usual values, and with drawn ones where it has holes."""
    found: list[Scheduled] = []
    rng = Random(0)
    for expression, text in (*TEMPLATES, ("C(i,j) = A(i,k) * B(k,j)", "A=csr B=csr C=csr")):
        formats, assignment = kinds_of(text), parse(expression)
        for listed in candidates(assignment, formats_of(assignment, dict(formats)), target="cuda"):
            drawn = {hole.name: rng.choice(hole.choices) for hole in listed.template.holes}
            for values in ({}, drawn) if drawn else ({},):
                found.append(Scheduled(len(found), expression, formats, str(listed.template.fill(values))))
    return tuple(found)
