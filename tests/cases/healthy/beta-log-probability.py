# case: beta-log-probability
# kind: none
# note: log-probabilities of Beta, Gamma and Dirichlet with positive parameters (softplus plus a floor) and
#   samples kept inside the open interval
import torch
import torch.nn.functional as F
from torch import nn
from torch.distributions import Beta, Dirichlet, Gamma, kl_divergence

torch.manual_seed(8)
net = nn.Linear(3, 7)
opt = torch.optim.Adam(net.parameters(), lr=1e-2)
for step in range(4):
    raw = F.softplus(net(torch.randn(12, 3))) + 0.05
    share = torch.rand(12).clamp(1e-4, 1 - 1e-4)
    wait = torch.rand(12) + 1e-3
    mixture = torch.softmax(torch.randn(12, 3), -1)
    beta = Beta(raw[:, 0], raw[:, 1])
    fit = beta.log_prob(share) + Gamma(raw[:, 2], raw[:, 3]).log_prob(wait)
    fit = fit + Dirichlet(raw[:, 4:]).log_prob(mixture)
    loss = -fit.mean() + 0.1 * kl_divergence(beta, Beta(torch.ones(12), torch.ones(12))).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
    print(step, loss.item())
