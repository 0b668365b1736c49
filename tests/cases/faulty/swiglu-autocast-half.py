# case: swiglu-autocast-half
# kind: inf
# phase: forward
# op: aten::mul
# module: layers.1.ffn
# step: 3
# note: gate and value are a few hundred each and fit into float16, their product does not (> 65504); run
#   the product in float32 or train in bfloat16
import torch
import torch.nn as nn
import torch.nn.functional as F


class SwiGLU(nn.Module):
    def __init__(self, d, hidden):
        super().__init__()
        self.gate = nn.Linear(d, hidden, bias=False)
        self.value = nn.Linear(d, hidden, bias=False)
        self.down = nn.Linear(hidden, d, bias=False)

    def forward(self, x):
        g = F.silu(self.gate(x))
        h = g * self.value(x)  # <-- origin
        return self.down(h)


class Layer(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.norm = nn.LayerNorm(d)
        self.ffn = SwiGLU(d, 2 * d)

    def forward(self, x):
        return x + 0.01 * self.ffn(self.norm(x))


class Stack(nn.Module):
    def __init__(self, d=16):
        super().__init__()
        self.emb = nn.Embedding(50, d)
        self.layers = nn.ModuleList(Layer(d) for _ in range(3))
        self.head = nn.Linear(d, 50)

    def forward(self, ids):
        h = self.emb(ids)
        for layer in self.layers:
            h = layer(h)
        return self.head(h)


def main():
    torch.manual_seed(0)
    net = Stack()
    opt = torch.optim.SGD(net.parameters(), lr=1e-3)
    for step in range(5):
        if step == 3:  # the learned scale of one norm has drifted (massive activations)
            with torch.no_grad():
                net.layers[1].norm.weight.mul_(600)
        ids = torch.randint(0, 50, (4, 9))
        with torch.autocast("cpu", dtype=torch.float16):
            logits = net(ids[:, :-1])
        loss = F.cross_entropy(logits.float().flatten(0, 1), ids[:, 1:].flatten())
        opt.zero_grad()
        loss.backward()
        opt.step()
        print(f"step {step} loss {loss.item():.4f}")


if __name__ == "__main__":
    main()
