# SPDX-License-Identifier: MIT
"""Move video memory to a peer's: move_vram.py NIC GPU there, move_vram.py NIC GPU HOST here."""
import sys

import sluice

ring = sluice.Context()
nic, gpu = sluice.Nic(ring, sys.argv[1]), sluice.Device(ring, sys.argv[2])
vram = gpu.vram(16 << 20)
if len(sys.argv) > 3:
    fill = sluice.Batch()
    fill.fill(vram, 0x600DF00D)
    gpu.submit(fill).wait()
    peer = nic.connect(sys.argv[3], 7471, timeout=None).wait()
    sender = sluice.Sender(peer, gpu=gpu)
    report = sender.send("vram", vram).wait()
    sender.finish().wait()
else:
    peer = nic.listen(port=7471).accept().wait()
    receiver = sluice.Receiver(peer, gpu=gpu)
    while receiver.next().wait():
        report = receiver.receive(vram).wait()
print(report.bytes, "bytes by", *report.bytes_by_path, report.sha256)
