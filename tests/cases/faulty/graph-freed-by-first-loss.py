# case: graph-freed-by-first-loss
# run: python graph-freed-by-first-loss.py (exit status 1)
# kind: error
# phase: backward
# op:
# module:
# step: 0
# note: the first backward frees the saved values of the common encoder, the second one needs them; add the
#   losses, or pass retain_graph=True
import torch
from torch import nn

torch.manual_seed(4)
encoder = nn.Sequential(nn.Linear(4, 8), nn.Tanh())
topic, mood = nn.Linear(8, 3), nn.Linear(8, 2)
opt = torch.optim.Adam([*encoder.parameters(), *topic.parameters(), *mood.parameters()], lr=1e-3)
for step in range(2):
    h = encoder(torch.randn(6, 4))
    loss_topic = nn.functional.cross_entropy(topic(h), torch.randint(0, 3, (6,)))
    loss_mood = nn.functional.cross_entropy(mood(h), torch.randint(0, 2, (6,)))
    opt.zero_grad()
    loss_topic.backward()  # <-- origin
    loss_mood.backward()  # <-- seen
    opt.step()
    print(step, loss_topic.item(), loss_mood.item())
