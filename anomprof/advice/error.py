"""Advice on errors that autograd raises."""

from __future__ import annotations

from anomprof.advice.entry import Entry

_ERROR = ("error",)
_STEPS = ("addcdiv", "addcmul", "lerp", "fused_adam", "fused_adamw", "fused_sgd", "add", "mul", "sub", "sqrt")

ENTRIES: tuple[Entry, ...] = (
    Entry(
        "in-place change of a leaf",
        "A leaf that requires grad (a parameter) may not be changed in place while autograd records.",
        (
            "Update without recording: `with torch.no_grad(): w -= lr * w.grad`.",
            "Initialise with `nn.init`, or through `w.data` only before training.",
        ),
        kinds=_ERROR,
        words=r"leaf [Vv]ariable|leaf tensor",
    ),
    Entry(
        "backward through a freed graph",
        "The graph was freed by an earlier backward, and a second one goes through it: often a hidden state "
        "or a running loss that is carried from step to step.",
        (
            "Cut the history between steps: `h = h.detach()`; add up losses as `total += loss.item()`.",
            "For two losses that share a graph: `(a + b).backward()`, or `a.backward(retain_graph=True)`.",
        ),
        kinds=_ERROR,
        words=r"backward through the graph a second time|already been freed|after they have already",
    ),
    Entry(
        "no graph",
        "The loss does not depend on anything that requires grad: it was detached, or computed under "
        "`no_grad`.",
        (
            "Look for `.detach()`, `.item()`, `.data`, `torch.tensor(x)` or `no_grad()` between model and "
            "loss.",
            "Check `any(p.requires_grad for p in model.parameters())`.",
        ),
        kinds=_ERROR,
        words=r"does not require grad",
    ),
    Entry(
        "optimizer step between two backwards",
        "`optimizer.step()` changed parameters in place that a graph built before still needs for its "
        "backward.",
        (
            "Run both backwards first, then both steps.",
            "Compute the second loss anew after the first step.",
            "If the gradient need not reach the first network: feed `fake.detach()` to the second.",
        ),
        kinds=_ERROR,
        phases=("optimizer",),
        ops=_STEPS,
    ),
    Entry(
        "assignment to elements of a saved tensor",
        "This line writes elements of a tensor that an op before it saved for its backward.",
        (
            "Make a new tensor: `x = x.masked_fill(mask, 0.0)` or `x = torch.where(mask, value, x)`.",
            "Or write into a copy: `x = x.clone()` before `x[i] = value`.",
        ),
        kinds=_ERROR,
        ops=("fill", "copy", "zero", "masked_fill", "index_put", "masked_scatter", "scatter", "index_fill"),
        words=r"modified by an in-?place operation",
    ),
    Entry(
        "in-place change of a saved tensor",
        "This line changes a tensor in place that an op before it saved for its backward.",
        (
            "Write out of place: `x = x + y` instead of `x += y`.",
            "Take `inplace=True` out of activations and dropout.",
            "Save a copy before it is changed: `x = x.clone()`.",
        ),
        kinds=_ERROR,
        words=r"modified by an in-?place operation",
    ),
    Entry(
        "change of a view",
        "A view was changed in place in a way that autograd cannot follow (`unbind`, `split`, `no_grad`, "
        "`detach`).",
        (
            "Copy first: `x.clone()`, or build the result with `torch.cat` or `torch.stack`.",
            "Make the view and the change under the same grad mode.",
        ),
        kinds=_ERROR,
        words=r"is a view|view\+inplace|view and is being modified",
    ),
)
