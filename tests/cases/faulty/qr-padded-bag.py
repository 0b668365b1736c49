# case: qr-padded-bag
# kind: nan, inf
# phase: backward
# op: LinalgQrBackward0, aten::linalg_qr
# module: basis
# step: 2
# note: a bag with a missing prompt is padded with the zero vector, so R has a zero on its diagonal and the
#   gradient of QR solves a triangular system with it; drop the padding, or orthogonalise by an SVD with a
#   floor
import torch
import torch.nn as nn


class SubspaceBasis(nn.Module):
    """Orthonormal basis of the span of a few vectors."""

    def forward(self, vectors):
        basis, _ = torch.linalg.qr(vectors.transpose(-1, -2))  # <-- origin
        return basis


class Retriever(nn.Module):
    def __init__(self, vocab=30, dim=10):
        super().__init__()
        self.emb = nn.Embedding(vocab, dim, padding_idx=0)
        self.basis = SubspaceBasis()
        self.query = nn.Linear(dim, dim)

    def forward(self, prompts, query):
        b = self.basis(self.emb(prompts))
        q = self.query(self.emb(query))
        return torch.einsum("bdk,bd->bk", b, q).square().sum(-1)


torch.manual_seed(9)
model = Retriever()
opt = torch.optim.Adam(model.parameters(), lr=1e-2)
prompts = torch.stack([torch.randperm(29)[:3] + 1 for _ in range(16)]).view(4, 4, 3)
prompts[2, 1] = torch.tensor([8, 5, 0])
queries = torch.randint(0, 30, (4, 4))
wanted = torch.rand(4, 4)
for step in range(4):
    score = model(prompts[step], queries[step])
    loss = nn.functional.mse_loss(torch.tanh(score), wanted[step])
    opt.zero_grad()
    loss.backward()
    opt.step()
    print(step, f"{loss.item():.5f}")
