# case: dpp-logdet-indefinite
# kind: nan
# phase: forward
# op: aten::where, aten::scalar_tensor, aten::logdet, aten::_linalg_slogdet, aten::linalg_slogdet
# module: DPPLoss
# step: 2
# note: the learned kernel is symmetric but not positive, a batch has a negative determinant and logdet of
#   it is NaN (the op carries a NaN constant at every step and selects it where the sign is negative;
#   gradients are 0, only the loss is NaN); build the kernel as B B^T + eps I
import torch
import torch.nn as nn


class DPPLoss(nn.Module):
    def __init__(self, items, ridge):
        super().__init__()
        self.ridge = ridge
        self.bilinear = nn.Parameter(0.3 * torch.randn(items, items))

    def forward(self, feats, chosen):
        form = 0.5 * (self.bilinear + self.bilinear.t())
        kernel = feats @ form @ feats.t() + self.ridge * torch.eye(len(feats))
        sub = kernel[chosen][:, chosen]
        gain = torch.logdet(sub)  # <-- origin
        return -gain / len(chosen)


torch.manual_seed(0)
encoder = nn.Sequential(nn.Linear(5, 8), nn.Tanh(), nn.Linear(8, 8))
loss_fn = DPPLoss(8, ridge=4.0)
opt = torch.optim.Adam([*encoder.parameters(), *loss_fn.parameters()], lr=5e-3)
catalogue = torch.randn(4, 10, 5)
catalogue[2] *= 30.0
for step in range(4):
    loss = loss_fn(
        4.0 * encoder(catalogue[step]) if step == 2 else encoder(catalogue[step]), torch.tensor([0, 3, 7])
    )
    opt.zero_grad()
    loss.backward()
    opt.step()
    print("step", step, "loss", loss.item())
