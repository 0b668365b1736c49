# case: log-softmax-no-legal-move
# kind: nan
# phase: forward
# op: aten::_log_softmax, aten::log_softmax
# module: policy
# step: 3
# note: a finished game has no legal move, so its whole row is -inf and log_softmax gives NaN; leave finished
#   games out of the batch
import torch
from torch import nn


class Policy(nn.Module):
    def __init__(self, moves):
        super().__init__()
        self.out = nn.Linear(8, moves)

    def forward(self, h, legal):
        logits = torch.where(legal, self.out(h), torch.tensor(-torch.inf))
        return logits.log_softmax(dim=-1)  # <-- origin


class Player(nn.Module):
    def __init__(self):
        super().__init__()
        self.board = nn.Linear(9, 8)
        self.policy = Policy(5)

    def forward(self, board, legal):
        return self.policy(torch.tanh(self.board(board)), legal)


def main():
    torch.manual_seed(0)
    player = Player()
    opt = torch.optim.RMSprop(player.parameters(), lr=1e-3)
    for game in range(5):
        legal = torch.ones(7, 5, dtype=torch.bool)
        legal[:, 4] = False
        if game == 3:
            legal[6] = False
        logp = player(torch.randn(7, 9), legal)
        loss = nn.functional.nll_loss(logp, torch.randint(0, 4, (7,)))
        opt.zero_grad()
        loss.backward()
        opt.step()
        print("game", game, "loss", round(loss.item(), 4))


main()
