# SPDX-License-Identifier: Apache-2.0
"""Further blocks and heads of published families for random_networks.py, which draws them from seed 400 on.

Blocks: (channels in, channels out, stride) -> module. `r` chooses; `Call`, `conv`, `norm`, `activation` are those of the network that is
built.
"""


def blocks(r, Call, conv, norm, activation):
    import torch
    from torch import nn
    from torch.nn import functional as F

    def aspp(a, b, s):
        q = max(4, b // 4)

        def forward(m, x):
            x = m.start(x)
            whole = F.interpolate(m.whole(F.adaptive_avg_pool2d(x, 1)), size=x.shape[2:], mode="bilinear", align_corners=False)
            return m.end(torch.cat([m.a(x), m.b(x), m.c(x), whole], 1))
        return Call(forward, start=conv(a, b, 3, s), a=nn.Conv2d(b, q, 1), b=nn.Conv2d(b, q, 3, 1, 2, 2), c=nn.Conv2d(b, q, 3, 1, 3, 3),
                    whole=nn.Sequential(nn.Conv2d(b, q, 1), nn.ReLU()), end=conv(4 * q, b, 1))

    def pyramid_pooling(a, b, s):
        q = max(4, b // 4)

        def forward(m, x):
            x = m.start(x)
            rows = [x]
            for size, layer in zip((1, 2), m.layers):
                k = [max(1, side // size) for side in x.shape[2:]]
                rows.append(F.interpolate(layer(F.avg_pool2d(x, k, k)), size=x.shape[2:], mode="bilinear", align_corners=True))
            return m.end(torch.cat(rows, 1))
        return Call(forward, start=conv(a, b, 3, s), layers=nn.ModuleList([conv(b, q, 1) for _ in range(2)]), end=conv(b + 2 * q, b, 1))

    def focus(a, b, s):
        def forward(m, x):
            x = F.pad(x, (0, x.shape[3] % 2, 0, x.shape[2] % 2))
            x = torch.cat([x[..., ::2, ::2], x[..., 1::2, ::2], x[..., ::2, 1::2], x[..., 1::2, 1::2]], 1)
            return m.end(x) if m.shrinks else F.interpolate(m.end(x), scale_factor=2)
        return Call(forward, shrinks=s > 1, end=conv(4 * a, b, 3))

    def large_kernel(a, b, s):
        return Call(lambda m, x: (lambda y: y * m.c(m.b(m.a(y))))(m.start(x)), start=conv(a, b, 3, s), a=nn.Conv2d(b, b, 5, 1, 2, groups=b),
                    b=nn.Conv2d(b, b, 7, 1, 9, 3, groups=b), c=nn.Conv2d(b, b, 1))

    def gated_halves(a, b, s):
        def forward(m, x):
            x = m.start(x)
            u, v = m.wide(m.norm(x)).chunk(2, 1)
            y = u * v
            y = y * m.pool(y.mean((2, 3), keepdim=True))
            return x + m.out(y) * m.beta
        block = Call(forward, start=conv(a, b, 3, s), norm=norm(b), wide=nn.Sequential(nn.Conv2d(b, 2 * b, 1),
                     nn.Conv2d(2 * b, 2 * b, 3, 1, 1, groups=2 * b)), pool=nn.Conv2d(b, b, 1), out=nn.Conv2d(b, b, 1))
        block.beta = nn.Parameter(torch.full((1, b, 1, 1), 0.5))
        return block

    def strips(a, b, s):
        def forward(m, x):
            x = m.start(x)
            size = x.shape[2:]
            rows = m.rows(x.mean(3, keepdim=True)).expand(-1, -1, *size)
            columns = m.columns(x.mean(2, keepdim=True)).expand(-1, -1, *size)
            return x * torch.sigmoid(m.end(F.relu(rows + columns)))
        return Call(forward, start=conv(a, b, 3, s), rows=nn.Conv2d(b, b, (3, 1), 1, (1, 0)), columns=nn.Conv2d(b, b, (1, 3), 1, (0, 1)),
                    end=nn.Conv2d(b, b, 1))

    def response_norm(a, b, s):
        def forward(m, x):
            x = m.start(x)
            size = torch.norm(x, p=2, dim=(2, 3), keepdim=True)
            return m.end(x * (size / (size.mean(1, keepdim=True) + 1e-6)) + x)
        return Call(forward, start=conv(a, b, 3, s), end=conv(b, b, 1))

    def funnel(a, b, s):
        return Call(lambda m, x: (lambda y: torch.maximum(y, m.condition(y)))(m.start(x)), start=conv(a, b, 3, s, act=False),
                    condition=nn.Conv2d(b, b, 3, 1, 1, groups=b))

    def blurred(a, b, s):
        kernel = torch.tensor([1., 2, 1])
        block = Call(lambda m, x: F.conv2d(F.pad(m.start(x), (1, 1, 1, 1), m.mode), m.kernel, stride=m.stride, groups=m.kernel.shape[0]),
                     start=conv(a, b, 3), stride=s, mode=r.choice(["reflect", "replicate", "constant"]))
        block.register_buffer("kernel", (kernel[:, None] * kernel / 16).expand(b, 1, 3, 3).clone())
        return block

    def windows(a, b, s):
        heads = next(h for h in (4, 2, 1) if b % h == 0)
        side = r.choice([4, 5, 7])

        def forward(m, x):
            x = m.start(x)
            n, c, h, w = x.shape
            y = F.pad(x, (0, -w % side, 0, -h % side))
            if m.shifts:
                y = torch.roll(y, (-(side // 2), -(side // 2)), (2, 3))
            rows, columns = y.shape[2] // side, y.shape[3] // side
            y = y.view(n, c, rows, side, columns, side).permute(0, 2, 4, 3, 5, 1).reshape(n * rows * columns, side * side, c)
            q, k, v = m.qkv(m.norm(y)).view(-1, side * side, 3, heads, c // heads).permute(2, 0, 3, 1, 4)
            weights = torch.softmax(q @ k.transpose(-1, -2) * (c // heads) ** -0.5 + m.bias, -1)
            y = m.out((weights @ v).transpose(1, 2).reshape(-1, side * side, c))
            y = y.view(n, rows, columns, side, side, c).permute(0, 5, 1, 3, 2, 4).reshape(n, c, rows * side, columns * side)
            if m.shifts:
                y = torch.roll(y, (side // 2, side // 2), (2, 3))
            return x + y[:, :, :h, :w]
        block = Call(forward, start=conv(a, b, 3, s), norm=nn.LayerNorm(b), qkv=nn.Linear(b, 3 * b), out=nn.Linear(b, b), shifts=r.random() < 0.4)
        block.bias = nn.Parameter(torch.randn(heads, side * side, side * side) * 0.1)
        return block

    def channel_attention(a, b, s):
        heads = next(h for h in (4, 2, 1) if b % h == 0)

        def forward(m, x):
            x = m.start(x)
            n, c, h, w = x.shape
            q, k, v = m.qkv(x).view(n, 3, heads, c // heads, h * w).unbind(1)
            weights = torch.softmax(F.normalize(q, dim=-1) @ F.normalize(k, dim=-1).transpose(-1, -2) * 4.0, -1)
            return x + m.out((weights @ v).reshape(n, c, h, w))
        return Call(forward, start=conv(a, b, 3, s), qkv=nn.Conv2d(b, 3 * b, 1), out=nn.Conv2d(b, b, 1))

    def weighted_sum(a, b, s):
        def forward(m, x):
            weights = F.relu(m.weights)
            weights = weights / (weights.sum() + 1e-4)
            return m.end(sum(weights[i] * layer(x) for i, layer in enumerate(m.layers)))
        block = Call(forward, layers=nn.ModuleList([conv(a, b, 3, s), conv(a, b, 5, s), conv(a, b, 1, s)]), end=conv(b, b, 3, g=1))
        block.weights = nn.Parameter(torch.tensor([0.5, 1.0, 0.8]))
        return block

    def resized(a, b, s):
        mode = r.choice(["bilinear", "nearest", "bicubic", "area", "nearest-exact"])
        factor = r.choice([0.5, 0.75, 1.5])

        def forward(m, x):
            size = [max(2, int(side * factor)) for side in x.shape[2:]]
            corners = {} if "nearest" in mode or mode == "area" else {"align_corners": r.random() < 0.5}
            y = F.interpolate(m.start(x), size=size, mode=mode, **corners)
            return m.end(y)
        return Call(forward, start=conv(a, b, 3), end=conv(b, b, 3, s))

    def rows_as_batch(a, b, s):
        def forward(m, x):
            x = m.start(x)
            n, c, h, w = x.shape
            y = m.line(x.permute(0, 2, 1, 3).reshape(n * h, c, w))
            return x + y.view(n, h, c, w).permute(0, 2, 1, 3)
        return Call(forward, start=conv(a, b, 3, s), line=nn.Conv1d(b, b, 5, padding=2))

    def experts(a, b, s):
        def forward(m, x):
            weights = torch.softmax(m.choose(x.mean((2, 3))), 1)
            return sum(layer(x) * weights[:, i, None, None, None] for i, layer in enumerate(m.layers))
        return Call(forward, layers=nn.ModuleList([conv(a, b, 3, s) for _ in range(3)]), choose=nn.Linear(a, 3))

    def parts_of_channels(a, b, s):
        quarter = max(1, b // 4)

        def forward(m, x):
            x = m.start(x)
            return x + m.end(torch.cat([m.part(x[:, :quarter]), x[:, quarter:]], 1))
        return Call(forward, start=conv(a, b, 3, s), part=nn.Conv2d(quarter, quarter, 3, 1, 1, bias=False),
                    end=nn.Sequential(conv(b, 2 * b, 1), nn.Conv2d(2 * b, b, 1)))

    def statistics(a, b, s):
        def forward(m, x):
            x = m.start(x)
            mean, std = x.mean((2, 3), keepdim=True), x.std((2, 3), keepdim=True)
            return x * torch.sigmoid(m.gate(torch.cat([mean, std], 1))) + (x - mean) / (std + 0.1)
        return Call(forward, start=conv(a, b, 3, s), gate=nn.Conv2d(2 * b, b, 1))

    return [aspp, pyramid_pooling, focus, large_kernel, gated_halves, strips, response_norm, funnel, blurred, windows, channel_attention,
            weighted_sum, resized, rows_as_batch, experts, parts_of_channels, statistics]


def head(r, width, Call):
    import torch
    from torch import nn
    from torch.nn import functional as F

    def letters():
        return Call(lambda m, x: F.log_softmax(m.end(m.lstm(x.mean(2).transpose(1, 2))[0]), -1), lstm=nn.LSTM(width, 16, bidirectional=True,
                    batch_first=True), end=nn.Linear(32, 21))

    def places():
        def forward(m, x):
            y = m.end(x)
            n, c, h, w = y.shape
            y = torch.softmax(y.flatten(2), -1).view(n, c, h, w)
            across, down = torch.linspace(0, 1, w), torch.linspace(0, 1, h)
            return torch.stack([(y.sum(2) * across).sum(-1), (y.sum(3) * down).sum(-1)], -1)
        return Call(forward, end=nn.Conv2d(width, 9, 1))

    def peaks():
        def forward(m, x):
            y = torch.sigmoid(m.end(x))
            y = y * (F.max_pool2d(y, 3, 1, 1) == y).float()
            scores, where = torch.topk(y.flatten(1), 5)
            return scores, where
        return Call(forward, end=nn.Conv2d(width, 2, 1))

    def tokens():
        layer = nn.TransformerEncoderLayer(width, 1, 2 * width, batch_first=True, norm_first=r.random() < 0.5)
        return Call(lambda m, x: m.end(m.layer(F.adaptive_avg_pool2d(x, 1).flatten(2).transpose(1, 2) + x.flatten(2).transpose(1, 2)).mean(1)),
                    layer=layer, end=nn.Linear(width, 7))

    def distances():
        def forward(m, x):
            y = F.normalize(x.mean((2, 3)), dim=-1)
            return 1 - y @ F.normalize(m.centres, dim=-1).T, torch.cdist(y, m.centres)
        block = Call(forward)
        block.centres = nn.Parameter(torch.randn(11, width))
        return block

    def ordinal():
        return Call(lambda m, x: torch.cumprod(torch.sigmoid(m.end(x.amax((2, 3)))), 1), end=nn.Linear(width, 6))

    return r.choice([letters, places, peaks, tokens, distances, ordinal])()
