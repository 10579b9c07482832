"""A workload as text: the TOML that `sim.model.workload.read` reads, and lines for people."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sim.model.workload import Variable, Workload


def toml(table: dict, variables: list[dict]) -> str:
    """A workload as TOML, a line for each variable; tomli_w would take a line for each number of a shape."""
    head = [f"{name} = {_value(value)}" for name, value in table.items()]
    lines = [f"    {_value(variable)}," for variable in variables]
    return "\n".join([*head, "variables = [", *lines, "]", ""])


def _value(value) -> str:
    """A string, a number, a boolean, a list or a table, as TOML in one line."""
    import tomli_w

    if isinstance(value, dict):
        return "{ " + ", ".join(f"{name} = {_value(item)}" for name, item in value.items()) + " }"
    if isinstance(value, list):
        return "[" + ", ".join(map(_value, value)) + "]"
    return tomli_w.dumps({"x": value}).partition(" = ")[2].rstrip("\n")


def line(model: Workload) -> str:
    """A model in one line."""
    size = counted(model.parameters)
    return f"{model.name:16} {size:>8} in {len(model.variables):4} variables  batch {model.batch:5}  {computing(model)}"


def computing(model: Workload) -> str:
    """The key that says how long its computing takes."""
    if model.step:
        gpus = dict.fromkeys(step.gpu for step in model.step if step.gpu)
        return f"step measured{' on ' * bool(gpus)}{' and '.join(gpus)}"
    if model.is_nominal and model.flops_per_sample is not None:
        return f"{counted(model.flops_per_sample)}flop a sample, forward"
    return "costs given" if "costs" in model.model_fields_set else "nothing says what computing takes"


def of_variable(one: Variable) -> str:
    """A variable in one line."""
    shape = " x ".join(map(str, one.shape))
    return f"  {one.name:48} {shape}{', not trained' * (not one.trained)}{', rows' * (one.rows is not None)}"


def counted(number: float) -> str:
    """Three digits and a prefix."""
    for prefix, times in (("P", 1e15), ("T", 1e12), ("G", 1e9), ("M", 1e6), ("k", 1e3)):
        if number >= times:
            return f"{number / times:.3g} {prefix}"
    return f"{number:.3g} "
